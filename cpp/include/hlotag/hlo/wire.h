// SPDX-License-Identifier: Apache-2.0
//
// Protobuf's wire format, for reading and changing few fields of many messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hlotag::wire {

/// The fields of a message, one after the other. Throws `std::out_of_range` where one has no end.
class Message {
public:
  explicit Message(std::string_view data) : rest_(data) {}

  /// Goes to the next field; false at the end.
  bool next();
  int field() const { return field_; }
  /// The field's value if it is a number, else 0.
  int64_t number() const { return int64_t(number_); }
  /// The field's value if it is a string or a message, else empty.
  std::string_view bytes() const { return bytes_; }
  /// The values of a repeated field, packed or not.
  void appendNumbers(std::vector<int64_t> &numbers) const;
  /// The field as it is written.
  std::string_view raw() const { return raw_; }

private:
  std::string_view rest_, bytes_, raw_;
  uint64_t number_ = 0;
  int field_ = 0;
  bool isPacked_ = false;
};

/// Write a field at the end of a message.
void append(std::string &message, int field, std::string_view bytes);
void append(std::string &message, int field, uint64_t number);

} // namespace hlotag::wire
