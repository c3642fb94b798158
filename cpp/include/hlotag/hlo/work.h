// SPDX-License-Identifier: Apache-2.0
//
// How much does an HLO instruction do?
#pragma once

#include "hlotag/hlo/module.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace hlotag::hlo {

/// The work of one run of an instruction, on one device. Zero for an instruction that computes
/// nothing (a bitcast, a parameter) and for one that runs others (a fusion, a loop): the others
/// have the work.
struct Work {
  uint64_t flops = 0; ///< as XLA's `HloCostAnalysis` counts, and 1 for a transcendental function
  /// Written to memory, or read from places that other values choose (a gather). A value within a
  /// fusion is written only if it is a result of the fusion.
  uint64_t bytes = 0;

  /// Flops and bytes on one scale: an element of four bytes counts as much as an operation on it.
  uint64_t effort() const { return std::max(flops, bytes / 4); }
};

/// Returns the work of each instruction. What a reduction, a scatter or a sort applies to each
/// element has none: its caller has it.
std::vector<Work> measureWork(const Module &module);

} // namespace hlotag::hlo
