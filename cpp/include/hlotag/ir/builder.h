// SPDX-License-Identifier: Apache-2.0
//
// How are operations made? They are detached: Rewriter::insert puts them into the module.
#pragma once

#include "hlotag/ir/operation.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <vector>

namespace hlotag::ir {

namespace detail {
/// mlirOperationCreate frees its arrays.
template <class T> T *copyForC(const std::vector<T> &items) {
  if (items.empty())
    return nullptr;
  auto *copy = static_cast<T *>(std::malloc(items.size() * sizeof(T)));
  if (!copy)
    throw std::bad_alloc();
  std::copy(items.begin(), items.end(), copy);
  return copy;
}
} // namespace detail

/// Makes an operation of the registered kind `name`, which takes ownership of `regions`.
inline OwnedOperation createOp(std::string_view name, Location location,
                               const std::vector<Value> &operands,
                               const std::vector<MlirType> &results,
                               const std::vector<NamedAttribute> &attributes = {},
                               const std::vector<MlirRegion> &regions = {}) {
  std::vector<MlirValue> values;
  values.reserve(operands.size());
  for (Value operand : operands)
    values.push_back(operand.raw());
  std::vector<MlirNamedAttribute> entries;
  entries.reserve(attributes.size());
  for (NamedAttribute entry : attributes)
    entries.push_back({entry.name.raw(), entry.value.raw()});
  MlirOperationState state{};
  state.name = toRef(name);
  state.location = location.raw();
  state.nResults = intptr_t(results.size());
  state.results = detail::copyForC(results);
  state.nOperands = intptr_t(values.size());
  state.operands = detail::copyForC(values);
  state.nAttributes = intptr_t(entries.size());
  state.attributes = detail::copyForC(entries);
  state.nRegions = intptr_t(regions.size());
  state.regions = detail::copyForC(regions);
  return OwnedOperation(capi::fn().mlirOperationCreate(&state));
}

/// Makes a private func.func with an empty block, whose arguments have the types and locations of
/// `arguments`. The caller adds the func.return of `results`.
inline OwnedOperation createFunction(std::string_view symbol, Location location,
                                     const std::vector<Value> &arguments,
                                     const std::vector<MlirType> &results) {
  const capi::Table &fn = capi::fn();
  MlirContext context = location.context();
  std::vector<MlirType> inputs;
  std::vector<MlirLocation> locations;
  for (Value argument : arguments) {
    inputs.push_back(argument.type());
    locations.push_back(argument.location().raw());
  }
  MlirRegion body = fn.mlirRegionCreate();
  fn.mlirRegionAppendOwnedBlock(
      body, fn.mlirBlockCreate(intptr_t(inputs.size()), inputs.data(), locations.data()));
  MlirType type = fn.mlirFunctionTypeGet(context, intptr_t(inputs.size()), inputs.data(),
                                         intptr_t(results.size()), results.data());
  return createOp(
      "func.func", location, {}, {},
      {{Identifier::get(context, "sym_name"), StringAttr::get(context, symbol)},
       {Identifier::get(context, "function_type"), fn.mlirTypeAttrGet(type)},
       {Identifier::get(context, "sym_visibility"), StringAttr::get(context, "private")}},
      {body});
}

} // namespace hlotag::ir
