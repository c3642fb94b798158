// SPDX-License-Identifier: Apache-2.0
//
// Passes that come from outside: from a Python function, or from a plugin.
#pragma once

#include "hlotag/pass/pass.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hlotag::pass {

class GuestPass;

/// A guest pass, described at run time.
struct GuestSpec {
  struct OptionSpec {
    std::string name;
    std::string type;    ///< as `OptionBase::type()` says it
    std::string initial; ///< as `OptionBase::parse()` takes it
    std::string description;
  };
  std::string argument;
  std::string summary;
  std::string description;
  std::vector<OptionSpec> options;
  /// The work. It changes the module by its own means and not through the context's rewriter.
  std::function<LogicalResult(PassContext &, const GuestPass &)> run;
};

class GuestPass final : public Pass {
public:
  /// Throws std::invalid_argument if an option's type or initial value is none.
  explicit GuestPass(std::shared_ptr<const GuestSpec> spec);

  const PassInfo &info() const override { return info_; }
  LogicalResult run(PassContext &ctx) override { return spec_->run(ctx, *this); }
  std::unique_ptr<Pass> clone() const override;
  bool keepsJournal() const override { return false; }

private:
  void addOption(const GuestSpec::OptionSpec &option);

  std::shared_ptr<const GuestSpec> spec_;
  PassInfo info_; ///< views into `spec_`
  std::vector<std::unique_ptr<OptionBase>> owned_;
};

/// Makes passes known to pipelines, all or none; returns what hinders it: a name that is taken, or
/// that pipeline text cannot have. With `replace`, they take the place of passes of their names.
std::optional<std::string> registerGuests(std::vector<GuestSpec> specs, bool replace = false);

} // namespace hlotag::pass
