// SPDX-License-Identifier: Apache-2.0
//
// How is a structured attribute read, with an error that names the malformed part?
#pragma once

#include "hlotag/ir/ir.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hlotag::analysis {

/// An attribute, which may be null, and where it is: `hlotag.tags[0].forward`. All members throw
/// IRError, which names the malformed part, if it is of another kind.
class Field {
public:
  Field(ir::Attribute attr, std::string where) : attr_(attr), where_(std::move(where)) {}

  explicit operator bool() const { return bool(attr_); }
  Field renamed(std::string where) const { return {attr_, std::move(where)}; }

  ir::DictionaryAttr dictionary() const { return as<ir::DictionaryAttr>("a dictionary"); }
  /// The values are strings, bools or the sentinel of a removed key.
  ir::DictionaryAttr entries() const {
    for (ir::NamedAttribute entry : dictionary())
      if (!ir::isa<ir::StringAttr>(entry.value) && !ir::isUnset(entry.value) &&
          !capi::fn().mlirAttributeIsABool(entry.value.raw()))
        (*this)[entry.name.str()].failUnless("a string or a bool");
    return dictionary();
  }
  std::string text() const { return std::string(as<ir::StringAttr>("a string").value()); }
  Field operator[](std::string_view key) const {
    return {dictionary().lookup(key), ir::concat({where_, ".", key})};
  }
  std::vector<Field> elements() const {
    auto list = as<ir::ArrayAttr>("an array");
    std::vector<Field> found;
    found.reserve(size_t(list.size()));
    for (intptr_t i = 0; i < list.size(); ++i)
      found.emplace_back(list[i], ir::concat({where_, "[", std::to_string(i), "]"}));
    return found;
  }

  [[noreturn]] void fail(std::string_view what) const {
    throw ir::IRError(ir::concat({"'", where_, "' ", what}));
  }
  [[noreturn]] void failUnless(std::string_view kind) const {
    fail(ir::concat({"must be ", kind, ", but is ", attr_ ? attr_.str() : "missing"}));
  }

private:
  template <class T> T as(std::string_view kind) const {
    T found = ir::dynCast<T>(attr_);
    if (!found)
      failUnless(kind);
    return found;
  }

  ir::Attribute attr_;
  std::string where_;
};

} // namespace hlotag::analysis
