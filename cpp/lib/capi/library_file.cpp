// SPDX-License-Identifier: Apache-2.0
#include "capi/library_file.h"

#include "hlotag/capi/loader_error.h"

namespace hlotag::capi {

void Bytes::fail(const std::string &reason) const { throw LoaderError(path + ": " + reason); }

const unsigned char *Bytes::at(std::uint64_t offset, std::uint64_t length, const char *what) const {
  if (offset > size || length > size - offset)
    fail(std::string("is truncated: its ") + what + " lies beyond the end of the file");
  return data + offset;
}

std::string hexadecimal(const unsigned char *bytes, std::uint64_t count) {
  static const char digits[] = "0123456789abcdef";
  std::string text;
  for (std::uint64_t i = 0; i < count; ++i) {
    text += digits[bytes[i] >> 4];
    text += digits[bytes[i] & 15];
  }
  return text;
}

std::string layoutId(std::string_view headers) {
  return "layout-" + std::to_string(std::hash<std::string_view>()(headers));
}

} // namespace hlotag::capi
