// SPDX-License-Identifier: Apache-2.0
#include "hlotag/ir/location.h"

#include <utility>

namespace hlotag::ir {

std::vector<Location> partsOf(Location loc) {
  if (NameLoc name = dynCast<NameLoc>(loc))
    return {name.child()};
  if (CallSiteLoc call = dynCast<CallSiteLoc>(loc))
    return {call.callee(), call.caller()};
  if (FusedLoc fused = dynCast<FusedLoc>(loc))
    return fused.parts();
  return {};
}

Location replaceParts(Location loc, const std::vector<Location> &parts) {
  if (NameLoc name = dynCast<NameLoc>(loc))
    return NameLoc::get(name.name().str(), parts[0]);
  if (isa<CallSiteLoc>(loc))
    return CallSiteLoc::get(parts[0], parts[1]);
  if (FusedLoc fused = dynCast<FusedLoc>(loc))
    return FusedLoc::get(loc.context(), parts, fused.metadata());
  return loc;
}

FileLoc findFile(Location loc) {
  LocationMap<FileLoc> files;
  return files.of(loc, [&](Location at) {
    FileLoc found = dynCast<FileLoc>(at);
    for (Location part : partsOf(at))
      found = found ? found : files.at(part);
    return found;
  });
}

/// Writes control characters, which marks have, as two hexadecimal digits, as MLIR does.
static std::string escape(std::string_view text) {
  static constexpr char hex[] = "0123456789ABCDEF";
  std::string result;
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7F)
      result += c;
    else
      result.append({'\\', hex[byte >> 4], hex[byte & 15]});
  }
  return result;
}

static thread_local std::string_view sourceName = kNoFile;

SourceName::SourceName(std::string_view name) : outer_(std::exchange(sourceName, name)) {}

SourceName::~SourceName() { sourceName = outer_; }

std::string render(Location loc) {
  if (FileLoc file = findFile(loc)) {
    std::string_view name = file.filename().str();
    return std::string(name == kNoFile ? sourceName : name) + ":" + std::to_string(file.line()) +
           ":" + std::to_string(file.column());
  }
  if (NameLoc name = dynCast<NameLoc>(loc))
    return '"' + escape(name.name().str()) + '"';
  return "<unknown>";
}

} // namespace hlotag::ir
