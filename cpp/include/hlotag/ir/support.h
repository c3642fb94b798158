// SPDX-License-Identifier: Apache-2.0
//
// What do all views of the C API share? Strings, handles, errors.
#pragma once

#include "hlotag/capi/table.h"

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>

namespace hlotag::ir {

inline MlirStringRef toRef(std::string_view text) { return {text.data(), text.size()}; }
inline std::string_view toView(MlirStringRef ref) { return {ref.data, ref.length}; }

/// Joins texts. A chain of `+` compiles to several times as much code.
std::string concat(std::initializer_list<std::string_view> parts);

/// Joins texts by `separator`.
template <class Range> std::string join(const Range &parts, std::string_view separator) {
  std::string text;
  for (const auto &part : parts)
    text.append(&part == &*std::begin(parts) ? std::string_view() : separator).append(part);
  return text;
}

inline bool startsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}
inline bool endsWith(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}

/// Returns the size in bytes of the first character of UTF-8 text that is not empty.
inline size_t characterSize(std::string_view text) {
  size_t size = 1;
  while (size < text.size() && (text[size] & '\xC0') == '\x80')
    ++size;
  return size;
}

/// Glob match of the whole text: `*` matches any run of characters, `?` any one.
bool globMatch(std::string_view pattern, std::string_view text);

/// Callback for the C API's printers; `userData` is a `std::string *`.
inline void appendToString(MlirStringRef chunk, void *userData) {
  static_cast<std::string *>(userData)->append(chunk.data, chunk.length);
}

/// Base of the views: one pointer into MLIR, without ownership. Views are equal if their pointers
/// are; for attributes, identifiers and locations, which MLIR uniques, that is equality of content.
template <class Derived, class CStruct> class Handle {
public:
  Handle() = default;
  Handle(CStruct raw) : raw_(raw) {}

  explicit operator bool() const { return raw_.ptr != nullptr; }
  CStruct raw() const { return raw_; }
  const void *opaque() const { return raw_.ptr; }

  friend bool operator==(const Derived &a, const Derived &b) { return a.opaque() == b.opaque(); }
  friend bool operator!=(const Derived &a, const Derived &b) { return a.opaque() != b.opaque(); }
  friend bool operator<(const Derived &a, const Derived &b) {
    return std::less<const void *>()(a.opaque(), b.opaque());
  }

protected:
  CStruct raw_{nullptr};
};

/// A pass cannot handle something in the module. The pipeline reports the error at `location`, or
/// at the module if that is null, and fails the pass.
class IRError : public std::runtime_error {
public:
  explicit IRError(const std::string &message, MlirLocation location = {})
      : std::runtime_error(message), location(location) {}
  MlirLocation location;
};

} // namespace hlotag::ir
