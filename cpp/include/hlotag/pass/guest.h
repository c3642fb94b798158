// SPDX-License-Identifier: Apache-2.0
//
// How does a Python function or a plugin become a pass?
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
    std::string type; ///< as `OptionBase::type()` returns it
    OptionValue initial;
    std::string description;
  };
  std::string argument;
  std::string summary;
  std::string description;
  std::vector<OptionSpec> options;
  /// Runs the pass, which changes the module without the context's rewriter.
  std::function<LogicalResult(PassContext &, const GuestPass &)> run;
};

class GuestPass final : public Pass {
public:
  /// Throws std::invalid_argument if the initial value of an option is of another type.
  explicit GuestPass(std::shared_ptr<const GuestSpec> spec);

  const PassInfo &info() const override { return info_; }
  LogicalResult run(PassContext &ctx) override { return spec_->run(ctx, *this); }
  bool keepsJournal() const override { return false; }

private:
  std::shared_ptr<const GuestSpec> spec_;
  PassInfo info_; ///< views into `spec_`
  std::vector<std::unique_ptr<OptionBase>> owned_;
};

/// Registers passes, all or none. Returns the reason if a name is taken or invalid in a pipeline.
/// With `replace`, replaces passes with the same names.
std::optional<std::string> registerGuests(std::vector<GuestSpec> specs, bool replace = false);

} // namespace hlotag::pass
