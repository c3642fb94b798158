// SPDX-License-Identifier: Apache-2.0
//
// Small glue between the C API's structs and C++: strings, pointer handles, errors.
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

/// Texts one after the other. A chain of `+` is several times as much machine code.
std::string concat(std::initializer_list<std::string_view> parts);

/// A callback for the C API's printers; `userData` is a `std::string *`.
inline void appendToString(MlirStringRef chunk, void *userData) {
  static_cast<std::string *>(userData)->append(chunk.data, chunk.length);
}

/// Base of the views: one pointer into MLIR, owning nothing. Equality is identity, which for the
/// uniqued ones (attributes, identifiers, locations) is equality of content.
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

/// Starts to fetch what lies there.
inline void prefetch(const void *address) {
#ifdef __GNUC__
  __builtin_prefetch(address);
#else
  (void)address;
#endif
}

/// Hash for views as keys of the standard's unordered containers.
struct HandleHash {
  template <class T> size_t operator()(const T &handle) const {
    auto bits = reinterpret_cast<uintptr_t>(handle.opaque());
    return (bits >> 4) ^ (bits >> 13);
  }
};

/// Something in the module that no pass can work with. Whoever runs the pass turns it into an
/// error diagnostic at `location` and fails the pass.
class IRError : public std::runtime_error {
public:
  IRError(MlirLocation location, const std::string &message)
      : std::runtime_error(message), location(location) {}
  MlirLocation location;
};

} // namespace hlotag::ir
