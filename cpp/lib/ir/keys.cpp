// SPDX-License-Identifier: Apache-2.0
#include "hlotag/ir/keys.h"

#include "hlotag/ir/key_names.h"

#include <algorithm>
#include <iterator>

namespace hlotag::ir {

bool isReservedKey(std::string_view key) {
  return std::any_of(std::begin(kReservedPrefixes), std::end(kReservedPrefixes),
                     [&](std::string_view prefix) { return startsWith(key, prefix); }) ||
         std::find(std::begin(kReservedKeys), std::end(kReservedKeys), key) !=
             std::end(kReservedKeys);
}

bool isCarriedKey(std::string_view key) {
  return !isReservedKey(key) &&
         std::find(std::begin(kKeptKeys), std::end(kKeptKeys), key) == std::end(kKeptKeys);
}

bool isXlaKey(std::string_view key) {
  return startsWith(key, "_") || startsWith(key, "xla") ||
         std::find(std::begin(kXlaKeys), std::end(kXlaKeys), key) != std::end(kXlaKeys);
}

bool isUnset(Attribute value) {
  ArrayAttr list = dynCast<ArrayAttr>(value);
  if (!list || list.size() != 1)
    return false;
  StringAttr text = dynCast<StringAttr>(list[0]);
  return text && text.value() == "hlotag.unset";
}

DictionaryAttr unset(MlirContext context, DictionaryAttr entries) {
  Attribute value = ArrayAttr::get(context, {StringAttr::get(context, "hlotag.unset")});
  std::vector<NamedAttribute> result;
  for (NamedAttribute entry : entries)
    result.push_back({entry.name, value});
  return DictionaryAttr::get(context, result);
}

} // namespace hlotag::ir
