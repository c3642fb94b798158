// SPDX-License-Identifier: Apache-2.0
//
// Views of locations. MLIR uniques them, so a location's pointer is a key for all it says.
#pragma once

#include "hlotag/ir/attributes.h"

#include <optional>
#include <vector>

namespace hlotag::ir {

class Location : public Handle<Location, MlirLocation> {
public:
  using Handle::Handle;
  static Location unknown(MlirContext context) {
    return capi::fn().mlirLocationUnknownGet(context);
  }
  MlirContext context() const { return capi::fn().mlirLocationGetContext(raw_); }
  /// The location as MLIR's assembly writes it, e.g. `loc("f.py":3:4)`.
  std::string str() const {
    std::string text;
    capi::fn().mlirLocationPrint(raw_, appendToString, &text);
    return text;
  }
  static bool classof(Location) { return true; }
};

template <class T> T dynCast(Location loc) { return loc && T::classof(loc) ? T(loc.raw()) : T(); }

template <class T> bool isa(Location loc) { return loc && T::classof(loc); }

/// `"name"(child)`
class NameLoc : public Location {
public:
  using Location::Location;
  static NameLoc get(std::string_view name, Location child) {
    return capi::fn().mlirLocationNameGet(child.context(), toRef(name), child.raw());
  }
  static bool classof(Location loc) { return capi::fn().mlirLocationIsAName(loc.raw()); }
  Identifier name() const { return capi::fn().mlirLocationNameGetName(raw_); }
  Location child() const { return capi::fn().mlirLocationNameGetChildLoc(raw_); }
};

/// `callsite(callee at caller)`
class CallSiteLoc : public Location {
public:
  using Location::Location;
  static CallSiteLoc get(Location callee, Location caller) {
    return capi::fn().mlirLocationCallSiteGet(callee.raw(), caller.raw());
  }
  static bool classof(Location loc) { return capi::fn().mlirLocationIsACallSite(loc.raw()); }
  Location callee() const { return capi::fn().mlirLocationCallSiteGetCallee(raw_); }
  Location caller() const { return capi::fn().mlirLocationCallSiteGetCaller(raw_); }
};

/// `fused<metadata>[a, b]`
class FusedLoc : public Location {
public:
  using Location::Location;
  /// Not always a `FusedLoc`: MLIR folds a fusion of one location without metadata to that one.
  static Location get(MlirContext context, const std::vector<Location> &parts, Attribute metadata) {
    static_assert(sizeof(Location) == sizeof(MlirLocation));
    return capi::fn().mlirLocationFusedGet(context, intptr_t(parts.size()),
                                           reinterpret_cast<const MlirLocation *>(parts.data()),
                                           metadata.raw());
  }
  static bool classof(Location loc) { return capi::fn().mlirLocationIsAFused(loc.raw()); }
  std::vector<Location> parts() const {
    std::vector<MlirLocation> raw(capi::fn().mlirLocationFusedGetNumLocations(raw_));
    capi::fn().mlirLocationFusedGetLocations(raw_, raw.data());
    return {raw.begin(), raw.end()};
  }
  Attribute metadata() const { return capi::fn().mlirLocationFusedGetMetadata(raw_); }
};

/// `"file":line:column`
class FileLoc : public Location {
public:
  using Location::Location;
  static bool classof(Location loc) {
    return capi::fn().mlirLocationIsAFileLineColRange(loc.raw());
  }
  Identifier filename() const { return capi::fn().mlirLocationFileLineColRangeGetFilename(raw_); }
  int line() const { return capi::fn().mlirLocationFileLineColRangeGetStartLine(raw_); }
  int column() const { return capi::fn().mlirLocationFileLineColRangeGetStartColumn(raw_); }
};

/// The locations that `loc` is made of: a name's child, a callee before its caller, what is fused.
std::vector<Location> partsOf(Location loc);

/// The innermost source position in `loc` (the callee of a call site before its caller, the first
/// part of a fusion that has one), or null.
FileLoc findFile(Location loc);

/// `file:line:column`, else `"name"`, else `<unknown>`; for messages.
std::string render(Location loc);

} // namespace hlotag::ir
