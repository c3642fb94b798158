// SPDX-License-Identifier: Apache-2.0
//
// How do HLO instructions get back the tags that XLA dropped or moved?
#pragma once

#include "hlotag/hlo/program.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hlotag::hlo {

/// Decides which entries an instruction gets.
class Rules {
public:
  /// An instruction, for the rules. Numbers are indices into `Program::entries`.
  struct Case {
    Entries before;              // Left by XLA.
    std::vector<size_t> own;     // Of its operations.
    std::vector<size_t> callers; // Of calls that XLA inlined.
    bool isOperation; // Whether it computes the result of its operation, and not an intermediate.
    bool isCombined;  // Whether it does the work of several collectives.
    /// Of a fusion: by key, the value on most of the work in it, if that is more than what has
    /// none.
    std::optional<Entries> inside;
  };

  virtual Entries entriesFor(const Case &instruction) = 0;
  /// Returns whether instructions in a fusion have a tag with this key that the fusion has, too.
  virtual bool isRepeated(std::string_view key) = 0;
  /// Returns a path component for the name of an instruction with these entries, or "".
  virtual std::string labelFor(const Entries &entries) = 0;

protected:
  ~Rules() = default;
};

/// Gives each instruction the entries that `rules` decide, and removes the numbers from names
/// unless `keepsNumbers`. All other bytes stay the same. Rules are asked once for equal
/// instructions.
///
/// Throws `ModuleError` if `module` is not a valid `HloModuleProto`.
std::string restore(std::string_view module, const Program &program, Rules &rules,
                    bool keepsNumbers);

} // namespace hlotag::hlo
