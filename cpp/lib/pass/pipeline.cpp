// SPDX-License-Identifier: Apache-2.0
#include "hlotag/pass/pipeline.h"
#include "hlotag/pass/registry.h"

namespace hlotag::pass {

namespace {

constexpr std::string_view kOurPrefix = "hlotag-";
constexpr std::string_view kAnchor = "builtin.module";

using detail::isSpace;
bool isDelimiter(char c) { return c == ',' || c == '{' || c == '}' || c == '(' || c == ')'; }

/// Returns the line of `text` around `offset`, with a caret below.
std::string showPlace(std::string_view text, size_t offset) {
  offset = std::min(offset, text.size());
  size_t newline = offset ? text.rfind('\n', offset - 1) : std::string_view::npos;
  size_t start = newline == std::string_view::npos ? 0 : newline + 1;
  std::string_view line = text.substr(start, text.find('\n', offset) - start);
  // Of a long pipeline, only the neighbourhood.
  constexpr size_t margin = 60;
  size_t column = offset - start;
  size_t skip = column > margin ? column - margin : 0;
  return ir::concat(
      {"  ", line.substr(skip, 2 * margin), "\n  ", std::string(column - skip, ' '), "^"});
}

std::string join(const std::vector<std::string> &words, const char *separator = ", ") {
  std::string text;
  for (const std::string &word : words)
    text += (text.empty() ? "" : separator) + word;
  return text;
}

std::string describeOptions(const Pass &pass) {
  std::vector<std::string> known;
  for (const OptionBase *option : pass.options())
    known.push_back(ir::concat({option->name(), " (", option->type(), ")"}));
  return known.empty() ? "it has no options" : "its options: " + join(known);
}

class Parser {
public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::vector<PipelineElement> parse() {
    skipSpace();
    size_t end = contentEnd();
    if (takeAnchor(end))
      --end;
    return parseList(end);
  }

private:
  [[noreturn]] void fail(const std::string &reason, size_t offset) const {
    throw PipelineError(reason, text_, offset);
  }

  size_t contentEnd() const {
    size_t end = text_.size();
    while (end > at_ && isSpace(text_[end - 1]))
      --end;
    return end;
  }

  void skipSpace() {
    while (at_ < text_.size() && isSpace(text_[at_]))
      ++at_;
  }

  /// Skips `builtin.module(` if its parenthesis closes at the end of the text.
  bool takeAnchor(size_t end) {
    if (!ir::startsWith(text_.substr(at_), kAnchor))
      return false;
    size_t open = at_ + kAnchor.size();
    while (open < end && isSpace(text_[open]))
      ++open;
    if (open >= end || text_[open] != '(' || skipBalanced(open) != end)
      return false;
    at_ = open + 1;
    return true;
  }

  std::vector<PipelineElement> parseList(size_t end) {
    std::vector<PipelineElement> elements;
    skipSpace();
    if (at_ >= end)
      return elements;
    while (true) {
      elements.push_back(parseElement(end));
      skipSpace();
      if (at_ >= end)
        return elements;
      if (text_[at_] != ',')
        fail(std::string("expected ',' or the end of the pipeline, found '") + text_[at_] + "'",
             at_);
      ++at_;
    }
  }

  PipelineElement parseElement(size_t end) {
    skipSpace();
    size_t start = at_;
    while (at_ < end && !isDelimiter(text_[at_]) && !isSpace(text_[at_]))
      ++at_;
    std::string_view name = text_.substr(start, at_ - start);
    if (name.empty())
      fail("expected the name of a pass", start);
    skipSpace();
    if (isOurs(name))
      return parseOurs(name, start, end);
    while (at_ < end && (text_[at_] == '{' || text_[at_] == '(')) {
      size_t close = skipBalanced(at_);
      if (text_[at_] == '(')
        rejectNested(at_ + 1, close - 1);
      at_ = close;
      skipSpace();
    }
    size_t stop = std::min(at_, end);
    while (isSpace(text_[stop - 1]))
      --stop;
    return {nullptr, std::string(text_.substr(start, stop - start))};
  }

  PipelineElement parseOurs(std::string_view name, size_t start, size_t end) {
    std::unique_ptr<Pass> pass = lookup(name);
    if (!pass)
      fail(unknownPass(name), start);
    if (at_ < end && text_[at_] == '(')
      fail(ir::concat({"'", name, "' is a pass; options are written in '{...}'"}), at_);
    if (at_ < end && text_[at_] == '{') {
      size_t close = skipBalanced(at_);
      parseOptions(*pass, at_ + 1, close - 1);
      at_ = close;
    }
    return {std::move(pass), {}};
  }

  static bool isOurs(std::string_view name) {
    return ir::startsWith(name, kOurPrefix) || lookup(name) != nullptr;
  }

  static std::string unknownPass(std::string_view name) {
    std::vector<std::string> known;
    for (const auto &pass : allPasses())
      known.emplace_back(pass->info().argument);
    std::vector<std::string> near = nearest(name, known);
    return near.empty()
               ? ir::concat({"unknown pass '", name, "'; the passes: ", join(known)})
               : ir::concat({"unknown pass '", name, "'; did you mean ", join(near, " or "), "?"});
  }

