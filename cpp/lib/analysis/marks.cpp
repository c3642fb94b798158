// SPDX-License-Identifier: Apache-2.0
#include "marks.h"

#include <charconv>

namespace hlotag::analysis {

namespace {

constexpr std::string_view kMark = "\x01hlotag#";
constexpr char kMarkEnd = '\x01';

/// Removes the separators around a mark that has just been left out: `a/M/b` becomes `a/b`, `t(M)`
/// becomes `t()`, `a/M` becomes `a`. A mark before more text of its element, `t(Mb)`, has no
/// separators. Returns where to read on.
size_t joinAround(std::string_view name, size_t next, std::string &out) {
  if (next < name.size() && name[next] == '/')
    return next + 1;
  bool isWholeElement = next == name.size() || name[next] == ')';
  if (isWholeElement && !out.empty() && out.back() == '/')
    out.pop_back();
  return next;
}

} // namespace

bool parseMarks(std::string_view name, MarkedName &result) {
  size_t mark = name.find(kMark);
  if (mark == std::string_view::npos)
    return false;
  result.marks.clear();
  result.stripped.clear();
  result.error.clear();
  size_t at = 0;
  for (; mark != std::string_view::npos; mark = name.find(kMark, at)) {
    result.stripped += name.substr(at, mark - at);
    const char *digits = name.data() + mark + kMark.size();
    const char *last = name.data() + name.size();
    size_t index = 0;
    auto [end, status] = std::from_chars(digits, last, index);
    bool isMalformed = status != std::errc() || end == last || *end != kMarkEnd;
    if (isMalformed) {
      result.error = "malformed mark in location name: expected a number and the escape character "
                     "1 after 'hlotag#'";
      return true;
    }
    result.marks.push_back(index);
    at = joinAround(name, size_t(end + 1 - name.data()), result.stripped);
  }
  result.stripped += name.substr(at);
  return true;
}

} // namespace hlotag::analysis
