// SPDX-License-Identifier: Apache-2.0
//
// Whose are fusions and asynchronous pairs, and the bodies of reductions, sorts and scatters?
#pragma once

#include "facts.h"

namespace hlotag::hlo {

/// Gives wrappers the operations of their roots.
void fillWrappers(Facts &facts);

/// Gives what is in the body of a reduction, a sort or a scatter the operations of that, if it is
/// nameless; else those in its regions, for XLA makes equal bodies one, with the names of any.
void fillRegions(Facts &facts);

} // namespace hlotag::hlo