  /// Throws if a pass of ours is nested in `func.func(...)` or the like: ours work on modules.
  void rejectNested(size_t from, size_t to) const {
    for (size_t i = from; i < to; ++i) {
      if (text_[i] == '{') {
        i = skipBalanced(i) - 1;
        continue;
      }
      bool starts = i == from || isDelimiter(text_[i - 1]) || isSpace(text_[i - 1]);
      size_t stop = i;
      while (stop < to && !isDelimiter(text_[stop]) && !isSpace(text_[stop]))
        ++stop;
      if (starts && isOurs(text_.substr(i, stop - i)))
        fail("hlotag's passes, and those registered with it, run on the top-level builtin.module, "
             "not nested in another operation",
             i);
    }
  }

  /// Returns the index after the bracket that closes the one at `open`, quotes skipped.
  size_t skipBalanced(size_t open) const {
    std::vector<size_t> brackets;
    for (size_t i = open; i < text_.size(); ++i) {
      char c = text_[i];
      bool inOptions = !brackets.empty() && text_[brackets.back()] == '{';
      if (inOptions && (c == '"' || c == '\'')) {
        i = skipQuoted(i) - 1;
      } else if (c == '{' || c == '(') {
        // Inside options, parentheses are ordinary characters.
        if (c == '{' || !inOptions)
          brackets.push_back(i);
      } else if (c == '}' || (c == ')' && !inOptions)) {
        if (text_[brackets.back()] != (c == '}' ? '{' : '('))
          fail(std::string("'") + c + "' closes nothing", i);
        brackets.pop_back();
        if (brackets.empty())
          return i + 1;
      }
    }
    fail(std::string("'") + text_[brackets.back()] + "' is not closed", brackets.back());
  }

  size_t skipQuoted(size_t open) const {
    size_t end = detail::endOfQuoted(text_, open);
    if (end == std::string_view::npos)
      fail("the quote is not closed", open);
    return end;
  }

  void parseOptions(Pass &pass, size_t from, size_t to) {
    size_t i = from;
    while (true) {
      while (i < to && isSpace(text_[i]))
        ++i;
      if (i >= to)
        return;
      size_t start = i;
      while (i < to && text_[i] != '=' && !isSpace(text_[i]))
        ++i;
      std::string_view key = text_.substr(start, i - start);
      if (key.empty())
        fail("expected the name of an option", start);
      std::string_view value = "true"; // a bare name switches a bool on
      size_t valueAt = start;
      if (i < to && text_[i] == '=') {
        valueAt = ++i;
        i = endOfValue(i, to);
        value = text_.substr(valueAt, i - valueAt);
      }
      setOption(pass, key, start, value, valueAt);
    }
  }

  size_t endOfValue(size_t i, size_t to) const {
    while (i < to && !isSpace(text_[i])) {
      if (text_[i] == '"' || text_[i] == '\'')
        i = skipQuoted(i);
      else if (text_[i] == '{')
        i = skipBalanced(i);
      else
        ++i;
    }
    return i;
  }

  void setOption(Pass &pass, std::string_view key, size_t keyAt, std::string_view value,
                 size_t valueAt) const {
    std::string where = ir::concat({" of ", pass.info().argument, "; ", describeOptions(pass)});
    OptionBase *option = pass.findOption(key);
    if (!option)
      fail(ir::concat({"unknown option '", key, "'", where}), keyAt);
    if (keyAt == valueAt && option->type() != "bool")
      fail(ir::concat({"option '", key, "' needs a value of type ", option->type(), where}), keyAt);
    if (!option->parse(value))
      fail(ir::concat({"'", value, "' is not a value of type ", option->type(), " for the option '",
                       key, "'", where}),
           valueAt);
  }

  std::string_view text_;
  size_t at_ = 0;
};

} // namespace

PipelineError::PipelineError(const std::string &reason, std::string_view text, size_t offset)
    : std::runtime_error(ir::concat(
          {"at offset ", std::to_string(offset), ": ", reason, "\n", showPlace(text, offset)})) {}

std::string PipelineElement::name() const {
  if (pass)
    return std::string(pass->info().argument);
  return foreign.substr(0, foreign.find_first_of("({ \t\r\n"));
}

Pipeline Pipeline::parse(std::string_view text) {
  Pipeline pipeline;
  pipeline.elements_ = Parser(text).parse();
  return pipeline;
}

bool Pipeline::hasOpaque() const {
  for (const PipelineElement &element : elements_)
    if (element.isOpaque())
      return true;
  return false;
}

std::string Pipeline::str() const {
  std::string text;
  for (const PipelineElement &element : elements_)
    text += (text.empty() ? "" : ",") + element.str();
  // Alone, `builtin.module(...)` would be read as the anchor and disappear.
  bool looksAnchored = elements_.size() == 1 && elements_[0].name() == kAnchor;
  return looksAnchored ? std::string(kAnchor) + "(" + text + ")" : text;
}

} // namespace hlotag::pass
