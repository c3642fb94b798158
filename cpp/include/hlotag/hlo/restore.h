// SPDX-License-Identifier: Apache-2.0
//
// The tags of HLO instructions put right, in the bytes of a module.
#pragma once

#include "hlotag/hlo/program.h"

#include <string>
#include <string_view>
#include <vector>

namespace hlotag::hlo {

/// Knows what entries are to be.
class Rules {
public:
  /// An instruction as the rules see it. Entries are indices into the program's.
  struct Case {
    Entries before;              // That XLA left.
    std::vector<size_t> own;     // Of the operations that it came from.
    std::vector<size_t> callers; // Of calls that XLA inlined.
    bool isOperation; // Whether it is what its operation computes, and not one that helps.
    bool isCombined;  // Whether it does what several collectives were to do.
  };

  virtual Entries entriesFor(const Case &instruction) = 0;
  /// A path component for the name of an instruction with those entries, or "".
  virtual std::string labelFor(const Entries &entries) = 0;

protected:
  ~Rules() = default;
};

/// Gives every instruction the entries that the rules say, and takes the numbers out of names. What
/// is not changed stays as it was, byte for byte. Rules are asked once for equal instructions.
///
/// `keepsFrames` makes XLA keep the ids of stack frames when it reads the module back into the one
/// that it is from. XLA numbers the frames anew, in the order in which instructions use them and
/// each after its parent, but keeps the table of the module that it had. In one long chain each
/// frame comes after all those with lower ids, and so keeps its own.
///
/// Throws `std::out_of_range` where the bytes are not those of a sound module.
std::string restore(std::string_view module, const Program &program, Opcodes &opcodes, Rules &rules,
                    bool keepsFrames);

} // namespace hlotag::hlo
