// SPDX-License-Identifier: Apache-2.0
#include "hlotag/ir/nesting.h"

#include <algorithm>

namespace hlotag::ir {

namespace {

/// Returns the index after the closing quote of the string that starts at `at`.
size_t endOfString(std::string_view text, size_t at) {
  for (++at; at < text.size() && text[at] != '"' && text[at] != '\n'; ++at)
    at += text[at] == '\\';
  return std::min(at + 1, text.size());
}

} // namespace

size_t nestingDepth(std::string_view text) {
  size_t depth = 0, deepest = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    switch (text[at]) {
    case '"':
      at = endOfString(text, at) - 1;
      break;
    case '/':
      if (text.substr(at, 2) == "//")
        at = std::min(text.find('\n', at), text.size());
      break;
    case '(':
    case '[':
    case '{':
    case '<':
      deepest = std::max(deepest, ++depth);
      break;
    case '>':
      // No bracket: an arrow, or `>=` in an affine set.
      if ((at && text[at - 1] == '-') || text.substr(at, 2) == ">=")
        break;
      [[fallthrough]];
    case ')':
    case ']':
    case '}':
      depth -= depth > 0;
      break;
    default:
      break;
    }
  }
  return deepest;
}

} // namespace hlotag::ir
