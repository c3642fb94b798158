// SPDX-License-Identifier: Apache-2.0
#include "scope_pattern.h"

#include "hlotag/analysis/name_path.h"
#include "hlotag/ir/support.h"

#include <algorithm>

namespace hlotag::analysis {

ScopePattern::ScopePattern(std::string_view pattern) {
  while (ir::startsWith(pattern, "**/"))
    pattern.remove_prefix(3);
  while (pattern.size() > 3 && ir::endsWith(pattern, "/**"))
    pattern.remove_suffix(3);
  for (size_t at = 0; at < pattern.size(); ++at) {
    size_t end = pattern[at] == '{' ? pattern.find('}', at) : std::string_view::npos;
    if (end == std::string_view::npos) {
      tokens_.push_back({pattern[at], {}});
    } else {
      tokens_.push_back({0, std::string(pattern.substr(at + 1, end - at - 1))});
      at = end;
    }
  }
  tokens_.push_back({'/', {}}); // the end of an element
}

bool ScopePattern::Thread::isBinding(const Token &token) const {
  return !token.name.empty() && !bindings.empty() && bindings.back().first == token.name;
}

void ScopePattern::add(std::vector<Thread> &threads, Thread thread) {
  if (std::find(threads.begin(), threads.end(), thread) == threads.end())
    threads.push_back(std::move(thread));
}

/// Adds the threads that `thread` becomes by `character`.
void ScopePattern::step(Thread thread, char character, std::vector<Thread> &after) const {
  for (; thread.next < tokens_.size(); ++thread.next) {
    const Token &token = tokens_[thread.next];
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

ScopePattern::State ScopePattern::next(const State &outer, std::string_view element) const {
  State state = outer;
  auto read = [&](char character) {
    std::vector<Thread> after;
    for (Thread &thread : state.threads)
      step(std::move(thread), character, after);
    auto ended = std::find_if(after.begin(), after.end(),
                              [&](const Thread &thread) { return thread.next == tokens_.size(); });
    if (ended != after.end())
      state.match = ended->bindings;
    state.threads = std::move(after);
  };
  std::for_each(element.begin(), element.end(), read);
  read('/');
  add(state.threads, {});
  return state;
}

PathId Scopes::named(PathId path) {
  // Up to a known path, then down again: paths are as long as calls are deep.
  std::vector<PathId> unknown;
  for (; path && !named_.find(path); path = paths_.outer(path))
    unknown.push_back(path);
  PathId names = path ? *named_.find(path) : 0;
  for (; !unknown.empty(); unknown.pop_back()) {
    std::string_view element = paths_.element(unknown.back()), outer = names_.element(names);
    names = isRegionName(outer, element) ? names_.outer(names) : names_.append(names, element);
    *named_.insert(unknown.back()).first = names;
  }
  return names;
}

const ScopePattern::State &Scopes::stateAfter(Known &known, PathId named) {
  std::vector<PathId> unknown;
  for (; named && !known.states.find(named); named = names_.outer(named))
    unknown.push_back(named);
  ScopePattern::State state = named ? *known.states.find(named) : ScopePattern::State();
  for (; !unknown.empty(); unknown.pop_back()) {
    named = unknown.back();
    state = known.pattern.next(state, names_.element(named));
    *known.states.insert(named).first = state;
  }
  return *known.states.find(named);
}

const Bindings *Scopes::match(const std::string &pattern, PathId path) {
  Known &known = known_.try_emplace(pattern, Known{ScopePattern(pattern)}).first->second;
  PathId names = named(path);
  if (!names && !known.states.find(0)) // An operation without scopes has one that is empty.
    *known.states.insert(0).first = known.pattern.next({}, "");
  const ScopePattern::State &state = names ? stateAfter(known, names) : *known.states.find(0);
  return state.match ? &*state.match : nullptr;
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
