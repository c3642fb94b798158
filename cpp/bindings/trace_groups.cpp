// SPDX-License-Identifier: Apache-2.0
//
// This runs for every operation that JAX traces or runs, several times for one: in Python it took a
// twelfth of tracing.
#include "trace_groups.h"

#include <nanobind/stl/shared_ptr.h>

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace nb = nanobind;

namespace {

/// Counts equations, of all threads; guarded by the interpreter's lock, as all here.
uint64_t made = 0;

/// One bind: the equations that its thread makes from `begin` to `end`.
struct Group {
  std::shared_ptr<Group> parent;
  uint64_t begin;
  uint64_t end = UINT64_MAX; // while it runs

  /// Whether `inner` is this group or one within it.
  bool encloses(const Group *inner) const {
    while (inner && inner != this)
      inner = inner->parent.get();
    return inner;
  }
};

/// A bind that has not returned. Its group is made with its first equation: an operation that runs
/// without being traced has none.
class Open {
public:
  Open() : outer_(innermost) { innermost = this; }
  ~Open() {
    innermost = outer_;
    if (group_)
      group_->end = made;
  }
  Open(const Open &) = delete;
  Open &operator=(const Open &) = delete;

  const std::shared_ptr<Group> &group() {
    if (!group_)
      group_ = std::make_shared<Group>(Group{outer_ ? outer_->group() : nullptr, made});
    return group_;
  }

  /// The innermost group that is open and has equations, or null.
  static std::shared_ptr<Group> innermostGroup() {
    for (const Open *open = innermost; open; open = open->outer_)
      if (open->group_)
        return open->group_;
    return nullptr;
  }

