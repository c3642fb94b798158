// SPDX-License-Identifier: Apache-2.0
#include "hlotag/ir/support.h"

std::string hlotag::ir::concat(std::initializer_list<std::string_view> parts) {
  std::string text;
  for (std::string_view part : parts)
    text += part;
  return text;
}
