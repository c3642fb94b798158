// SPDX-License-Identifier: Apache-2.0
#include "hlotag/ir/nesting.h"

#include <algorithm>
#include <cctype>
#include <unordered_map>
#include <vector>

namespace hlotag::ir {

namespace {

bool isWordCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '.';
}

class Scanner {
public:
  explicit Scanner(std::string_view text) : text_(text) {}

  size_t run() {
    for (; at_ < text_.size(); ++at_)
      read(text_[at_]);
    return deepest_;
  }

private:
  char peek(size_t at) const { return at < text_.size() ? text_[at] : '\0'; }

  void read(char c) {
    auto isOneOf = [&](std::string_view characters) {
      return characters.find(c) != characters.npos;
    };
    if (isOneOf(" \t\r\n")) {
      isLineStart_ |= c == '\n';
      return;
    }
    if (c == '/' && peek(at_ + 1) == '/') {
      at_ = std::min(text_.find('\n', at_), text_.size()) - 1;
      return;
    }
    if (beginsOperation(c))
      defined_ = nullptr;
    bool isArrow = c == '-' && peek(at_ + 1) == '>';
    bool isComparison = c == '>' && ((at_ && text_[at_ - 1] == '-') || peek(at_ + 1) == '=');
    if (isOneOf("([{<"))
      open();
    else if (isOneOf(")]}>") && !isComparison)
      close();
    else if (isOneOf("+-*") && !isArrow)
      addOperator();
    else if (isOneOf(",:="))
      endExpression();
    else if (c == '"')
      skipString();
    else if (isOneOf("#!"))
      readAlias();
    else if (isWordCharacter(c))
      readWord();
    last_ = peek(at_);
    isLineStart_ = false;
  }

  /// Returns whether an operation begins here outside of brackets, and no alias is being defined.
  bool beginsOperation(char c) const {
    bool continues = last_ == ':' || last_ == '=' || last_ == ',';
    return isLineStart_ && operators_.size() == 1 && !continues &&
           (isWordCharacter(c) || c == '%' || c == '"');
  }

  void readWord() {
    size_t begin = at_;
    while (isWordCharacter(peek(at_ + 1)))
      ++at_;
    std::string_view word = text_.substr(begin, at_ + 1 - begin);
    if (word == "mod" || word == "floordiv" || word == "ceildiv")
      addOperator();
  }

  void readAlias() {
    size_t begin = at_;
    while (isWordCharacter(peek(at_ + 1)) || peek(at_ + 1) == '-')
      ++at_;
    std::string_view name = text_.substr(begin, at_ + 1 - begin);
    size_t next = text_.find_first_not_of(" \t\r\n", at_ + 1);
    bool isDefined = operators_.size() == 1 && next != std::string_view::npos && text_[next] == '=';
    if (isDefined) {
      endExpression();
      defined_ = &(aliases_[name] = 0);
    } else if (auto known = aliases_.find(name); known != aliases_.end()) {
      note(depth_ + 1 + known->second);
    }
  }

  /// Goes to the closing quote of the string that starts here.
  void skipString() {
    for (++at_; at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n'; ++at_)
      at_ += text_[at_] == '\\';
  }

  void open() {
    operators_.push_back(0);
    deepen(1);
  }

  void close() {
    endExpression();
    if (operators_.size() == 1)
      return;
    operators_.pop_back();
    --depth_;
  }

  void addOperator() {
    ++operators_.back();
    deepen(1);
  }
  void endExpression() {
    depth_ -= operators_.back();
    operators_.back() = 0;
  }
  void deepen(size_t levels) {
    depth_ += levels;
    note(depth_);
  }
  void note(size_t depth) {
    deepest_ = std::max(deepest_, depth);
    if (defined_)
      *defined_ = std::max(*defined_, depth);
  }

  std::string_view text_;
  size_t at_ = 0;
  size_t depth_ = 0, deepest_ = 0;
  std::vector<size_t> operators_{0}; // of the expression in each open bracket, and outside of all
  char last_ = '\0';                 // character that is no space
  bool isLineStart_ = true;          // only spaces precede in the line
  /// Depths of what aliases stand for, by their names with `#` or `!`.
  std::unordered_map<std::string_view, size_t> aliases_;
  size_t *defined_ = nullptr; // in `aliases_`: the one that is being defined
};

} // namespace

size_t nestingDepth(std::string_view text) { return Scanner(text).run(); }

} // namespace hlotag::ir