  static thread_local Open *innermost;

private:
  Open *outer_;
  std::shared_ptr<Group> group_;
};

thread_local Open *Open::innermost = nullptr;

struct Equation {
  PyObject *address;    // who has it now may be another
  nb::object reference; // weak, and the one that JAX itself has
  std::shared_ptr<Group> group;
  nb::object traceback; // where JAX has that of another equation; else null
  uint64_t number;
};

/// What was recorded of a trace that is alive, in the order it was made.
struct Trace {
  nb::object reference; // weak; forgets the trace
  std::vector<Equation> equations;
};

/// By address. Never destroyed, as the interpreter is gone when globals are.
std::unordered_map<PyObject *, Trace> &traces() {
  static auto *const traces = new std::unordered_map<PyObject *, Trace>();
  return *traces;
}

PyObject *forget(PyObject *, PyObject *reference) {
  for (auto &[address, trace] : traces()) {
    if (trace.reference.ptr() != reference)
      continue;
    // What goes with it may run code that makes traces.
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
    found = traces().emplace(trace.ptr(), Trace{weakReference(trace, callback), {}}).first;
  return found->second;
}

// JAX's `source_info_util._source_info_context` and `Traceback.get_traceback`.
PyObject *sourceContext, *getTraceback;

/// What JAX evaluates (the rules for the equation of a jaxpr, and the user's code in them) has the
/// traceback of that equation.
nb::object tracebackIfReplaced() {
  if (nb::getattr(nb::handle(sourceContext).attr("context"), "traceback").is_none())
    return {};
  return nb::handle(getTraceback)();
}

void record(nb::handle trace, nb::handle equation) {
  if (!Open::innermost)
    return;
  const std::shared_ptr<Group> &group = Open::innermost->group();
  nb::object reference = weakReference(equation, nullptr);
  nb::object traceback = tracebackIfReplaced();
  recordsOf(trace).equations.push_back(
      {equation.ptr(), std::move(reference), group, std::move(traceback), made++});
}

/// Null if no group was open.
const Equation *recordOf(nb::handle equation) {
  for (const auto &[address, trace] : traces()) {
    // From the end, which is where a tag usually finds it.
    const auto &equations = trace.equations;
    for (auto at = equations.rbegin(); at != equations.rend(); ++at)
      if (at->address == equation.ptr() && at->reference().is(equation))
        return &*at;
  }
  return nullptr;
}

/// By number. A copy of what is recorded, and made before any object is: that may collect garbage,
/// and traces with it.
using References = std::vector<std::pair<uint64_t, nb::object>>;

/// Those that JAX has not dropped.
nb::list alive(const References &references) {
  nb::list equations;
  for (const auto &[number, reference] : references)
    if (nb::object equation = reference(); !equation.is_none())
      equations.append(equation);
  return equations;
}

/// Those of a trace that JAX has not dropped, in the order they were made.
nb::list recordedIn(nb::handle trace) {
  auto found = traces().find(trace.ptr());
  if (found == traces().end())
    return {};
  References references;
  for (const Equation &equation : found->second.equations)
    references.emplace_back(equation.number, equation.reference);
  return alive(references);
}

/// Those that JAX has not dropped, in the order they were made.
nb::list equationsIn(const Group &group) {
  References found;
  auto isBefore = [](const Equation &equation, uint64_t number) {
    return equation.number < number;
  };
  for (const auto &[address, trace] : traces()) {
    const auto &all = trace.equations;
    auto at = std::lower_bound(all.begin(), all.end(), group.begin, isBefore);
    for (; at != all.end() && at->number < group.end; ++at)
      if (group.encloses(at->group.get()))
        found.emplace_back(at->number, at->reference);
  }
  std::sort(found.begin(), found.end(),
            [](const auto &a, const auto &b) { return a.first < b.first; });
  return alive(found);
}

using Arguments = PyObject *const *;

/// Calls a method that was wrapped: `arguments` do not have `self`.
PyObject *callOriginal(PyObject *original, PyObject *self, Arguments arguments, Py_ssize_t count,
                       PyObject *names) {
  size_t all = count + (names ? PyTuple_Size(names) : 0) + 1;
  constexpr size_t most = 16;
  PyObject *few[most];
  std::vector<PyObject *> many;
  if (all > most)
    many.resize(all);
  PyObject **given = all > most ? many.data() : few;
  given[0] = self;
  std::copy(arguments, arguments + all - 1, given + 1);
  return PyObject_Vectorcall(original, given, count + 1, names);
}

/// Off, a wrapper only calls what it wraps.
struct Switch {
  bool isOn = false;
};

/// One place in the process that is wrapped, and by one wrapper at a time.
struct Place {
  PyObject *original = nullptr; // what was there before
  const Switch *itsSwitch = nullptr;
};

Place bind, bindWithTrace, makeEqn, newEqnRecipe;

PyObject *inGroup(PyObject *self, Arguments arguments, Py_ssize_t count, PyObject *names) {
  if (!bind.itsSwitch->isOn)
    return callOriginal(bind.original, self, arguments, count, names);
  Open open;
  return callOriginal(bind.original, self, arguments, count, names);
}

PyObject *inSomeGroup(PyObject *self, Arguments arguments, Py_ssize_t count, PyObject *names) {
  if (Open::innermost || !bindWithTrace.itsSwitch->isOn)
    return callOriginal(bindWithTrace.original, self, arguments, count, names);
  Open open;
  return callOriginal(bindWithTrace.original, self, arguments, count, names);
}

PyObject *recorded(PyObject *self, Arguments arguments, Py_ssize_t count, PyObject *names) {
  nb::object result = nb::steal(callOriginal(makeEqn.original, self, arguments, count, names));
  if (!result || !makeEqn.itsSwitch->isOn)
    return result.release().ptr();
  try {
    record(self, result[0]);
  } catch (nb::python_error &error) {
    error.restore();
    return nullptr;
  }
  return result.release().ptr();
}

/// Recipes are tuples, to which nothing refers weakly: their tracers are recorded.
PyObject *recordedRecipe(PyObject *, Arguments arguments, Py_ssize_t count, PyObject *names) {
  nb::object recipe =
      nb::steal(PyObject_Vectorcall(newEqnRecipe.original, arguments, count, names));
  if (!recipe || !newEqnRecipe.itsSwitch->isOn)
    return recipe.release().ptr();
  try {
    for (nb::handle reference : recipe.attr("out_tracer_refs")) {
      nb::object tracer = reference();
      record(tracer.attr("_trace"), tracer);
    }
  } catch (nb::python_error &error) {
    error.restore();
    return nullptr;
  }
  return recipe.release().ptr();
}

PyCFunction asFunction(PyObject *(*function)(PyObject *, Arguments, Py_ssize_t,
                                             PyObject *)) noexcept {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

constexpr int anyArguments = METH_FASTCALL | METH_KEYWORDS;
PyMethodDef bindMethod = {"bind", asFunction(inGroup), anyArguments,
                          "bind($self, /, *args, **params)\n--\n\nJAX's own, wrapped by hlotag."};
PyMethodDef bindWithTraceMethod = {
    "bind_with_trace", asFunction(inSomeGroup), anyArguments,
    "bind_with_trace($self, trace, args, avals, params, /)\n--\n\nJAX's own, wrapped by hlotag."};
PyMethodDef makeEqnMethod = {
    "make_eqn", asFunction(recorded), anyArguments,
    "make_eqn($self, /, *args, **kwargs)\n--\n\nJAX's own, wrapped by hlotag."};

PyMethodDef newEqnRecipeFunction = {
    "new_eqn_recipe", asFunction(recordedRecipe), anyArguments,
    "new_eqn_recipe(*args, **kwargs)\n--\n\nJAX's own, wrapped by hlotag."};

void wrap(Place &place, nb::handle original, nb::handle itsSwitch) {
  nb::object before = nb::steal(std::exchange(place.original, original.inc_ref().ptr()));
  place.itsSwitch =
      nb::inst_ptr<Switch>(itsSwitch.inc_ref()); // Patches live as long as the process.
}

/// A method of the class `owner` that takes the place of `original`.
nb::object wrapMethod(Place &place, PyMethodDef &method, nb::handle original, nb::handle itsSwitch,
                      nb::handle owner) {
  wrap(place, original, itsSwitch);
  return nb::steal(PyDescr_NewMethod(reinterpret_cast<PyTypeObject *>(owner.ptr()), &method));
}

} // namespace

void hlotag::python::bindTraceGroups(nb::module_ &m) {
  nb::class_<Group>(m, "Group", "The equations made during one bind.")
      .def_ro("parent", &Group::parent, "The group that was open when this one was opened.")
      .def("equations", &equationsIn,
           "Those that JAX has not dropped, in the order they were made.");
  nb::class_<Switch>(m, "Switch", "Turns a wrapper on; off, it only calls what it wraps.")
      .def(nb::init<>())
      .def_rw("is_on", &Switch::isOn);
  auto wraps = [&m](const char *name, Place &place, PyMethodDef &method, const char *doc) {
    m.def(
        name,
        [&place, &method](nb::handle original, nb::handle_t<Switch> itsSwitch, nb::handle owner) {
          return wrapMethod(place, method, original, itsSwitch, owner);
        },
        nb::arg("original"), nb::arg("switch"), nb::arg("owner"), doc);
  };
  wraps("in_group", bind, bindMethod, "`Primitive.bind` with a group open while it runs.");
  wraps("in_some_group", bindWithTrace, bindWithTraceMethod,
        "`Primitive.bind_with_trace` with a group of its own open if none is.");
  wraps("recorded", makeEqn, makeEqnMethod,
        "`DynamicJaxprTrace.make_eqn`, its equations recorded in the innermost open group.");
  m.def(
      "recorded_recipe",
      [](nb::handle original, nb::handle_t<Switch> itsSwitch) {
        wrap(newEqnRecipe, original, itsSwitch);
        return nb::steal(PyCFunction_New(&newEqnRecipeFunction, nullptr));
      },
      nb::arg("original"), nb::arg("switch"),
      "`new_eqn_recipe`, the tracers of its recipes recorded as equations are.");
  m.def(
      "group_of",
      [](nb::handle equation) {
        const Equation *record = recordOf(equation);
        return record ? record->group : nullptr;
      },
      nb::arg("equation"), "None if no group was open.");
  m.def(
      "traceback_of",
      [](nb::handle equation) {
        const Equation *record = recordOf(equation);
        return record && record->traceback ? record->traceback : nb::none();
      },
      nb::arg("equation"), "Where it was made, if it has another equation's traceback; else None.");
  m.def(
      "take_tracebacks",
      [](nb::handle context, nb::handle get) {
        sourceContext = context.inc_ref().ptr();
        getTraceback = get.inc_ref().ptr();
      },
      "How to find where an equation is made, and whether JAX looks; before anything is recorded.");
  m.def("recorded_in", &recordedIn, nb::arg("trace"),
        "What was recorded of a trace and JAX has not dropped, in the order it was made.");
  m.def("open_group", &Open::innermostGroup, "The innermost one that has equations so far.");
  m.def(
      "recorded_equations",
      [] {
        size_t count = 0;
        for (const auto &[address, trace] : traces())
          count += trace.equations.size();
        return count;
      },
      "Those of all traces that are alive.");
}
