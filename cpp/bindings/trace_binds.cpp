// SPDX-License-Identifier: Apache-2.0
//
// This runs several times for every operation that JAX traces or executes.
#include "trace_binds.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace nb = nanobind;

namespace hlotag::python {

/// One bind: the equations that its thread makes from `begin` to `end`.
struct Bind {
  std::shared_ptr<Bind> parent;
  uint64_t begin = 0;
  uint64_t end = UINT64_MAX; // set when the bind returns

  bool isOpen() const { return end == UINT64_MAX; }

  /// Whether `inner` is this bind or one within it.
  bool encloses(const Bind *inner) const {
    while (inner && inner != this)
      inner = inner->parent.get();
    return inner;
  }
};

/// The number of equations of all threads. The interpreter's lock guards all state in this file.
static uint64_t made = 0;

thread_local OpenBind *OpenBind::innermost = nullptr;

OpenBind::OpenBind() : outer_(innermost) { innermost = this; }

OpenBind::~OpenBind() {
  innermost = outer_;
  if (bind_)
    bind_->end = made;
}

const std::shared_ptr<Bind> &OpenBind::bind() {
  if (bind_)
    return bind_;
  auto bind = std::make_shared<Bind>();
  bind->parent = outer_ ? outer_->bind() : nullptr;
  bind->begin = made;
  return bind_ = std::move(bind);
}

namespace {

struct Equation {
  nb::object reference; // weak; shared with JAX
  std::shared_ptr<Bind> bind;
  uint64_t number;
};

/// The recorded equations of a live trace, in order.
struct Trace {
  nb::object reference; // weak; its callback erases the trace
  std::vector<Equation> equations;
  std::unordered_map<PyObject *, size_t> indices; // by address, which may be reused

  /// Returns null for equations of other traces, and for those made outside of binds.
  const Equation *find(nb::handle equation) const {
    auto index = indices.find(equation.ptr());
    if (index == indices.end() || !equations[index->second].reference().is(equation))
      return nullptr;
    return &equations[index->second];
  }

  /// Visits the equations of `bind`, by number.
  template <class Visit> void visit(const Bind &bind, Visit &&onEquation) const {
    auto isBefore = [](const Equation &equation, uint64_t number) {
      return equation.number < number;
    };
    auto at = std::lower_bound(equations.begin(), equations.end(), bind.begin, isBefore);
    for (; at != equations.end() && at->number < bind.end; ++at)
      if (bind.encloses(at->bind.get()))
        onEquation(*at);
  }
};

/// The live traces by address. Never destroyed: the interpreter is gone before globals are.
std::unordered_map<PyObject *, Trace> &traces() {
  static auto *const traces = new std::unordered_map<PyObject *, Trace>();
  return *traces;
}

/// The callback of the weak reference to a trace. `address` is a capsule with the trace's address.
PyObject *forget(PyObject *address, PyObject *reference) {
  auto found = traces().find(static_cast<PyObject *>(PyCapsule_GetPointer(address, nullptr)));
  if (found != traces().end() && found->second.reference.ptr() == reference) {
    // Its destruction may run code that makes traces.
    Trace last = std::move(found->second);
    traces().erase(found);
  }
  Py_RETURN_NONE;
}

nb::object weakReference(nb::handle object, nb::handle callback = {}) {
  nb::object reference = nb::steal(PyWeakref_NewRef(object.ptr(), callback.ptr()));
  if (!reference)
    throw nb::python_error();
  return reference;
}

Trace &recordsOf(nb::handle trace) {
  static PyMethodDef method = {"forget", forget, METH_O, nullptr};
  auto found = traces().find(trace.ptr());
  if (found != traces().end())
    return found->second;
  nb::capsule address(trace.ptr());
  nb::object callback = nb::steal(PyCFunction_New(&method, address.ptr()));
  nb::object reference = weakReference(trace, callback);
  return traces().emplace(trace.ptr(), Trace{std::move(reference), {}, {}}).first->second;
}

/// Returns the outermost closed bind around `equation`, or null.
std::shared_ptr<Bind> bindOf(nb::handle equation) {
  std::shared_ptr<Bind> bind;
  for (const auto &[address, trace] : traces())
    if (const Equation *record = trace.find(equation))
      bind = record->bind;
  if (!bind || bind->isOpen())
    return nullptr;
  while (bind->parent && !bind->parent->isOpen())
    bind = bind->parent;
  return bind;
}

/// See `is_made_later`.
bool isMadeLater(nb::handle equation, nb::handle other) {
  std::shared_ptr<Bind> bind = bindOf(equation), before = bindOf(other);
  return bind && before && bind->begin >= before->end;
}

/// Equations by number. A copy: making objects may collect garbage, which erases traces.
using References = std::vector<std::pair<uint64_t, nb::object>>;

References referencesOf(const Bind &bind) {
  References found;
  for (const auto &[address, trace] : traces())
    trace.visit(bind, [&](const Equation &equation) {
      found.emplace_back(equation.number, equation.reference);
    });
  return found;
}

/// See `equations_of_bind`.
nb::list equationsOfBind(nb::handle equation) {
  std::shared_ptr<Bind> bind = bindOf(equation);
  nb::list equations;
  if (!bind) {
    equations.append(equation);
    return equations;
  }
  References found = referencesOf(*bind);
  std::sort(found.begin(), found.end(),
            [](const auto &a, const auto &b) { return a.first < b.first; });
  for (const auto &[number, reference] : found)
    if (nb::object alive = reference(); !alive.is_none())
      equations.append(alive);
  return equations;
}

} // namespace

void record(nb::handle trace, nb::handle equation) {
  if (!OpenBind::innermost)
    return;
  const std::shared_ptr<Bind> &bind = OpenBind::innermost->bind();
  nb::object reference = weakReference(equation);
  Trace &records = recordsOf(trace);
  records.indices[equation.ptr()] = records.equations.size();
  records.equations.push_back({std::move(reference), bind, made++});
}

void defineBinds(nb::module_ &m) {
  m.def("equations_of_bind", &equationsOfBind, nb::arg("equation"),
        "The equations of the outermost bind that made `equation` and has returned, in order; only "
        "`equation` if no bind was open.");
  m.def("is_made_later", &isMadeLater, nb::arg("equation"), nb::arg("other"),
        "Whether the operation behind `equation` was bound after the one behind `other`. False if "
        "no bind was open.");
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
