// SPDX-License-Identifier: Apache-2.0
#include "marks.h"

#include <charconv>

namespace hlotag::passes {

namespace {

constexpr std::string_view kMark = "\x01hlotag#";
constexpr char kMarkEnd = '\x01';
constexpr std::string_view kTranspose = "transpose";

/// Follows the brackets of a name to know what is inside a `transpose(...)`.
class Nesting {
public:
  void open(std::string_view before) {
    size_t start = before.find_last_of("/(");
    std::string_view word = start == std::string_view::npos ? before : before.substr(start + 1);
    bool transposes = word == kTranspose;
    open_.push_back(transposes);
    depth_ += transposes;
  }
  void close() {
    // A user's scope may hold stray brackets.
    if (open_.empty())
      return;
    depth_ -= open_.back();
    open_.pop_back();
  }
  bool isTransposed() const { return depth_ > 0; }

private:
  std::vector<bool> open_;
  size_t depth_ = 0;
};

/// The separators around a mark that has just been left out: `a/M/b` becomes `a/b`, `t(M)` becomes
/// `t()`, `a/M` becomes `a`. A mark before more text of its element, `t(Mb)`, has none. Returns
/// where to read on.
size_t joinAround(std::string_view name, size_t next, std::string &out) {
  if (next < name.size() && name[next] == '/')
    return next + 1;
  bool isWholeElement = next == name.size() || name[next] == ')';
  if (isWholeElement && !out.empty() && out.back() == '/')
    out.pop_back();
  return next;
}

} // namespace

bool hasMark(std::string_view name) { return name.find(kMark) != std::string_view::npos; }

ParsedName parseName(std::string_view name) {
  ParsedName result;
  Nesting nesting;
  size_t at = 0;
  while (at < name.size()) {
    if (name.substr(at, kMark.size()) != kMark) {
      if (name[at] == '(')
        nesting.open(name.substr(0, at));
      else if (name[at] == ')')
        nesting.close();
      result.isTransposed |= nesting.isTransposed();
      result.stripped += name[at++];
      continue;
    }
    const char *digits = name.data() + at + kMark.size();
    const char *last = name.data() + name.size();
    size_t index = 0;
    auto [end, status] = std::from_chars(digits, last, index);
    bool isMalformed = status != std::errc() || end == last || *end != kMarkEnd;
    if (isMalformed) {
      result.error =
          "malformed mark in location name: expected a number and the escape character 1 "
          "after 'hlotag#'";
      return result;
    }
    result.marks.push_back({index, nesting.isTransposed()});
    at = joinAround(name, size_t(end + 1 - name.data()), result.stripped);
  }
  return result;
}

} // namespace hlotag::passes
