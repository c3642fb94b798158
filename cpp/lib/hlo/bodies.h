// SPDX-License-Identifier: Apache-2.0
//
// Which operations do fusions, asynchronous pairs and the bodies of reductions come from?
#pragma once

#include "facts.h"

namespace hlotag::hlo {

/// Gives each fusion and asynchronous pair the operations of the heaviest instruction in it; of its
/// root if none is heavy.
void fillWrappers(Facts &facts);

/// Joins instructions in the bodies of reductions, sorts and scatters. Without a name, they get the
/// operations of the body's callers. With a name, they get the operations at its place in the
/// regions of all callers: of equal bodies, XLA keeps one.
void fillRegions(Facts &facts);

} // namespace hlotag::hlo
