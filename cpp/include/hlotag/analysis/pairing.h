// SPDX-License-Identifier: Apache-2.0
//
// Which operations of a backward pass autodiff derived from which forward operation, found from
// the module alone.
#pragma once

#include "hlotag/analysis/provenance.h"

#include <functional>
#include <vector>

namespace hlotag::analysis {

struct Pair {
  ir::Operation function; ///< that `derived` is in
  ir::Operation derived;
  ir::Operation primal;
  float confidence; ///< 0 to 1
  float agreed = 0; ///< how sure it is that `derived` stems from `primal` or one of the rivals
  std::vector<ir::Operation> rivals = {};
};

/// Pairs the backward operations of a module with the forward operations they were derived from,
/// and calls `visit` with each pair, function by function, which may change attributes then.
///
/// JAX transposes equations in exactly reverse order, and recomputes rematerialized ones in order.
/// So, per function and kind of backward code, the pairing is the heaviest monotone chain among
/// the pairs whose scope and source line agree; a pair weighs what primitives, types, shared
/// values and neighbours in the graph say for it. Functions are paired through their calls.
///
/// An operation has at most `kMaxCandidates` candidates, so that n operations take
/// O(kMaxCandidates n log n) time.
void pairBackward(const ir::OpList &operations, Provenance &provenance,
                  const std::function<void(const Pair &)> &visit);

} // namespace hlotag::analysis
