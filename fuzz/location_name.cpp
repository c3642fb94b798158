// SPDX-License-Identifier: Apache-2.0
//
// Names in locations, marks in them, and glob patterns on them.
#include "check.h"

#include "analysis/marks.h"
#include "hlotag/analysis/name_path.h"
#include "hlotag/ir/support.h"

#include <cstddef>
#include <cstdint>
#include <string>

using namespace hlotag;

namespace {

void checkName(std::string_view name) {
  std::string joined;
  for (std::string_view element : analysis::splitName(name))
    joined.append(joined.empty() && element.data() == name.data() ? "" : "/").append(element);
  fuzz::require(joined == name, "the elements make up the name", joined);
  analysis::NamePath path = analysis::parseName(name);
  size_t length = 0;
  for (const std::string &scope : path.scopes)
    length += scope.size();
  fuzz::require(length <= name.size(), "scopes are parts of the name");
  fuzz::require(name.substr(0, path.head.size()) == path.head, "the head starts the name");
}

void checkMarks(std::string_view name) {
  static analysis::MarkedName parsed; // used again, as in the pass
  bool hasMark = analysis::parseMarks(name, parsed);
  fuzz::require(!hasMark || !parsed.marks.empty() || !parsed.error.empty(),
                "a mark is read or refused");
}

/// What globMatch means, by recursion; exponential, so for short patterns only.
bool slowMatch(std::string_view pattern, std::string_view text) {
  if (pattern.empty())
    return text.empty();
  if (pattern[0] == '*')
    return slowMatch(pattern.substr(1), text) ||
           (!text.empty() && slowMatch(pattern, text.substr(1)));
  return !text.empty() && (pattern[0] == '?' || pattern[0] == text[0]) &&
         slowMatch(pattern.substr(1), text.substr(1));
}

void checkGlob(std::string_view pattern, std::string_view text) {
  bool matches = ir::globMatch(pattern, text);
  if (pattern.size() <= 8 && text.size() <= 12)
    fuzz::require(matches == slowMatch(pattern, text), "globs match as they are defined", pattern);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text(reinterpret_cast<const char *>(data), size);
  checkName(text);
  checkMarks(text);
  size_t end = text.find('\n');
  if (end != std::string_view::npos)
    checkGlob(text.substr(0, end), text.substr(end + 1));
  return 0;
}
