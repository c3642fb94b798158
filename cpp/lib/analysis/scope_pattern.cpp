// SPDX-License-Identifier: Apache-2.0
#include "scope_pattern.h"

#include "hlotag/ir/support.h"

#include <algorithm>

namespace hlotag::analysis {

namespace {

/// An element of a pattern: a character, `*`, `?`, or a name in braces.
struct Token {
  char character = 0;
  std::string name; ///< without the braces; empty for a character
};

std::vector<Token> tokensOf(std::string_view pattern) {
  while (ir::startsWith(pattern, "**/"))
    pattern.remove_prefix(3);
  while (pattern.size() > 3 && ir::endsWith(pattern, "/**"))
    pattern.remove_suffix(3);
  std::vector<Token> tokens;
  for (size_t at = 0; at < pattern.size(); ++at) {
    size_t end = pattern[at] == '{' ? pattern.find('}', at) : std::string_view::npos;
    if (end == std::string_view::npos) {
      tokens.push_back({pattern[at], {}});
    } else {
      tokens.push_back({0, std::string(pattern.substr(at + 1, end - at - 1))});
      at = end;
    }
  }
  tokens.push_back({'/', {}}); // the end of an element
  return tokens;
}

/// A way in which the pattern matches the text so far.
struct Thread {
  size_t next;
  Bindings bindings;

  bool isBinding(const Token &token) const {
    return !token.name.empty() && !bindings.empty() && bindings.back().first == token.name;
  }
  friend bool operator==(const Thread &a, const Thread &b) {
    return a.next == b.next && a.bindings == b.bindings;
  }
};

void add(std::vector<Thread> &threads, Thread thread) {
  if (std::find(threads.begin(), threads.end(), thread) == threads.end())
    threads.push_back(std::move(thread));
}

/// Adds the threads that `thread` becomes by `character`.
void step(const std::vector<Token> &tokens, Thread thread, char character,
          std::vector<Thread> &after) {
  for (; thread.next < tokens.size(); ++thread.next) {
    const Token &token = tokens[thread.next];
    if (token.character == '*') {
      add(after, thread);
      continue; // A star may be empty.
    }
    if (token.name.empty()) {
      if (token.character == '?' || token.character == character)
        add(after, {thread.next + 1, thread.bindings});
      return;
    }
    bool isLonger = thread.isBinding(token);
    if (character != '/') {
      Thread longer = thread;
      if (!isLonger)
        longer.bindings.emplace_back(token.name, std::string());
      longer.bindings.back().second += character;
      add(after, std::move(longer));
    }
    if (!isLonger)
      return;
  }
}

} // namespace

bool hasNames(std::string_view pattern) { return pattern.find('{') != std::string_view::npos; }

Bindings bindScope(std::string_view pattern, std::string_view scope) {
  if (!hasNames(pattern))
    return {};
  std::vector<Token> tokens = tokensOf(pattern);
  Bindings found;
  std::vector<Thread> threads{{0, {}}};
  for (char character : std::string(scope) + "/") {
    std::vector<Thread> after;
    for (Thread &thread : threads)
      step(tokens, std::move(thread), character, after);
    auto ended = std::find_if(after.begin(), after.end(),
                              [&](const Thread &thread) { return thread.next == tokens.size(); });
    if (ended != after.end())
      found = ended->bindings;
    threads = std::move(after);
    if (character == '/')
      add(threads, {0, {}});
  }
  return found;
}

std::string substitute(std::string text, const Bindings &bindings) {
  for (const auto &[name, value] : bindings) {
    std::string braced = "{" + name + "}";
    for (size_t at = 0; (at = text.find(braced, at)) != std::string::npos; at += value.size())
      text.replace(at, braced.size(), value);
  }
  return text;
}

} // namespace hlotag::analysis
