// SPDX-License-Identifier: Apache-2.0
//
// Which text does a name in braces stand for, as `{n}` in `layer_{n}/attention`?
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hlotag::analysis {

/// Names and their texts.
using Bindings = std::vector<std::pair<std::string, std::string>>;

/// Returns whether a pattern has names in braces.
bool hasNames(std::string_view pattern);

/// Matches a pattern with names against successive elements of a scope path, and returns the texts
/// of the last match; empty if there is none. A name stands for one character or more of one
/// element.
Bindings bindScope(std::string_view pattern, std::string_view scope);

/// Replaces names in braces by their texts.
std::string substitute(std::string text, const Bindings &bindings);

} // namespace hlotag::analysis
