// SPDX-License-Identifier: Apache-2.0
//
// Which options does a pass have, and how are they written? In MLIR's syntax:
// `{flag=true limit=3 rules="a b" keys=x,y}`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hlotag::pass {

class OptionBase;

/// The options of one pass object, in declaration order.
using OptionList = std::vector<OptionBase *>;

class OptionBase {
public:
  OptionBase(OptionList &owner, std::string_view name, std::string_view description)
      : name_(name), description_(description) {
    owner.push_back(this);
  }
  virtual ~OptionBase() = default;
  // The owning pass keeps a pointer to the option.
  OptionBase(const OptionBase &) = delete;
  OptionBase &operator=(const OptionBase &) = delete;

  std::string_view name() const { return name_; }
  std::string_view description() const { return description_; }

  /// `bool`, `int`, `float`, `string`, `list of strings`, or the choices: `all|attached`.
  virtual std::string type() const = 0;
  /// Parses the text after `=`, quotes included. Returns false if the text has another type.
  virtual bool parse(std::string_view text) = 0;
  /// The value as text for `parse`.
  virtual std::string print() const = 0;
  virtual bool isDefault() const = 0;

private:
  std::string_view name_;
  std::string_view description_;
};

namespace detail {
bool isSpace(char c);
/// Returns the index after the closing quote of the text that starts at `at`; npos if unclosed. In
/// double quotes a backslash escapes a quote or a backslash.
size_t endOfQuoted(std::string_view text, size_t at);

using Strings = std::vector<std::string>;
std::string typeName(const bool &);
std::string typeName(const int64_t &);
std::string typeName(const double &);
std::string typeName(const std::string &);
std::string typeName(const Strings &);
bool parseValue(std::string_view text, bool &value);
bool parseValue(std::string_view text, int64_t &value);
bool parseValue(std::string_view text, double &value);
bool parseValue(std::string_view text, std::string &value);
bool parseValue(std::string_view text, Strings &value);
std::string printValue(const bool &value);
std::string printValue(const int64_t &value);
std::string printValue(const double &value);
std::string printValue(const std::string &value);
std::string printValue(const Strings &value);
bool isChoice(const std::string &value, const std::vector<std::string_view> &choices);
template <class T> bool isChoice(const T &, const std::vector<std::string_view> &) { return true; }
std::string printChoices(const std::vector<std::string_view> &choices);
} // namespace detail

/// An option of type bool, int64_t, double, std::string or std::vector<std::string>. Declare it
/// as a member of the pass; names and texts must be string literals:
///
///     Option<std::string> seeds{options(), "seeds", "which entries to extend", "all",
///                               {"all", "attached"}};
template <class T> class Option final : public OptionBase {
public:
  Option(OptionList &owner, std::string_view name, std::string_view description, T initial = T(),
         std::vector<std::string_view> choices = {})
      : OptionBase(owner, name, description), value_(initial), initial_(std::move(initial)),
        choices_(std::move(choices)) {}

  const T &get() const { return value_; }
  const T &operator*() const { return value_; }
  const T *operator->() const { return &value_; }
  void set(T value) { value_ = std::move(value); }

  std::string type() const override {
    return choices_.empty() ? detail::typeName(value_) : detail::printChoices(choices_);
  }
  bool parse(std::string_view text) override {
    T parsed{};
    if (!detail::parseValue(text, parsed) ||
        (!choices_.empty() && !detail::isChoice(parsed, choices_)))
      return false;
    value_ = std::move(parsed);
    return true;
  }
  std::string print() const override { return detail::printValue(value_); }
  bool isDefault() const override { return value_ == initial_; }

private:
  T value_;
  T initial_;
  std::vector<std::string_view> choices_;
};

} // namespace hlotag::pass
