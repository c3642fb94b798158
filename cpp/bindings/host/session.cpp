// SPDX-License-Identifier: Apache-2.0
#include "session.h"

#include "hlotag/capi/table.h"

#include <stdexcept>

namespace hlotag::bindings {

namespace {

thread_local Session *currentSession = nullptr;

/// Returns the Python object kept for a handle, or makes one.
template <class T, class Refine>
nb::object kept(std::unordered_map<const void *, nb::object> &objects, T handle, Refine &&refine) {
  auto [slot, isNew] = objects.try_emplace(handle.ptr);
  if (isNew)
    slot->second = refine(view(handle));
  return slot->second;
}

/// The bindings return some attributes and locations as the base class.
nb::object refineAttribute(const nb::object &object) {
  return object.type().is(classes().Attribute) ? nb::object(object.attr("maybe_downcast")())
                                               : object;
}

nb::object refineLocation(nb::object object) {
  const Classes &ir = classes();
  if (!object.type().is(ir.Location))
    return object;
  for (const nb::object &Class : {ir.NameLoc, ir.FileLineColLoc, ir.CallSiteLoc, ir.FusedLoc})
    if (succeeds([&] { object = Class(object); }, nb::borrow(PyExc_ValueError)))
      break;
  return object;
}

nb::object same(nb::object object) { return object; }

template <class T, class Refine>
T keep(std::unordered_map<const void *, nb::object> &objects, nb::handle object, Refine &&refine) {
  if (object.is_none())
    return {nullptr};
  T handle = pointerOf<T>(object);
  auto [slot, isNew] = objects.try_emplace(handle.ptr);
  if (isNew)
    slot->second = refine(nb::borrow(object));
  return handle;
}

} // namespace

const Classes &classes() {
  static const Classes *all = [] {
    auto *classes = new Classes(); // never freed: the interpreter may be gone before
    nb::module_ ir = nb::module_::import_("jaxlib.mlir.ir");
#define HLOTAG_LOAD(name) classes->name = ir.attr(#name);
    HLOTAG_CLASSES(HLOTAG_LOAD)
#undef HLOTAG_LOAD
    classes->PassManager = nb::module_::import_("jaxlib.mlir.passmanager").attr("PassManager");
    return classes;
  }();
  return *all;
}

void install() {
  classes();
  capi::Table table;
#define HLOTAG_REQUIRED(ret, name, args) table.name = bindings::name;
#include "hlotag/capi/functions.def"
  capi::install(table);
}

bool isInstalled() {
  return capi::isInstalled() && capi::fn().mlirOperationGetName == mlirOperationGetName;
}

Scope::Scope(MlirOperation module) {
  if (isInstalled() && !currentSession)
    session_ = new Session(module);
}

Scope::~Scope() { delete session_; }

void forgetStructure() {
  if (Session *session = Session::currentOrNull()) {
    session->forgetBlocks();
    session->forgetUses();
  }
}

Session *Session::currentOrNull() { return currentSession; }

Session &Session::current() {
  if (!currentSession)
    throw std::logic_error("MLIR was called through jaxlib's bindings outside of a run");
  return *currentSession;
}

Session::Session(MlirOperation module) : context_(view(module).attr("context")) {
  currentSession = this;
}

Session::~Session() {
  // As with MLIR's own functions, a detached operation that nobody destroyed is leaked.
  runNoexcept("hlotag", [&] {
    if (detachedRegion_.ptr && !firstBlock(detachedRegion_).ptr)
      mlirOperationDestroy({key(detachedRegion_).first});
  });
  for (auto &[pointer, operation] : owned_)
    (void)operation.release();
  currentSession = nullptr;
}

nb::object Session::object(MlirAttribute handle) {
  return kept(attributes_, handle, refineAttribute);
}
nb::object Session::object(MlirLocation handle) { return kept(locations_, handle, refineLocation); }
nb::object Session::object(MlirType handle) { return kept(types_, handle, same); }

MlirAttribute Session::attribute(nb::handle object) {
  return keep<MlirAttribute>(attributes_, object, refineAttribute);
}
MlirLocation Session::location(nb::handle object) {
  return keep<MlirLocation>(locations_, object, refineLocation);
}
MlirType Session::type(nb::handle object) { return keep<MlirType>(types_, object, same); }

MlirIdentifier Session::identifier(std::string_view text) { return {&*texts_.emplace(text).first}; }

MlirStringRef Session::text(std::string_view text) {
  const std::string &kept = *texts_.emplace(text).first;
  return {kept.data(), kept.size()};
}

nb::object Session::object(MlirOperation handle) {
  auto found = owned_.find(handle.ptr);
  return found == owned_.end() ? view(handle) : found->second;
}

MlirOperation Session::own(nb::object detached) {
  MlirOperation handle = pointerOf<MlirOperation>(detached);
  owned_[handle.ptr] = std::move(detached);
  return handle;
}

nb::object Session::disown(MlirOperation handle) {
  auto found = owned_.find(handle.ptr);
  if (found == owned_.end())
    throw std::logic_error("the operation is not detached");
  nb::object operation = std::move(found->second);
  owned_.erase(found);
  return operation;
}

nb::object Session::object(MlirRegion handle) {
  auto [owner, index] = key(handle);
  return object(MlirOperation{owner}).attr("regions")[index];
}

MlirRegion Session::region(MlirOperation owner, intptr_t index) {
  return {const_cast<RegionKey *>(&*regions_.emplace(owner.ptr, index).first)};
}

MlirRegion Session::regionOf(nb::handle region) {
  nb::object owner = region.attr("owner");
  nb::object all = owner.attr("regions");
  intptr_t index = 0;
  while (index + 1 < count(all) && !all[index].equal(region))
    ++index;
  return this->region(pointerOf<MlirOperation>(owner), index);
}

nb::object Session::object(MlirBlock handle) { return blocks_.at(handle.ptr); }

MlirBlock Session::block(nb::object block) {
  auto handle = pointerOf<MlirBlock>(block);
  // The newest object: an older one may refer to a destroyed operation.
  blocks_[handle.ptr] = std::move(block);
  return handle;
}

void Session::listBlocks(MlirRegion region) {
  MlirBlock previous{nullptr};
  nb::object blocks = object(region).attr("blocks");
  for (nb::handle item : blocks) {
    MlirBlock next = block(nb::borrow(item));
    (previous.ptr ? nextBlocks_[previous.ptr] : firstBlocks_[region.ptr]) = next;
    previous = next;
  }
  (previous.ptr ? nextBlocks_[previous.ptr] : firstBlocks_[region.ptr]) = {nullptr};
}

MlirBlock Session::firstBlock(MlirRegion region) {
  if (firstBlocks_.find(region.ptr) == firstBlocks_.end())
    listBlocks(region);
  return firstBlocks_[region.ptr];
}

MlirBlock Session::nextBlock(MlirBlock block) {
  if (nextBlocks_.find(block.ptr) == nextBlocks_.end())
    listBlocks(regionOf(object(block).attr("region")));
  return nextBlocks_[block.ptr];
}

void Session::append(MlirBlock block, MlirRegion region) {
  object(block).attr("append_to")(object(region));
  forgetBlocks();
  // The block's Python object still refers to its former owner.
  listBlocks(region);
}

MlirRegion Session::detachedRegion() {
  if (!detachedRegion_.ptr)
    detachedRegion_ = mlirRegionCreate();
  return detachedRegion_;
}

Use *Session::firstUse(MlirValue value) {
  auto [slot, isNew] = firstUses_.try_emplace(value.ptr, nullptr);
  if (!isNew)
    return slot->second;
  Use **end = &slot->second;
  nb::object uses = view(value).attr("uses");
  for (nb::handle item : uses) {
    auto owner = pointerOf<MlirOperation>(item.attr("owner"));
    auto number = nb::cast<unsigned>(item.attr("operand_number"));
    Use &use = uses_[{owner.ptr, number}];
    use = {owner, number, nullptr};
    *end = &use;
    end = &use.next;
  }
  return slot->second;
}

ErrorsAreEmitted::ErrorsAreEmitted()
    : before_(Session::current().context().attr("emit_error_diagnostics")) {
  Session::current().context().attr("emit_error_diagnostics") = true;
}

ErrorsAreEmitted::~ErrorsAreEmitted() {
  runNoexcept("hlotag",
              [&] { Session::current().context().attr("emit_error_diagnostics") = before_; });
}

} // namespace hlotag::bindings
