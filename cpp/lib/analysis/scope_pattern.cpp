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
  numberOf({{{0, nullptr}}, {}});
}

ScopePattern::State ScopePattern::numberOf(Reached reached) {
  auto [known, isNew] = numbers_.try_emplace(std::move(reached), State(states_.size()));
  if (!isNew)
    return known->second;
  const auto &[threads, match] = known->first;
  states_.push_back({&threads, {}});
  if (match) {
    Bindings &bindings = states_.back().match.emplace();
    for (const Bound *bound = *match; bound; bound = bound->before)
      bindings.emplace_back(tokens_[bound->token].name, bound->text);
    std::reverse(bindings.begin(), bindings.end());
  }
  return known->second;
}

/// Reads the text of elements. Two threads at one token differ in what they have bound only, so the
/// first one is enough.
class ScopePattern::Reader {
public:
  Reader(ScopePattern &pattern, const std::vector<Thread> &threads, std::string_view text)
      : pattern_(pattern), text_(text), seen_(2 * (pattern.tokens_.size() + 1)) {
    for (const auto &[token, bound] : threads) {
      size_t text = bound ? texts_.size() : kNone;
      if (bound)
        texts_.push_back({kNone, 0, 0, 0, bound});
      threads_.push_back({token, text});
    }
  }

  Reached run() {
    for (std::string_view rest = text_; !rest.empty();)
      read(takeCharacter(rest));
    at_ = text_.size();
    read("/");
    Reached reached;
    for (const Place &place : threads_)
      reached.first.emplace_back(place.token, keep(place.texts));
    if (match_)
      reached.second = keep(*match_);
    return reached;
  }

private:
  static constexpr size_t kNone = size_t(-1);
  /// A name's part of the text, after those before it. The first may be of earlier elements.
  struct Text {
    size_t before, token, begin, end;
    const Bound *bound = nullptr; ///< null until it is kept
  };
  /// A thread within an element.
  struct Place {
    size_t token;
    size_t texts;         ///< index into `texts_`
    size_t begin = kNone; ///< of the text of `token`, a name that is being read
  };

  void read(std::string_view character) {
    std::vector<Place> from = std::exchange(threads_, {});
    ++stamp_;
    for (const Place &place : from)
      step(place, character);
    at_ += character.size();
    if (character != "/")
      return;
    auto isEnded = [&](const Place &place) { return place.token == pattern_.tokens_.size(); };
    auto ended = std::find_if(threads_.begin(), threads_.end(), isEnded);
    match_ = ended == threads_.end() ? match_ : ended->texts;
    threads_.erase(std::remove_if(threads_.begin(), threads_.end(), isEnded), threads_.end());
    add({0, kNone});
  }

  /// Adds the threads that `place` becomes by `character`.
  void step(Place place, std::string_view character) {
    for (; place.token < pattern_.tokens_.size(); ++place.token) {
      const Token &token = pattern_.tokens_[place.token];
      if (token.text == "*") {
        add(place);
        continue; // A star may be empty.
      }
      if (!token.text.empty()) {
        if (token.text == "?" || token.text == character)
          add({place.token + 1, place.texts});
        return;
      }
      bool isOpen = place.begin != kNone;
      if (character != "/")
        add({place.token, place.texts, isOpen ? place.begin : at_});
      if (!isOpen)
        return;
      texts_.push_back({place.texts, place.token, place.begin, at_});
      place.texts = texts_.size() - 1;
      place.begin = kNone;
    }
  }

  void add(const Place &place) {
    size_t &seen = seen_[2 * place.token + (place.begin != kNone)];
    if (std::exchange(seen, stamp_) != stamp_)
      threads_.push_back(place);
  }

  /// Returns the lasting form of a text and those before it.
  const Bound *keep(size_t last) {
    std::vector<size_t> unkept;
    for (; last != kNone && !texts_[last].bound; last = texts_[last].before)
      unkept.push_back(last);
    const Bound *bound = last == kNone ? nullptr : texts_[last].bound;
    for (; !unkept.empty(); unkept.pop_back()) {
      Text &text = texts_[unkept.back()];
      std::string part(text_.substr(text.begin, text.end - text.begin));
      text.bound = bound = &*pattern_.bound_.insert({bound, text.token, std::move(part)}).first;
    }
    return bound;
  }

  ScopePattern &pattern_;
  std::string_view text_;
  size_t at_ = 0; // of the next character in `text_`
  std::vector<Place> threads_;
  std::vector<Text> texts_;
  std::optional<size_t> match_;
  std::vector<size_t> seen_; // by token, and whether its text is being read: the last stamp
  size_t stamp_ = 0;
};

ScopePattern::State ScopePattern::next(State before, std::string_view elements) {
  return numberOf(Reader(*this, *states_[before].threads, elements).run());
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
