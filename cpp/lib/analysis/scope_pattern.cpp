// SPDX-License-Identifier: Apache-2.0
#include "hlotag/analysis/scope_pattern.h"

#include "hlotag/ir/support.h"

#include <algorithm>

namespace hlotag::analysis {

/// Removes the first character from `text`, and returns it.
static std::string_view takeCharacter(std::string_view &text) {
  std::string_view character = text.substr(0, ir::characterSize(text));
  text.remove_prefix(character.size());
  return character;
}

ScopePattern::ScopePattern(std::string_view pattern) {
  while (ir::startsWith(pattern, "**/"))
    pattern.remove_prefix(3);
  while (pattern.size() > 3 && ir::endsWith(pattern, "/**"))
    pattern.remove_suffix(3);
  while (!pattern.empty()) {
    size_t end = pattern[0] == '{' ? pattern.find('}') : std::string_view::npos;
    if (end == std::string_view::npos) {
      tokens_.push_back({std::string(takeCharacter(pattern)), {}});
    } else {
      tokens_.push_back({{}, std::string(pattern.substr(1, end - 1))});
      pattern.remove_prefix(end + 1);
    }
  }
  tokens_.push_back({"/", {}}); // the end of an element
  numberOf({{Thread()}, {}});
}

bool ScopePattern::Thread::isBinding(const Token &token) const {
  return token.text.empty() && !bindings.empty() && bindings.back().first == token.name;
}

void ScopePattern::add(Threads &threads, Thread thread) {
  if (std::find(threads.begin(), threads.end(), thread) == threads.end())
    threads.push_back(std::move(thread));
}

ScopePattern::State ScopePattern::numberOf(Reached reached) {
  auto [known, isNew] = numbers_.try_emplace(std::move(reached), State(states_.size()));
  if (isNew)
    states_.push_back(&known->first);
  return known->second;
}

/// Adds the threads that `thread` becomes by `character`.
void ScopePattern::step(Thread thread, std::string_view character, Threads &after) const {
  for (; thread.next < tokens_.size(); ++thread.next) {
    const Token &token = tokens_[thread.next];
    if (token.text == "*") {
      add(after, thread);
      continue; // A star may be empty.
    }
    if (!token.text.empty()) {
      if (token.text == "?" || token.text == character)
        add(after, {thread.next + 1, thread.bindings});
      return;
    }
    bool isLonger = thread.isBinding(token);
    if (character != "/") {
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

ScopePattern::State ScopePattern::next(State before, std::string_view elements) {
  Reached reached{states_[before]->threads, {}};
  auto isEnded = [&](const Thread &thread) { return thread.next == tokens_.size(); };
  auto read = [&](std::string_view character) {
    Threads &threads = reached.threads, from = std::exchange(threads, {});
    for (Thread &thread : from)
      step(std::move(thread), character, threads);
    if (character != "/")
      return;
    if (auto ended = std::find_if(threads.begin(), threads.end(), isEnded); ended != threads.end())
      reached.match = ended->bindings;
    threads.erase(std::remove_if(threads.begin(), threads.end(), isEnded), threads.end());
    add(threads, {});
  };
  while (!elements.empty())
    read(takeCharacter(elements));
  read("/");
  return numberOf(std::move(reached));
}

const Bindings *ScopeMatches::match(const std::string &pattern, PathId path) {
  Known &known = known_.try_emplace(pattern, Known{ScopePattern(pattern)}).first->second;
  // An operation without scopes has one that is empty.
  if (!path)
    return known.pattern.matchAt(known.pattern.next(0, ""));
  // Up to a known path, then down again: paths are as long as calls are deep.
  std::vector<PathId> unknown;
  for (; path && !known.states.find(path); path = paths_.outer(path))
    unknown.push_back(path);
  After after = path ? *known.states.find(path) : After();
  for (; !unknown.empty(); unknown.pop_back()) {
    after.state = known.pattern.next(after.state, paths_.element(unknown.back()));
    if (const Bindings *match = known.pattern.matchAt(after.state))
      after.match = match;
    *known.states.insert(unknown.back()).first = after;
  }
  return after.match;
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
