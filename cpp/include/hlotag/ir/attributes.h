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
  NamedAttribute(Identifier name, Attribute value) : name(name), value(value) {}
  NamedAttribute(MlirNamedAttribute raw) : name(raw.name), value(raw.attribute) {}
  Identifier name;
  Attribute value;
};

/// A range over the numbered parts of something of the C API: regions, operands, entries, ...
/// `size` and `at` are members of its table.
template <class Raw, class T, auto size_, auto at> class NumberedRange {
public:
  class iterator {
  public:
    iterator(Raw owner, intptr_t index) : owner_(owner), index_(index) {}
    T operator*() const { return (capi::fn().*at)(owner_, index_); }
    iterator &operator++() { return ++index_, *this; }
    bool operator!=(const iterator &other) const { return index_ != other.index_; }

  private:
    Raw owner_;
    intptr_t index_;
  };
  explicit NumberedRange(Raw owner) : owner_(owner) {}
  intptr_t size() const { return (capi::fn().*size_)(owner_); }
  bool empty() const { return size() == 0; }
  T operator[](intptr_t index) const { return (capi::fn().*at)(owner_, index); }
  iterator begin() const { return {owner_, 0}; }
  iterator end() const { return {owner_, size()}; }

private:
  Raw owner_;
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
  /// Returns the value of `key`, or null.
  Attribute lookup(std::string_view key) const {
    return capi::fn().mlirDictionaryAttrGetElementByName(raw_, toRef(key));
  }

  using Entries =
      NumberedRange<MlirAttribute, NamedAttribute, &capi::Table::mlirDictionaryAttrGetNumElements,
                    &capi::Table::mlirDictionaryAttrGetElement>;
  intptr_t size() const { return Entries(raw_).size(); }
  bool empty() const { return size() == 0; }
  NamedAttribute operator[](intptr_t index) const { return Entries(raw_)[index]; }
  Entries::iterator begin() const { return Entries(raw_).begin(); }
  Entries::iterator end() const { return Entries(raw_).end(); }
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

  using Elements =
      NumberedRange<MlirAttribute, Attribute, &capi::Table::mlirArrayAttrGetNumElements,
                    &capi::Table::mlirArrayAttrGetElement>;
  intptr_t size() const { return Elements(raw_).size(); }
  Attribute operator[](intptr_t index) const { return Elements(raw_)[index]; }
  Elements::iterator begin() const { return Elements(raw_).begin(); }
  Elements::iterator end() const { return Elements(raw_).end(); }
};

} // namespace hlotag::ir
