// SPDX-License-Identifier: Apache-2.0
//
// How is each function in the table checked? One file a subject.
#pragma once

#include "hlotag/capi/table.h"

#include <string>
#include <string_view>
#include <vector>

namespace hlotag::capi {

inline MlirStringRef ref(std::string_view text) { return {text.data(), text.size()}; }
inline std::string_view viewOf(MlirStringRef text) { return {text.data, text.length}; }

/// A print callback that appends to a `std::string`.
inline void append(MlirStringRef chunk, void *text) {
  static_cast<std::string *>(text)->append(chunk.data, chunk.length);
}

template <class T> bool same(T a, T b) { return a.ptr == b.ptr; }

/// The byte of a `bool` result. A wrong function may return other values than 0 and 1, which a
/// compiler may treat as either.
inline unsigned bitsOf(bool answer) {
  const volatile bool kept = answer;
  return *reinterpret_cast<const volatile unsigned char *>(&kept);
}

class Conformance {
public:
  explicit Conformance(MlirOperation module) : fn(capi::fn()), module(module) {}

  std::vector<std::string> run();

private:
  // reading.cpp
  void operations();
  void attributeKinds();
  void attributes();
  void dictionaries();
  void types();
  void locations();
  void values();
  void printing();
  // changing.cpp
  void changes();
  void creation();
  // running.cpp
  void diagnostics();
  void passes();

  void expect(bool ok, const char *function) {
    if (!ok)
      wrong.emplace_back(function);
  }
  std::string_view textOf(MlirIdentifier identifier) {
    return viewOf(fn.mlirIdentifierStr(identifier));
  }
  std::string_view nameOf(MlirOperation op) { return textOf(fn.mlirOperationGetName(op)); }
  MlirAttribute attr(const char *name) {
    return fn.mlirOperationGetAttributeByName(module, ref(name));
  }
  int countUses(MlirValue value);
  void moveBefore(MlirOperation next, MlirOperation op) {
    fn.mlirOperationRemoveFromParent(op);
    fn.mlirBlockInsertOwnedOperationBefore(body, next, op);
  }

  const Table &fn;
  MlirOperation module;
  MlirContext context{nullptr};
  MlirOperation f{nullptr}, pair{nullptr}, use{nullptr}, end{nullptr}, inner{nullptr};
  MlirBlock body{nullptr};
  MlirLocation file{nullptr}, name{nullptr}, call{nullptr}, fused{nullptr};
  std::vector<std::string> wrong;
};

} // namespace hlotag::capi
