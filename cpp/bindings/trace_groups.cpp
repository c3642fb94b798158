// SPDX-License-Identifier: Apache-2.0
//
// This runs several times for every operation that JAX traces or executes.
#include "trace_groups.h"

#include "python_objects.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace nb = nanobind;

namespace hlotag::python {

/// One bind: the equations that its thread makes from `begin` to `end`.
struct Group {
  std::shared_ptr<Group> parent;
  nb::object call;      // the library call by user code that made the bind, or null
  nb::object evaluated; // the part of that call that evaluates one equation of a jaxpr, or null
  uint64_t begin = 0;
  uint64_t end = UINT64_MAX; // set when the bind returns

  bool isOpen() const { return end == UINT64_MAX; }

  /// Whether `inner` is this group or one within it.
  bool encloses(const Group *inner) const {
    while (inner && inner != this)
      inner = inner->parent.get();
    return inner;
  }
};

namespace {

/// The number of equations of all threads. The interpreter's lock guards all state in this file.
uint64_t made = 0;

/// A call of library code, which may make several binds. Stored as `f_trace` of its outermost
/// frame, so it dies with the frame. Python calls `f_trace` for debuggers.
struct Call {
  nb::object code, instruction; // of the caller
  nb::object debugger;          // the frame's former `f_trace`, or None
  std::vector<std::weak_ptr<Group>> groups;

  /// Forwards events to the debugger.
  static nb::object trace(nb::object self, nb::object frame, nb::object event, nb::object arg) {
    Call &call = nb::cast<Call &>(self);
    if (call.debugger.is_none())
      return self;
    nb::object next = call.debugger(frame, event, arg);
    if (!next.is_none())
      call.debugger = std::move(next);
    return self;
  }

  /// Returns the call whose outermost frame is `frame`; creates it if new.
  static nb::object of(nb::handle frame, nb::handle caller, nb::handle callerCode) {
    static PyObject *const name = PyUnicode_InternFromString("f_trace");
    static PyObject *const lasti = PyUnicode_InternFromString("f_lasti");
    nb::object present = attribute(frame, name);
    if (nb::isinstance<Call>(present))
      return present;
    nb::object call =
        nb::cast(Call{nb::borrow(callerCode), attribute(caller, lasti), std::move(present), {}});
    if (PyObject_SetAttr(frame.ptr(), name, call.ptr()))
      throw nb::python_error();
    return call;
  }
};

// See `take_files`.
PyObject *isUserFilename, *runners;

nb::object codeOf(PyObject *frame) {
  return nb::steal(
      reinterpret_cast<PyObject *>(PyFrame_GetCode(reinterpret_cast<PyFrameObject *>(frame))));
}

/// The role of a frame in the search for a library call.
enum class FrameKind : uint8_t {
  User,
  Library,
  Runner,  // calls its argument once
  Skipped, // a generator, or calls its argument for each element
};

FrameKind findKind(nb::handle code) {
  static PyObject *const filename = PyUnicode_InternFromString("co_filename");
  static PyObject *const flags = PyUnicode_InternFromString("co_flags");
  constexpr long isGenerator = 0x20; // inspect.CO_GENERATOR
  nb::object file = attribute(code, filename);
  if (nb::cast<bool>(nb::handle(isUserFilename)(file)))
    return FrameKind::User;
  if (nb::cast<long>(attribute(code, flags)) & isGenerator)
    return FrameKind::Skipped;
  PyObject *isOneCall = PyDict_GetItemWithError(runners, file.ptr()); // borrowed
  if (!isOneCall && PyErr_Occurred())
    throw nb::python_error();
  if (!isOneCall)
    return FrameKind::Library;
  return isOneCall == Py_True ? FrameKind::Runner : FrameKind::Skipped;
}

FrameKind kindOf(nb::handle code) {
  constexpr size_t most = 10000; // A notebook makes new code with each cell.
  static auto *const kinds = new std::unordered_map<PyObject *, std::pair<nb::object, FrameKind>>();
  if (auto known = kinds->find(code.ptr()); known != kinds->end())
    return known->second.second;
  FrameKind kind = findKind(code);
  if (kinds->size() == most)
    kinds->clear();
  kinds->emplace(code.ptr(), std::pair(nb::borrow(code), kind));
  return kind;
}

/// Sets `call` and `evaluated` of `group`, if there are frames of library code below user code.
///
/// The call's frame is the outermost one that is not `Skipped`. The frame that evaluates an
/// equation is the outermost one of kind `Library`. `frame` is the frame that binds; the search
/// ends at `outside`, the frame that bound the parent of `group`, or null.
void findCall(Group &group, PyObject *frame, PyObject *outside) {
  static PyObject *const back = PyUnicode_InternFromString("f_back");
  std::vector<std::pair<PyObject *, FrameKind>> library; // borrowed: running frames
  nb::object code;
  for (; frame != outside && frame != Py_None; frame = attribute(frame, back).ptr()) {
    code = codeOf(frame);
    FrameKind kind = kindOf(code);
    if (kind == FrameKind::User)
      break;
    library.emplace_back(frame, kind);
  }
  if (frame == outside || frame == Py_None)
    return;
  for (; !library.empty(); library.pop_back()) {
    auto [outermost, kind] = library.back();
    if (kind == FrameKind::Skipped || (kind == FrameKind::Runner && group.call))
      continue;
    nb::object call = Call::of(outermost, frame, code);
    if (!group.call)
      group.call = call;
    if (kind == FrameKind::Runner)
      continue;
    group.evaluated = std::move(call);
    return;
  }
}

} // namespace

thread_local OpenGroup *OpenGroup::innermost = nullptr;

OpenGroup::OpenGroup()
    : outer_(innermost), frame_(reinterpret_cast<PyObject *>(PyEval_GetFrame())) {
  innermost = this;
}

OpenGroup::~OpenGroup() {
  innermost = outer_;
  if (group_)
    group_->end = made;
}

const std::shared_ptr<Group> &OpenGroup::group() {
  if (group_)
    return group_;
  auto group = std::make_shared<Group>();
  group->parent = outer_ ? outer_->group() : nullptr;
  group->begin = made;
  if (frame_)
    findCall(*group, frame_, outer_ ? outer_->frame_ : nullptr);
  if (group->call)
    nb::cast<Call &>(group->call).groups.push_back(group);
  if (group->evaluated && !group->evaluated.is(group->call))
    nb::cast<Call &>(group->evaluated).groups.push_back(group);
  return group_ = std::move(group);
}

namespace {

struct Equation {
  nb::object reference; // weak; shared with JAX
  std::shared_ptr<Group> group;
  uint64_t number;
};

/// The recorded equations of a live trace, in order.
struct Trace {
  nb::object reference; // weak; its callback erases the trace
  std::vector<Equation> equations;
  std::unordered_map<PyObject *, size_t> places; // by address, which may be reused

