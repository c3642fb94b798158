// SPDX-License-Identifier: Apache-2.0
#include "hlotag/pass/guest.h"
#include "hlotag/pass/registry.h"

#include <algorithm>
#include <stdexcept>

namespace hlotag::pass {

namespace {

bool isNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/// Names have no dots: MLIR's own passes and `func.func(...)` keep theirs.
bool isName(std::string_view text) {
  return !text.empty() && text[0] >= 'a' && text[0] <= 'z' &&
         std::all_of(text.begin(), text.end(), isNameCharacter);
}

/// Returns the choices of a type such as `all|attached`.
std::vector<std::string_view> splitChoices(std::string_view type) {
  std::vector<std::string_view> choices;
  if (type.find('|') == std::string_view::npos)
    return choices;
  for (size_t start = 0; start <= type.size();) {
    size_t end = std::min(type.find('|', start), type.size());
    choices.push_back(type.substr(start, end - start));
    start = end + 1;
  }
  return choices;
}

/// Returns why `spec` is invalid, or nothing.
std::optional<std::string> check(const GuestSpec &spec) {
  std::string name = "'" + spec.argument + "'";
  if (!isName(spec.argument))
    return name +
           " is no name for a pass: use lower-case letters, digits, '-' and '_', and begin with a "
           "letter";
  if (ir::startsWith(spec.argument, "hlotag-"))
    return name + " is no name for a pass: 'hlotag-' is reserved for hlotag's own";
  for (auto option = spec.options.begin(); option != spec.options.end(); ++option) {
    auto same = [&](const GuestSpec::OptionSpec &other) { return other.name == option->name; };
    if (!isName(option->name) || std::any_of(spec.options.begin(), option, same))
      return "'" + option->name + "' is no name for an option of " + name;
  }
  try {
    GuestPass trial(std::make_shared<GuestSpec>(spec));
  } catch (const std::invalid_argument &error) {
    return name + ": " + error.what();
  }
  return std::nullopt;
}

} // namespace

GuestPass::GuestPass(std::shared_ptr<const GuestSpec> spec)
    : spec_(std::move(spec)),
      info_{spec_->argument, spec_->argument, spec_->summary, spec_->description} {
  for (const GuestSpec::OptionSpec &given : spec_->options) {
    auto option = std::make_unique<OptionBase>(options(), given.name, given.description,
                                               given.initial, splitChoices(given.type));
    if (option->type() != given.type || !option->set(given.initial))
      throw std::invalid_argument(ir::concat(
          {"the initial value of the option '", given.name, "' is not of type ", given.type}));
    owned_.push_back(std::move(option));
  }
}

std::optional<std::string> registerGuests(std::vector<GuestSpec> specs, bool replace) {
  std::vector<std::pair<std::string, PassFactory>> factories;
  for (GuestSpec &spec : specs) {
    if (auto problem = check(spec))
      return problem;
    auto shared = std::make_shared<const GuestSpec>(std::move(spec));
    factories.emplace_back(shared->argument, [shared]() -> std::unique_ptr<Pass> {
      return std::make_unique<GuestPass>(shared);
    });
  }
  if (replace) {
    for (auto &[argument, create] : factories)
      registerPass(std::move(create));
    return std::nullopt;
  }
  std::string taken = registerNew(std::move(factories));
  if (taken.empty())
    return std::nullopt;
  return "there is already a pass named '" + taken + "'";
}

} // namespace hlotag::pass
