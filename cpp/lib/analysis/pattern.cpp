// SPDX-License-Identifier: Apache-2.0
#include "hlotag/analysis/pattern.h"

#include "hlotag/ir/support.h"

#include <algorithm>
#include <cctype>

namespace hlotag::analysis {

namespace {

/// Returns `pattern` without leading `**/`, which every pattern of a path implies.
std::string_view withoutStars(std::string_view pattern) {
  while (ir::startsWith(pattern, "**/"))
    pattern.remove_prefix(3);
  return pattern;
}

/// Returns the length of the name in braces that `text` begins with; 0 if there is none.
size_t nameLength(std::string_view text) {
  size_t end = text.find('}');
  auto isDigit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  auto isWord = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  if (text.empty() || text[0] != '{' || end == text.npos || end == 1 || isDigit(text[1]))
    return 0;
  return std::all_of(text.begin() + 1, text.begin() + ptrdiff_t(end), isWord) ? end + 1 : 0;
}

} // namespace

/// Removes the first character from `text`, and returns it.
static std::string_view takeCharacter(std::string_view &text) {
  std::string_view character = text.substr(0, ir::characterSize(text));
  text.remove_prefix(character.size());
  return character;
}

ScopePattern::ScopePattern(std::string_view pattern, bool isWhole) {
  if (!isWhole)
    pattern = withoutStars(pattern);
  while (!isWhole && pattern.size() > 3 && ir::endsWith(pattern, "/**"))
    pattern.remove_suffix(3);
  while (!pattern.empty()) {
    size_t length = nameLength(pattern);
    if (!length) {
      tokens_.push_back({std::string(takeCharacter(pattern)), {}});
    } else {
      tokens_.push_back({{}, std::string(pattern.substr(1, length - 2))});
      pattern.remove_prefix(length);
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
  if (match)
    states_.back().match = textsOf(*match);
  return known->second;
}

Bindings ScopePattern::textsOf(const Bound *last) const {
  Bindings bindings;
  for (const Bound *bound = last; bound; bound = bound->before)
    bindings.emplace_back(tokens_[bound->token].name, bound->text);
  std::reverse(bindings.begin(), bindings.end());
  return bindings;
}

/// Reads the text of elements. Two threads at one token differ in what they have bound only, so the
/// first one is enough.
class ScopePattern::Reader {
public:
  /// `isWhole`: the pattern is for all of the text, and not for some of its elements.
  Reader(ScopePattern &pattern, const std::vector<Thread> &threads, std::string_view text,
         bool isWhole = false)
      : pattern_(pattern), text_(text), isWhole_(isWhole), seen_(2 * (pattern.tokens_.size() + 1)) {
    for (const auto &[token, bound] : threads) {
      size_t text = bound ? texts_.size() : kNoText;
      if (bound)
        texts_.push_back({kNoText, 0, 0, 0, bound});
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
  static constexpr size_t kNoText = size_t(-1);
  /// A name's part of the text, after those before it. The first may be of earlier elements.
  struct Text {
    size_t before, token, begin, end;
    const Bound *bound = nullptr; ///< null until it is kept
  };
  /// A thread within an element.
  struct Place {
    size_t token;
    size_t texts;           ///< index into `texts_`
    size_t begin = kNoText; ///< of the text of `token`, a name that is being read
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
    if (ended != threads_.end())
      match_ = ended->texts;
    else if (isWhole_)
      match_.reset();
    threads_.erase(std::remove_if(threads_.begin(), threads_.end(), isEnded), threads_.end());
    if (!isWhole_)
      add({0, kNoText});
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
      bool isOpen = place.begin != kNoText;
      if (character != "/")
        add({place.token, place.texts, isOpen ? place.begin : at_});
      if (!isOpen)
        return;
      texts_.push_back({place.texts, place.token, place.begin, at_});
      place.texts = texts_.size() - 1;
      place.begin = kNoText;
    }
  }

  void add(const Place &place) {
    size_t &seen = seen_[2 * place.token + (place.begin != kNoText)];
    if (std::exchange(seen, stamp_) != stamp_)
      threads_.push_back(place);
  }

  /// Returns the lasting form of a text and those before it.
  const Bound *keep(size_t last) {
    std::vector<size_t> unkept;
    for (; last != kNoText && !texts_[last].bound; last = texts_[last].before)
      unkept.push_back(last);
    const Bound *bound = last == kNoText ? nullptr : texts_[last].bound;
    for (; !unkept.empty(); unkept.pop_back()) {
      Text &text = texts_[unkept.back()];
      std::string part(text_.substr(text.begin, text.end - text.begin));
      text.bound = bound = &*pattern_.bound_.insert({bound, text.token, std::move(part)}).first;
    }
    return bound;
  }

  ScopePattern &pattern_;
  std::string_view text_;
  bool isWhole_;
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

TextPattern::TextPattern(std::string_view pattern) : text_(pattern) {
  if (!namesIn(pattern).empty())
    named_.emplace(pattern, /*isWhole=*/true);
}

std::optional<Bindings> TextPattern::match(std::string_view text) const {
  if (!named_)
    return ir::globMatch(text_, text) ? std::optional(Bindings()) : std::nullopt;
  const auto &start = *named_->states_[0].threads;
  ScopePattern::Reached reached = ScopePattern::Reader(*named_, start, text, true).run();
  std::optional<Bindings> found;
  if (reached.second)
    found = named_->textsOf(*reached.second);
  named_->bound_.clear(); // No state refers to these.
  return found;
}

std::optional<Bindings> TextPattern::matchSource(std::string_view file, int line,
                                                 int column) const {
  TextPattern whole(withoutStars(text_)), end("*/" + std::string(withoutStars(text_)));
  std::string text(file);
  for (const std::string &more :
       {std::string(), ":" + std::to_string(line), ":" + std::to_string(column)}) {
    text += more;
    if (std::optional<Bindings> found = whole.match(text))
      return found;
    if (std::optional<Bindings> found = end.match("/" + text))
      return found;
  }
  return std::nullopt;
}

bool matchesOp(std::string_view pattern, std::string_view name) {
  size_t dot = name.find('.');
  return ir::globMatch(pattern, name) ||
         (dot != std::string_view::npos && ir::globMatch(pattern, name.substr(dot + 1)));
}

std::vector<std::string> namesIn(std::string_view pattern) {
  std::vector<std::string> names;
  while (!pattern.empty()) {
    size_t length = nameLength(pattern);
    if (length)
      names.emplace_back(pattern.substr(1, length - 2));
    pattern.remove_prefix(std::max<size_t>(length, 1));
  }
  return names;
}

std::string whyNoPattern(std::string_view pattern, bool bindsNames) {
  for (std::string_view rest = pattern; !rest.empty();) {
    size_t length = bindsNames ? nameLength(rest) : 0;
    if (!length && std::string_view("[]!{}").find(rest[0]) != std::string_view::npos)
      return ir::concat(
          {"'", rest.substr(0, 1), "' in '", pattern,
           "' has no meaning here; patterns have * for any text and ? for one character",
           bindsNames ? ", and {n} for the text of a value" : ""});
    rest.remove_prefix(std::max<size_t>(length, 1));
  }
  std::vector<std::string> names = namesIn(pattern);
  std::sort(names.begin(), names.end());
  if (std::adjacent_find(names.begin(), names.end()) != names.end())
    return ir::concat({"a name in braces occurs twice in '", pattern, "'"});
  return "";
}

const Bindings *ScopeMatches::match(const std::string &pattern, PathId path) {
  Known &known = known_.try_emplace(pattern, Known{ScopePattern(pattern)}).first->second;
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
