// SPDX-License-Identifier: Apache-2.0
#include "hlotag/ir/keys.h"

#include <algorithm>
#include <iterator>

namespace hlotag::ir {

bool isReservedKey(std::string_view key) {
  static constexpr std::string_view prefixes[] = {kReservedPrefix, "xla.sdy.", "composite."};
  static constexpr std::string_view keys[] = {
      "fingerprint_before_lhs", "arg_layout_modes",           "out_layout_modes",
      "arg_memory_spaces",      "out_memory_spaces",          "is_spmd_generated",
      "original_sharding",      "_xla_cse_safe_zero_operand", "xla.pdl_launch"};
  return std::any_of(std::begin(prefixes), std::end(prefixes),
                     [&](std::string_view prefix) { return startsWith(key, prefix); }) ||
         std::find(std::begin(keys), std::end(keys), key) != std::end(keys);
}

bool isUnset(Attribute value) {
  ArrayAttr list = dynCast<ArrayAttr>(value);
  if (!list || list.size() != 1)
    return false;
  StringAttr text = dynCast<StringAttr>(list[0]);
  return text && text.value() == "hlotag.unset";
}

Attribute unsetValue(MlirContext context) {
  return ArrayAttr::get(context, {StringAttr::get(context, "hlotag.unset")});
}

} // namespace hlotag::ir
