// SPDX-License-Identifier: Apache-2.0
//
// Which Python object is behind a handle of the second host?
//
// The handle of an operation, block, value, attribute, location, type or context is its pointer in
// jaxlib's bindings, so equal objects have equal handles. Regions and uses have no pointer: their
// handle is the address of a pair of operation and number. The handle of an identifier is the
// address of its interned text.
#pragma once

#include "host.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace hlotag::bindings {

namespace nb = nanobind;

/// Classes of `jaxlib.mlir.ir`.
struct Classes {
#define HLOTAG_CLASSES(X)                                                                          \
  X(Attribute)                                                                                     \
  X(ArrayAttr)                                                                                     \
  X(BoolAttr)                                                                                      \
  X(DictAttr)                                                                                      \
  X(FlatSymbolRefAttr)                                                                             \
  X(StringAttr)                                                                                    \
  X(TypeAttr)                                                                                      \
  X(Block)                                                                                         \
  X(BlockArgument)                                                                                 \
  X(Context)                                                                                       \
  X(FunctionType)                                                                                  \
  X(InsertionPoint)                                                                                \
  X(Location)                                                                                      \
  X(CallSiteLoc)                                                                                   \
  X(FileLineColLoc)                                                                                \
  X(FusedLoc)                                                                                      \
  X(NameLoc)                                                                                       \
  X(MLIRError)                                                                                     \
  X(Operation)                                                                                     \
  X(OpResult)                                                                                      \
  X(Type)                                                                                          \
  X(Value)
#define HLOTAG_FIELD(name) nb::object name;
  HLOTAG_CLASSES(HLOTAG_FIELD)
#undef HLOTAG_FIELD
  nb::object PassManager;
};
const Classes &classes();

/// The class of jaxlib's objects for handles of type `T`, and the label of their capsules.
template <class T> struct Capsule;
#define HLOTAG_CAPSULE(type, name)                                                                 \
  template <> struct Capsule<type> {                                                               \
    static constexpr const char *label = "jaxlib.mlir.ir." #name "._CAPIPtr";                      \
    static const nb::object &cls() { return classes().name; }                                      \
  };
HLOTAG_CAPSULE(MlirAttribute, Attribute)
HLOTAG_CAPSULE(MlirContext, Context)
HLOTAG_CAPSULE(MlirLocation, Location)
HLOTAG_CAPSULE(MlirOperation, Operation)
HLOTAG_CAPSULE(MlirType, Type)
HLOTAG_CAPSULE(MlirValue, Value)
#undef HLOTAG_CAPSULE
template <> struct Capsule<MlirBlock> {
  static constexpr const char *label = "jaxlib.mlir.ir.Block._CAPIPtr";
};

/// The pointer behind a Python object.
template <class T> T pointerOf(nb::handle object) {
  nb::object capsule = object.attr("_CAPIPtr");
  void *pointer = PyCapsule_GetPointer(capsule.ptr(), Capsule<T>::label);
  if (!pointer)
    throw nb::python_error();
  return {pointer};
}

/// Makes a Python object of the base class for a handle.
template <class T> nb::object view(T handle) {
  void *pointer = const_cast<void *>(static_cast<const void *>(handle.ptr));
  nb::object capsule = nb::steal(PyCapsule_New(pointer, Capsule<T>::label, nullptr));
  if (!capsule.is_valid())
    throw nb::python_error();
  return Capsule<T>::cls().attr("_CAPICreate")(capsule);
}

/// Text for a Python object; passes write UTF-8.
inline nb::str toStr(MlirStringRef text) { return nb::str(text.data, text.length); }

inline intptr_t count(nb::handle sequence) { return intptr_t(nb::len(sequence)); }

/// One use of a value.
struct Use {
  MlirOperation owner;
  unsigned number;
  Use *next;
};

/// A region: its operation and index.
using RegionKey = std::pair<void *, intptr_t>;

class Session {
public:
  explicit Session(MlirOperation module);
  ~Session();
  Session(const Session &) = delete;

  static Session *currentOrNull();
  static Session &current();

  const nb::object &context() const { return context_; }

  // Uniqued objects live as long as the context, so their Python objects are kept.
  nb::object object(MlirAttribute handle);
  nb::object object(MlirLocation handle);
  nb::object object(MlirType handle);
  MlirAttribute attribute(nb::handle object);
  MlirLocation location(nb::handle object);
  MlirType type(nb::handle object);

  MlirIdentifier identifier(std::string_view text);
  MlirStringRef text(std::string_view text);

  // A detached operation belongs to the Python object that created or detached it.
  nb::object object(MlirOperation handle);
  MlirOperation own(nb::object detached);
  bool isOwned(MlirOperation handle) const { return owned_.count(handle.ptr) != 0; }
  nb::object disown(MlirOperation handle);

  nb::object object(MlirRegion handle);
  MlirRegion region(MlirOperation owner, intptr_t index);
  MlirRegion regionOf(nb::handle region);
  RegionKey &key(MlirRegion handle) { return *static_cast<RegionKey *>(handle.ptr); }

  nb::object object(MlirBlock handle);
  MlirBlock block(nb::object block);
  MlirBlock firstBlock(MlirRegion region);
  MlirBlock nextBlock(MlirBlock block);
  /// Moves a block to the end of a region.
  void append(MlirBlock block, MlirRegion region);
  /// A region for detached blocks: in the bindings each block is in a region.
  MlirRegion detachedRegion();

  Use *firstUse(MlirValue value);

  void forgetBlocks() { firstBlocks_.clear(), nextBlocks_.clear(); }
  void forgetUses() { firstUses_.clear(); }

private:
  friend class Scope;

  void listBlocks(MlirRegion region);

  nb::object context_;
  std::unordered_map<const void *, nb::object> attributes_, locations_, types_;
  std::unordered_set<std::string> texts_;
  std::unordered_map<const void *, nb::object> owned_;
  std::set<RegionKey> regions_;
  std::unordered_map<const void *, nb::object> blocks_;
  std::unordered_map<const void *, MlirBlock> firstBlocks_, nextBlocks_;
  std::map<std::pair<const void *, unsigned>, Use> uses_;
  std::unordered_map<const void *, Use *> firstUses_;
  MlirRegion detachedRegion_{nullptr};
};

inline Session &session() { return Session::current(); }

/// Returns the Python objects of an array of handles.
template <class T> nb::list listOf(intptr_t count, const T *handles) {
  nb::list list;
  for (intptr_t i = 0; i < count; ++i)
    list.append(session().object(handles[i]));
  return list;
}

/// Sends MLIR's errors to the diagnostic handlers, in order with other diagnostics, instead of into
/// the exceptions of the bindings.
class ErrorsAreEmitted {
public:
  ErrorsAreEmitted();
  ~ErrorsAreEmitted();
  ErrorsAreEmitted(const ErrorsAreEmitted &) = delete;

private:
  nb::object before_;
};

/// Runs `f`. Returns false if `f` raised `Class`, where MLIR's C functions return a failure.
template <class F> bool succeeds(F &&f, const nb::object &Class = classes().MLIRError) {
  try {
    f();
    return true;
  } catch (nb::python_error &error) {
    if (!error.matches(Class))
      throw;
    return false;
  }
}

/// Runs `f` from a destructor, which must not throw.
template <class F> void runNoexcept(const char *what, F &&f) noexcept {
  try {
    f();
  } catch (nb::python_error &error) {
    error.discard_as_unraisable(what);
  } catch (...) {
  }
}

} // namespace hlotag::bindings
