// SPDX-License-Identifier: Apache-2.0
#include "hlotag/analysis/name_path.h"

#include <algorithm>
#include <charconv>

namespace hlotag::analysis {
namespace {

/// Removes `head` + `(` and the closing `)`, which may be missing: the user's scope may have
/// unbalanced parentheses.
bool unwrap(std::string_view &text, std::string_view head) {
  if (text.substr(0, head.size()) != head || text.substr(head.size(), 1) != "(")
    return false;
  text.remove_prefix(head.size() + 1);
  if (!text.empty() && text.back() == ')')
    text.remove_suffix(1);
  return true;
}

/// Returns whether `element` names a call: a wrapped callee, or one of JAX's own names.
bool isCall(std::string_view element) {
  bool isCallee = element.substr(0, 4) == "jit(" || element.substr(0, 5) == "pjit(";
  return (isCallee && element.back() == ')') || element == "closed_call" ||
         element == "core_call" || element == "eval_jaxpr";
}

/// Strips transforms off the front of `element` and appends their letters.
std::string_view unwrapTransforms(std::string_view element, std::string &transforms) {
  while (true) {
    if (unwrap(element, "jvp"))
      transforms += 'j';
    else if (unwrap(element, "transpose"))
      transforms += 't';
    else if (unwrap(element, "vmap"))
      transforms += 'v';
    else
      return element;
  }
}

/// Rematerialized code repeats the enclosing scopes, `transpose(jvp(S))/jvp(S)/...`. Drops the
/// longest run of scopes before `restart` that the scopes from `restart` on begin with.
void dropRepeat(std::vector<std::string> &scopes, size_t restart) {
  constexpr std::ptrdiff_t kMost = 256; // bounds the time for malformed names
  auto middle = scopes.begin() + std::ptrdiff_t(restart);
  auto length = std::min({middle - scopes.begin(), scopes.end() - middle, kMost});
  while (!std::equal(middle - length, middle, middle))
    --length;
  scopes.erase(middle, middle + length);
}

} // namespace

std::vector<std::string_view> splitName(std::string_view name) {
  std::vector<size_t> open;    // unclosed '(' so far
  std::vector<size_t> slashes; // not known to be enclosed
  for (size_t at = 0; at < name.size(); ++at) {
    if (name[at] == '(') {
      open.push_back(at);
    } else if (name[at] == ')' && !open.empty()) {
      while (!slashes.empty() && slashes.back() > open.back())
        slashes.pop_back();
      open.pop_back();
    } else if (name[at] == '/') {
      slashes.push_back(at);
    }
  }
  std::vector<std::string_view> elements;
  size_t begin = 0;
  for (size_t slash : slashes) {
    elements.push_back(name.substr(begin, slash - begin));
    begin = slash + 1;
  }
  elements.push_back(name.substr(begin));
  return elements;
}

bool endsInCall(std::string_view name) {
  std::string transforms;
  return isCall(unwrapTransforms(splitName(name).back(), transforms));
}

std::string unescape(std::string_view name) {
  constexpr std::string_view kStart = "\x01%";
  std::string text;
  for (size_t start; (start = name.find(kStart)) != name.npos;) {
    std::string_view digits = name.substr(start + kStart.size(), 2);
    unsigned char character = 0;
    auto [end, status] =
        std::from_chars(digits.data(), digits.data() + digits.size(), character, 16);
    size_t length = kStart.size();
    text += name.substr(0, start);
    if (status == std::errc() && end == digits.data() + 2) {
      text += char(character);
      length += 2;
    } else {
      text += kStart;
    }
    name.remove_prefix(start + length);
  }
  return text += name;
}

NamePath parseName(std::string_view name) {
  NamePath path;
  std::vector<std::string_view> elements = splitName(name);
  path.head = std::string(elements.front());
  unwrapTransforms(elements.back(), path.transforms);
  // The primitive's own transforms come last, so they are appended after those of the scopes.
  std::string ofPrimitive = std::move(path.transforms);
  path.transforms.clear();
  elements.pop_back();

  size_t restart = 0;
  for (std::string_view element : elements) {
    bool isFirst = path.transforms.empty();
    size_t before = path.transforms.size();
    std::string_view scope = unwrapTransforms(element, path.transforms);
    auto added = path.transforms.begin() + std::ptrdiff_t(before);
    path.order = std::max(path.order, int(std::count(added, path.transforms.end(), 'j')));
    if (!isFirst && path.transforms.size() > before)
      restart = path.scopes.size();
    for (std::string_view part : splitName(scope)) {
      if (part == "rematted_computation")
        path.rematted = true;
      else if (!part.empty() && part != "checkpoint" && !isCall(part))
        path.scopes.push_back(unescape(part));
    }
  }
  path.transforms += ofPrimitive;
  if (restart)
    dropRepeat(path.scopes, restart);
  return path;
}

} // namespace hlotag::analysis
