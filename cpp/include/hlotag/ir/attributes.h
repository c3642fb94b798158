// SPDX-License-Identifier: Apache-2.0
//
// How are identifiers and attributes read and made?
#pragma once

#include "hlotag/ir/support.h"

#include <vector>

namespace hlotag::ir {

/// The interned name of an operation or attribute. Comparison is by pointer.
class Identifier : public Handle<Identifier, MlirIdentifier> {
public:
  using Handle::Handle;
  static Identifier get(MlirContext context, std::string_view text) {
    return capi::fn().mlirIdentifierGet(context, toRef(text));
  }
  std::string_view str() const { return toView(capi::fn().mlirIdentifierStr(raw_)); }
};

class Attribute : public Handle<Attribute, MlirAttribute> {
public:
  using Handle::Handle;
  std::string str() const {
    std::string text;
    capi::fn().mlirAttributePrint(raw_, appendToString, &text);
    return text;
  }
  static bool classof(Attribute) { return true; }
};

/// Returns `attr` as a `T`; null if `attr` is null or of another kind.
template <class T> T dynCast(Attribute attr) {
  return attr && T::classof(attr) ? T(attr.raw()) : T();
}
template <class T> bool isa(Attribute attr) { return attr && T::classof(attr); }

class StringAttr : public Attribute {
public:
  using Attribute::Attribute;
  static StringAttr get(MlirContext context, std::string_view text) {
    return capi::fn().mlirStringAttrGet(context, toRef(text));
  }
  static bool classof(Attribute attr) { return capi::fn().mlirAttributeIsAString(attr.raw()); }
  std::string_view value() const { return toView(capi::fn().mlirStringAttrGetValue(raw_)); }
};

class FlatSymbolRefAttr : public Attribute {
public:
  using Attribute::Attribute;
  static FlatSymbolRefAttr get(MlirContext context, std::string_view symbol) {
    return capi::fn().mlirFlatSymbolRefAttrGet(context, toRef(symbol));
  }
  static bool classof(Attribute attr) {
    return capi::fn().mlirAttributeIsAFlatSymbolRef(attr.raw());
  }
  std::string_view value() const { return toView(capi::fn().mlirFlatSymbolRefAttrGetValue(raw_)); }
};

struct NamedAttribute {
  Identifier name;
  Attribute value;
};

/// Iterator over `owner[0]` to `owner[size() - 1]`, for views whose C API works by index.
template <class Owner> class IndexIterator {
public:
  IndexIterator(const Owner *owner, intptr_t index) : owner_(owner), index_(index) {}
  auto operator*() const { return (*owner_)[index_]; }
  IndexIterator &operator++() { return ++index_, *this; }
  bool operator!=(const IndexIterator &other) const { return index_ != other.index_; }

private:
  const Owner *owner_;
  intptr_t index_;
};

/// Entries are sorted by name and unique.
class DictionaryAttr : public Attribute {
public:
  using Attribute::Attribute;
  static DictionaryAttr get(MlirContext context, const std::vector<NamedAttribute> &entries) {
    static_assert(sizeof(NamedAttribute) == sizeof(MlirNamedAttribute));
    return capi::fn().mlirDictionaryAttrGet(
        context, intptr_t(entries.size()),
        reinterpret_cast<const MlirNamedAttribute *>(entries.data()));
  }
  static bool classof(Attribute attr) { return capi::fn().mlirAttributeIsADictionary(attr.raw()); }
  intptr_t size() const { return capi::fn().mlirDictionaryAttrGetNumElements(raw_); }
  bool empty() const { return size() == 0; }
  NamedAttribute operator[](intptr_t index) const {
    MlirNamedAttribute entry = capi::fn().mlirDictionaryAttrGetElement(raw_, index);
    return {entry.name, entry.attribute};
  }
  /// Returns the value of `key`, or null.
  Attribute lookup(std::string_view key) const {
    return capi::fn().mlirDictionaryAttrGetElementByName(raw_, toRef(key));
  }
  IndexIterator<DictionaryAttr> begin() const { return {this, 0}; }
  IndexIterator<DictionaryAttr> end() const { return {this, size()}; }
};

class ArrayAttr : public Attribute {
public:
  using Attribute::Attribute;
  static ArrayAttr get(MlirContext context, const std::vector<Attribute> &elements) {
    static_assert(sizeof(Attribute) == sizeof(MlirAttribute));
    return capi::fn().mlirArrayAttrGet(context, intptr_t(elements.size()),
                                       reinterpret_cast<const MlirAttribute *>(elements.data()));
  }
  static bool classof(Attribute attr) { return capi::fn().mlirAttributeIsAArray(attr.raw()); }
  intptr_t size() const { return capi::fn().mlirArrayAttrGetNumElements(raw_); }
  bool empty() const { return size() == 0; }
  Attribute operator[](intptr_t index) const {
    return capi::fn().mlirArrayAttrGetElement(raw_, index);
  }
  IndexIterator<ArrayAttr> begin() const { return {this, 0}; }
  IndexIterator<ArrayAttr> end() const { return {this, size()}; }
};

} // namespace hlotag::ir
