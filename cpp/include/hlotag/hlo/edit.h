// SPDX-License-Identifier: Apache-2.0
//
// How is an HLO module written again with a few fields changed? All other bytes stay the same.
#pragma once

#include "hlotag/hlo/module.h"

#include <map>
#include <string>
#include <string_view>

namespace hlotag::hlo {

/// Returns the `FrontendAttributes` with these entries.
std::string toMessage(const Entries &entries);

/// Returns a message without one of its fields.
std::string without(int removed, std::string_view message);

/// Returns a serialized module without its computations.
std::string headerOf(std::string_view module);

/// Returns a module with other frontend attributes on some instructions, by their numbers. Throws
/// `ModuleError` if `module` is not a valid `HloModuleProto`.
std::string withAttributes(std::string_view module, const std::map<size_t, Entries> &changed);

/// Makes all stack frames of a module one chain, so that their ids survive when XLA reads it. XLA
/// renumbers frames in the order of their first use, parents first, but keeps its former table. In
/// one chain each frame comes after all frames with lower ids, so no id changes.
///
/// Throws `ModuleError` if `module` is not a valid `HloModuleProto`.
std::string chainFrames(std::string_view module);

} // namespace hlotag::hlo
