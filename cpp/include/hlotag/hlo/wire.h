// SPDX-License-Identifier: Apache-2.0
//
// How are single fields of a protobuf message read and written, the others kept as bytes?
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace hlotag::wire {

/// The bytes are not a module. what() says why.
class ModuleError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Iterates over the fields of a message. Throws ModuleError if a field is cut off.
class Message {
public:
  explicit Message(std::string_view data) : rest_(data) {}

  /// Moves to the next field; returns false at the end.
  bool next();
  int field() const { return field_; }
  /// The value of a number, else 0.
  int64_t number() const { return int64_t(number_); }
  /// The value of a string or message, else empty.
  std::string_view bytes() const { return bytes_; }
  /// Appends the values of a repeated field, packed or not.
  void appendNumbers(std::vector<int64_t> &numbers) const;
  /// The bytes of the whole field.
  std::string_view raw() const { return raw_; }

private:
  std::string_view rest_, bytes_, raw_;
  uint64_t number_ = 0;
  int field_ = 0;
  bool isPacked_ = false;
};

/// Return the last value of a field, of a string or message or of a number; `otherwise` if missing.
std::string_view bytesIn(std::string_view message, int field);
int64_t numberIn(std::string_view message, int field, int64_t otherwise);
/// Returns the values of a repeated field.
std::vector<int64_t> numbersIn(std::string_view message, int field);

/// Append a field to a message.
void append(std::string &message, int field, std::string_view bytes);
void append(std::string &message, int field, uint64_t number);

} // namespace hlotag::wire
