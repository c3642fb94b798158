// SPDX-License-Identifier: Apache-2.0
//
// How does Python call the HLO pass's C++ side?
#pragma once

#include "hlotag/hlo/module.h"
#include "hlotag/ir/operation.h"

#include <nanobind/nanobind.h>

#include <string_view>
#include <utility>

namespace hlotag::python {

/// Returns the operation of an `ir.Module`. It is valid while the caller holds the module.
ir::Operation operationOf(nanobind::handle module);

/// Bytes that are not UTF-8 become lone surrogates, which Python refuses to write.
nanobind::object toStr(std::string_view text);

/// The reverse of `toStr`.
std::string toString(nanobind::handle text);

nanobind::dict toDict(const hlo::Entries &entries);
hlo::Entries toEntries(const nanobind::dict &entries);

inline std::string_view viewOf(const nanobind::bytes &data) { return {data.c_str(), data.size()}; }

/// Runs `run` and turns errors about a module into ValueError.
template <class Run> auto checked(Run run) {
  try {
    return run();
  } catch (const wire::ModuleError &error) {
    throw nanobind::value_error(error.what());
  }
}

/// A module with the bytes that it has views of.
struct ReadModule {
  explicit ReadModule(nanobind::bytes bytes)
      : data(std::move(bytes)), module(checked([&] { return hlo::Module(viewOf(data)); })) {}

  nanobind::bytes data;
  hlo::Module module;
};

void bindHlo(nanobind::module_ &m);
void bindModule(nanobind::module_ &m);

} // namespace hlotag::python