  /// Returns null for equations of other traces, and for those made outside of groups.
  const Equation *find(nb::handle equation) const {
    auto place = places.find(equation.ptr());
    if (place == places.end() || !equations[place->second].reference().is(equation))
      return nullptr;
    return &equations[place->second];
  }

  /// Visits the equations of `group`, by number.
  template <class Visit> void visit(const Group &group, Visit &&onEquation) const {
    auto isBefore = [](const Equation &equation, uint64_t number) {
      return equation.number < number;
    };
    auto at = std::lower_bound(equations.begin(), equations.end(), group.begin, isBefore);
    for (; at != equations.end() && at->number < group.end; ++at)
      if (group.encloses(at->group.get()))
        onEquation(*at);
  }
};

/// The live traces by address. Never destroyed: the interpreter is gone before globals are.
std::unordered_map<PyObject *, Trace> &traces() {
  static auto *const traces = new std::unordered_map<PyObject *, Trace>();
  return *traces;
}

PyObject *forget(PyObject *, PyObject *reference) {
  for (auto &[address, trace] : traces()) {
    if (trace.reference.ptr() != reference)
      continue;
    // Its destruction may run code that makes traces.
    Trace last = std::move(trace);
    traces().erase(address);
    break;
  }
  Py_RETURN_NONE;
}

nb::object weakReference(nb::handle object, PyObject *callback) {
  nb::object reference = nb::steal(PyWeakref_NewRef(object.ptr(), callback));
  if (!reference)
    throw nb::python_error();
  return reference;
}

Trace &recordsOf(nb::handle trace) {
  static PyMethodDef method = {"forget", forget, METH_O, nullptr};
  static PyObject *const callback = PyCFunction_New(&method, nullptr);
  auto found = traces().find(trace.ptr());
  if (found == traces().end())
    found = traces().emplace(trace.ptr(), Trace{weakReference(trace, callback), {}, {}}).first;
  return found->second;
}

/// Returns the outermost closed group around `equation`, or null.
std::shared_ptr<Group> groupOf(nb::handle equation) {
  std::shared_ptr<Group> group;
  for (const auto &[address, trace] : traces())
    if (const Equation *record = trace.find(equation))
      group = record->group;
  if (!group || group->isOpen())
    return nullptr;
  while (group->parent && !group->parent->isOpen())
    group = group->parent;
  return group;
}

/// See `is_made_later`.
bool isMadeLater(nb::handle equation, nb::handle other) {
  std::shared_ptr<Group> group = groupOf(equation), before = groupOf(other);
  return group && before && group->begin >= before->end;
}

/// Equations by number. A copy: making objects may collect garbage, which erases traces.
using References = std::vector<std::pair<uint64_t, nb::object>>;

References referencesOf(const Group &group) {
  References found;
  for (const auto &[address, trace] : traces())
    trace.visit(group, [&](const Equation &equation) {
      found.emplace_back(equation.number, equation.reference);
    });
  return found;
}

bool hasEquationsIn(const Group &group, const nb::list &ofTraces) {
  bool found = false;
  for (nb::handle trace : ofTraces)
    if (auto known = traces().find(trace.ptr()); known != traces().end())
      known->second.visit(group, [&](const Equation &) { found = true; });
  return found;
}

/// Whether `place`, a (code, instruction) or None for any, is the place of `call`.
bool isCalledAt(nb::handle call, nb::handle place) {
  const Call &itself = nb::cast<const Call &>(call);
  return place.is_none() || (itself.code.is(place[0]) && itself.instruction.equal(place[1]));
}

/// See `equations_of_call`.
nb::list equationsOfCall(nb::handle equation, nb::handle place, const nb::list &ofTraces) {
  std::shared_ptr<Group> group = groupOf(equation);
  nb::list equations;
  if (!group) {
    equations.append(equation);
    return equations;
  }
  References found = referencesOf(*group);
  nb::object call = group->call;
  if (call && !isCalledAt(call, place))
    call = group->evaluated;
  if (call) {
    for (const std::weak_ptr<Group> &reference : nb::cast<Call &>(call).groups) {
      std::shared_ptr<Group> other = reference.lock();
      if (!other || other == group || !hasEquationsIn(*other, ofTraces))
        continue;
      References more = referencesOf(*other);
      found.insert(found.end(), more.begin(), more.end());
    }
  }
  std::sort(found.begin(), found.end(),
            [](const auto &a, const auto &b) { return a.first < b.first; });
  for (const auto &[number, reference] : found)
    if (nb::object alive = reference(); !alive.is_none())
      equations.append(alive);
  return equations;
}

} // namespace

void record(nb::handle trace, nb::handle equation) {
  if (!OpenGroup::innermost)
    return;
  const std::shared_ptr<Group> &group = OpenGroup::innermost->group();
  nb::object reference = weakReference(equation, nullptr);
  Trace &records = recordsOf(trace);
  records.places[equation.ptr()] = records.equations.size();
  records.equations.push_back({std::move(reference), group, made++});
}

void bindTraceGroups(nb::module_ &m) {
  nb::class_<Call>(m, "Call", "A call of library code, on its outermost frame.")
      .def("__call__", &Call::trace, "Forwards events of the frame to its debugger.");
  m.def(
      "take_files",
      [](nb::handle isUsers, nb::handle ofRunners) {
        isUserFilename = isUsers.inc_ref().ptr();
        runners = ofRunners.inc_ref().ptr();
      },
      nb::arg("is_user_filename"), nb::arg("runners"),
      "Sets which files are the user's, and which of JAX's files run functions that they are "
      "given. The latter map to whether such a run is one call. Call this before recording.");
  m.def(
      "equations_of_call", &equationsOfCall, nb::arg("equation"), nb::arg("place").none(),
      nb::arg("traces"),
      "The equations of the library call that made `equation`, within the binds that have not "
      "returned: those of all its binds with equations in one of `traces`. Only `equation` if no "
      "group was open. `place` is the user's place of `equation`. If the call is at another place, "
      "it evaluates an equation from `place`; then only the part for that equation counts.");
  m.def("is_made_later", &isMadeLater, nb::arg("equation"), nb::arg("other"),
        "Whether the operation behind `equation` was bound after the one behind `other`. False if "
        "no group was open.");
  m.def(
      "recorded_equations",
      [] {
        size_t count = 0;
        for (const auto &[address, trace] : traces())
          count += trace.equations.size();
        return count;
      },
      "The number of recorded equations of live traces.");
}

} // namespace hlotag::python
