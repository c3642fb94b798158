// SPDX-License-Identifier: Apache-2.0
#include "hlotag/analysis/numbering.h"

#include <optional>
#include <string>

namespace hlotag::analysis {

using ir::NameLoc;
using ir::Operation;

namespace {

constexpr char kMark = '\x01';

/// Where a number that starts at `start` ends, or nothing if none does.
std::optional<size_t> endOfNumber(std::string_view name, size_t start) {
  size_t colon = name.find_first_not_of("0123456789abcdef", start + 1);
  if (colon == start + 1 || colon == std::string_view::npos || name[colon] != ':')
    return std::nullopt;
  size_t end = name.find_first_not_of("0123456789", colon + 1);
  bool isNumber = end != colon + 1 && end != std::string_view::npos && name[end] == kMark &&
                  end + 1 < name.size() && name[end + 1] == '/';
  return isNumber ? std::optional(end + 2) : std::nullopt;
}

/// A name without numbers: what an audit has numbered is numbered as it will be without one.
std::string plain(std::string_view name) {
  std::string result;
  for (size_t at = 0; at < name.size();) {
    auto end = name[at] == kMark ? endOfNumber(name, at) : std::nullopt;
    if (!end)
      result += name[at];
    at = end.value_or(at + 1);
  }
  return result;
}

bool haveOneLocation(NameLoc a, NameLoc b) {
  return b && a.child() == b.child() && plain(a.name().str()) == plain(b.name().str());
}

/// The only operation that uses a result of `op`, or null.
Operation onlyUser(Operation op) {
  Operation user;
  for (ir::OpOperand use : op.results()[0].uses()) {
    if (user && use.owner() != user)
      return {};
    user = use.owner();
  }
  return user;
}

} // namespace

std::vector<std::pair<size_t, size_t>> numberNames(const ir::OpList &operations,
                                                   const ir::OpIds &ids, std::string_view token,
                                                   bool every) {
  ir::Identifier broadcast =
      ir::Identifier::get(operations[0].op.context(), "stablehlo.broadcast_in_dim");
  ir::PointerMap<size_t> numbers;
  for (size_t i = 1; !every && i < operations.size(); ++i)
    *numbers.insert(operations[i].op.opaque()).first = i - 1;

  std::vector<std::pair<size_t, size_t>> helpers;
  std::string prefix = std::string(1, kMark).append(token) + ':';
  std::string numbered;
  for (size_t i = 1; i < operations.size(); ++i) {
    auto [op, name, numNested, hasRegions] = operations[i];
    // XLA gives constants no metadata, and would make up another instruction name where there is
    // none.
    auto location = name == ids.constant ? NameLoc() : ir::dynCast<NameLoc>(op.location());
    if (!location)
      continue;
    size_t number = i - 1;
    if (!every && name == broadcast) {
      Operation user = onlyUser(op);
      if (user && haveOneLocation(location, ir::dynCast<NameLoc>(user.location()))) {
        number = *numbers.find(user.opaque());
        helpers.emplace_back(i - 1, number);
      } else if (plain(location.name().str()).find('/') == std::string::npos) {
        continue;
      }
    }
    numbered.assign(prefix).append(std::to_string(number)).append({kMark, '/'});
    numbered.append(location.name().str());
    capi::fn().mlirOperationSetLocation(op.raw(), NameLoc::get(numbered, location.child()).raw());
  }
  return helpers;
}

} // namespace hlotag::analysis
