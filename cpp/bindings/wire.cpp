// SPDX-License-Identifier: Apache-2.0
#include "wire.h"

#include <stdexcept>

using namespace hlotag;

static std::string_view take(std::string_view &data, uint64_t size) {
  if (size > data.size())
    throw std::out_of_range("the bytes end within a field");
  std::string_view taken = data.substr(0, size);
  data.remove_prefix(size);
  return taken;
}

static uint64_t takeVarint(std::string_view &data) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    auto byte = uint8_t(take(data, 1)[0]);
    value |= uint64_t(byte & 0x7F) << shift;
    if (byte < 0x80)
      return value;
  }
  throw std::out_of_range("a number has no end");
}

bool wire::Message::next() {
  if (rest_.empty())
    return false;
  uint64_t tag = takeVarint(rest_);
  field_ = int(tag >> 3);
  number_ = 0;
  bytes_ = {};
  isPacked_ = false;
  switch (tag & 7) {
  case 0:
    number_ = takeVarint(rest_);
    break;
  case 1:
    take(rest_, 8);
    break;
  case 2:
    bytes_ = take(rest_, takeVarint(rest_));
    isPacked_ = true;
    break;
  case 5:
    take(rest_, 4);
    break;
  default:
    throw std::out_of_range("a field is of no known kind");
  }
  return true;
}

void wire::Message::appendNumbers(std::vector<int64_t> &numbers) const {
  if (!isPacked_)
    numbers.push_back(number());
  for (std::string_view packed = bytes_; !packed.empty();)
    numbers.push_back(int64_t(takeVarint(packed)));
}
