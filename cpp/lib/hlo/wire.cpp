// SPDX-License-Identifier: Apache-2.0
#include "hlotag/hlo/wire.h"

using namespace hlotag;

static std::string_view take(std::string_view &data, uint64_t size) {
  if (size > data.size())
    throw wire::ModuleError("its bytes end within a field");
  std::string_view taken = data.substr(0, size);
  data.remove_prefix(size);
  return taken;
}

static uint64_t takeVarint(std::string_view &data) {
  uint64_t value = 0;
  for (size_t at = 0; at < data.size() && at < 10; ++at) {
    auto byte = uint8_t(data[at]);
    value |= uint64_t(byte & 0x7F) << 7 * at;
    if (byte < 0x80) {
      data.remove_prefix(at + 1);
      return value;
    }
  }
  throw wire::ModuleError("a number has no end");
}

bool wire::Message::next() {
  if (rest_.empty())
    return false;
  std::string_view start = rest_;
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
    throw wire::ModuleError("a field is of no known kind");
  }
  raw_ = start.substr(0, start.size() - rest_.size());
  return true;
}

void wire::Message::appendNumbers(std::vector<int64_t> &numbers) const {
  if (!isPacked_)
    numbers.push_back(number());
  for (std::string_view packed = bytes_; !packed.empty();)
    numbers.push_back(int64_t(takeVarint(packed)));
}

std::string_view wire::bytesIn(std::string_view message, int field) {
  std::string_view found;
  for (Message at(message); at.next();)
    if (at.field() == field)
      found = at.bytes();
  return found;
}

int64_t wire::numberIn(std::string_view message, int field, int64_t otherwise) {
  for (Message at(message); at.next();)
    if (at.field() == field)
      otherwise = at.number();
  return otherwise;
}

std::vector<int64_t> wire::numbersIn(std::string_view message, int field) {
  std::vector<int64_t> found;
  for (Message at(message); at.next();)
    if (at.field() == field)
      at.appendNumbers(found);
  return found;
}

static void appendVarint(std::string &message, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    message += char(value | 0x80);
  message += char(value);
}

void wire::append(std::string &message, int field, std::string_view bytes) {
  appendVarint(message, uint64_t(field) << 3 | 2);
  appendVarint(message, bytes.size());
  message += bytes;
}

void wire::append(std::string &message, int field, uint64_t number) {
  appendVarint(message, uint64_t(field) << 3);
  appendVarint(message, number);
}
