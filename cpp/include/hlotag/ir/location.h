// SPDX-License-Identifier: Apache-2.0
//
// How are locations read and made? MLIR uniques them: equal locations are one pointer.
#pragma once

#include "hlotag/ir/attributes.h"
#include "hlotag/ir/flat_map.h"

#include <vector>

namespace hlotag::ir {

class Location : public Handle<Location, MlirLocation> {
public:
  using Handle::Handle;
  MlirContext context() const { return capi::fn().mlirLocationGetContext(raw_); }
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
  /// Returns the part itself if there is one part and no metadata, as MLIR does.
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

/// `"file":line:column`, or a range: `"file":line:column to line:column`
class FileLoc : public Location {
public:
  using Location::Location;
  static bool classof(Location loc) {
    return capi::fn().mlirLocationIsAFileLineColRange(loc.raw());
  }
  Identifier filename() const { return capi::fn().mlirLocationFileLineColRangeGetFilename(raw_); }
  int line() const { return capi::fn().mlirLocationFileLineColRangeGetStartLine(raw_); }
  int column() const { return capi::fn().mlirLocationFileLineColRangeGetStartColumn(raw_); }
  bool isRange() const {
    return capi::fn().mlirLocationFileLineColRangeGetEndLine(raw_) != line() ||
           capi::fn().mlirLocationFileLineColRangeGetEndColumn(raw_) != column();
  }
};

/// The direct parts of `loc`: the child of a name, the callee and the caller, the fused locations.
std::vector<Location> partsOf(Location loc);

/// Returns `loc` with other parts; itself if it has none.
Location replaceParts(Location loc, const std::vector<Location> &parts);

/// Computes a value for each location, once and after its parts. Iterative: call sites are as deep
/// as the user's stack.
template <class T> class LocationMap {
public:
  /// Returns `compute(root)`, which may call `at` with the parts of its argument.
  template <class F> const T &of(Location root, F &&compute) {
    std::vector<Location> pending{root};
    while (!pending.empty()) {
      Location loc = pending.back();
      size_t sizeBefore = pending.size();
      if (!values_.find(loc.opaque()))
        for (Location part : partsOf(loc))
          if (!values_.find(part.opaque()))
            pending.push_back(part);
      if (pending.size() != sizeBefore)
        continue;
      pending.pop_back();
      if (!values_.find(loc.opaque()))
        *values_.insert(loc.opaque()).first = compute(loc);
    }
    return at(root);
  }
  const T &at(Location loc) const { return *values_.find(loc.opaque()); }

private:
  PointerMap<T> values_;
};

/// Returns the innermost source position in `loc`, or null: a callee is searched before its caller,
/// fused parts in order.
FileLoc findFile(Location loc);

/// The text of `loc` in messages: `file:line:column`, else `"name"`, else `<unknown>`.
std::string render(Location loc);

/// MLIR's own name in locations of a text without a file name.
inline constexpr std::string_view kNoFile = "-";

/// While it lives, `render` writes `name` for `kNoFile` in this thread. `name` must outlive it.
class SourceName {
public:
  explicit SourceName(std::string_view name);
  ~SourceName();
  SourceName(const SourceName &) = delete;
  SourceName &operator=(const SourceName &) = delete;

private:
  std::string_view outer_;
};

} // namespace hlotag::ir
