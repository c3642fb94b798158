// SPDX-License-Identifier: Apache-2.0
//
// Which methods of JAX does hlotag wrap, to record what they trace?
#include "trace_binds.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <utility>

namespace nb = nanobind;

using hlotag::python::OpenBind;

namespace {

using Arguments = PyObject *const *;

/// Calls the original of a wrapped method; `arguments` exclude `self`.
PyObject *callOriginal(PyObject *original, PyObject *self, Arguments arguments, Py_ssize_t count,
                       PyObject *names) {
  size_t all = count + (names ? PyTuple_Size(names) : 0) + 1;
  constexpr size_t most = 16;
  PyObject *few[most];
  std::unique_ptr<PyObject *[]> many(all > most ? new (std::nothrow) PyObject *[all] : nullptr);
  PyObject **given = all > most ? many.get() : few;
  if (!given)
    return PyErr_NoMemory();
  given[0] = self;
  std::copy(arguments, arguments + all - 1, given + 1);
  return PyObject_Vectorcall(original, given, count + 1, names);
}

/// Counts who needs a wrapper. One that nobody needs only calls the original.
struct Switch {
  int uses = 0;
};

/// A method that is wrapped, by one wrapper at a time.
struct WrappedMethod {
  PyObject *original = nullptr; // the unwrapped method
  const Switch *stages = nullptr;
  PyObject *inRules = nullptr; // calls `original`, as rules need it
  const Switch *rules = nullptr;

  bool isOn() const { return stages->uses != 0; }
  PyObject *inner() const { return rules && rules->uses != 0 ? inRules : original; }
};

WrappedMethod bind, bindWithTrace, makeEqn, newEqnRecipe;

PyObject *callBind(PyObject *self, Arguments arguments, Py_ssize_t count, PyObject *names) {
  if (!bind.isOn())
    return callOriginal(bind.original, self, arguments, count, names);
  OpenBind open;
  return callOriginal(bind.inner(), self, arguments, count, names);
}

PyObject *callBindWithTrace(PyObject *self, Arguments arguments, Py_ssize_t count,
                            PyObject *names) {
  if (OpenBind::innermost || !bindWithTrace.isOn())
    return callOriginal(bindWithTrace.original, self, arguments, count, names);
  OpenBind open;
  return callOriginal(bindWithTrace.original, self, arguments, count, names);
}

/// Calls `record`, which may throw: no exception leaves for the interpreter's frames. Returns
/// `result`, or null with an error set.
template <class Record> PyObject *returnAfter(nb::object result, Record &&record) noexcept {
  try {
    record();
    return result.release().ptr();
  } catch (nb::python_error &error) {
    error.restore();
  } catch (const std::exception &error) {
    PyErr_Format(PyExc_RuntimeError, "hlotag cannot record an equation: %s", error.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "hlotag cannot record an equation");
  }
  return nullptr;
}

PyObject *recordEquation(PyObject *self, Arguments arguments, Py_ssize_t count, PyObject *names) {
  nb::object result = nb::steal(callOriginal(makeEqn.inner(), self, arguments, count, names));
  if (!result || !makeEqn.isOn())
    return result.release().ptr();
  nb::handle equation = result;
  return returnAfter(std::move(result), [&] { hlotag::python::record(self, equation[0]); });
}

/// Records the tracers of a recipe: recipes are tuples, which have no weak references.
PyObject *recordRecipe(PyObject *, Arguments arguments, Py_ssize_t count, PyObject *names) {
  nb::object recipe = nb::steal(PyObject_Vectorcall(newEqnRecipe.inner(), arguments, count, names));
  if (!recipe || !newEqnRecipe.isOn())
    return recipe.release().ptr();
  nb::handle made = recipe;
  return returnAfter(std::move(recipe), [&] {
    for (nb::handle reference : made.attr("out_tracer_refs")) {
      nb::object tracer = reference();
      hlotag::python::record(tracer.attr("_trace"), tracer);
    }
  });
}

PyCFunction asFunction(PyObject *(*function)(PyObject *, Arguments, Py_ssize_t,
                                             PyObject *)) noexcept {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

constexpr int anyArguments = METH_FASTCALL | METH_KEYWORDS;
PyMethodDef bindMethod = {"bind", asFunction(callBind), anyArguments,
                          "bind($self, /, *args, **params)\n--\n\nJAX's own, wrapped by hlotag."};
PyMethodDef bindWithTraceMethod = {
    "bind_with_trace", asFunction(callBindWithTrace), anyArguments,
    "bind_with_trace($self, trace, args, avals, params, /)\n--\n\nJAX's own, wrapped by hlotag."};
PyMethodDef makeEqnMethod = {
    "make_eqn", asFunction(recordEquation), anyArguments,
    "make_eqn($self, /, *args, **kwargs)\n--\n\nJAX's own, wrapped by hlotag."};

PyMethodDef newEqnRecipeFunction = {
    "new_eqn_recipe", asFunction(recordRecipe), anyArguments,
    "new_eqn_recipe(*args, **kwargs)\n--\n\nJAX's own, wrapped by hlotag."};

/// Patches live as long as the process, and so do their switches.
const Switch *kept(nb::handle aSwitch) { return nb::inst_ptr<Switch>(aSwitch.inc_ref()); }

void wrap(WrappedMethod &wrapped, nb::handle original, nb::handle stages) {
  nb::object before = nb::steal(std::exchange(wrapped.original, original.inc_ref().ptr()));
  wrapped.stages = kept(stages);
}

void wrap(WrappedMethod &wrapped, nb::handle original, nb::handle stages, nb::handle inRules,
          nb::handle rules) {
  wrap(wrapped, original, stages);
  nb::object before = nb::steal(std::exchange(wrapped.inRules, inRules.inc_ref().ptr()));
  wrapped.rules = kept(rules);
}

/// Makes a method of the class `owner`.
nb::object makeMethod(PyMethodDef &method, nb::handle owner) {
  return nb::steal(PyDescr_NewMethod(reinterpret_cast<PyTypeObject *>(owner.ptr()), &method));
}

} // namespace

void hlotag::python::bindWrappedMethods(nb::module_ &m) {
  using SwitchHandle = nb::handle_t<Switch>;
  nb::class_<Switch>(m, "Switch",
                     "Counts who needs a wrapper. One that nobody needs only calls the original.")
      .def(nb::init<>())
      .def_rw("uses", &Switch::uses);
  m.def(
      "in_bind",
      [](nb::handle original, SwitchHandle stages, nb::handle inRules, SwitchHandle rules,
         nb::handle owner) {
        wrap(bind, original, stages, inRules, rules);
        return makeMethod(bindMethod, owner);
      },
      nb::arg("original"), nb::arg("stages"), nb::arg("in_rules"), nb::arg("rules"),
      nb::arg("owner"), "`Primitive.bind`, recorded while it runs.");
  m.def(
      "in_some_bind",
      [](nb::handle original, SwitchHandle stages, nb::handle owner) {
        wrap(bindWithTrace, original, stages);
        return makeMethod(bindWithTraceMethod, owner);
      },
      nb::arg("original"), nb::arg("stages"), nb::arg("owner"),
      "`Primitive.bind_with_trace`, recorded unless a bind runs already.");
  m.def(
      "recorded",
      [](nb::handle original, SwitchHandle stages, nb::handle inRules, SwitchHandle rules,
         nb::handle owner) {
        wrap(makeEqn, original, stages, inRules, rules);
        return makeMethod(makeEqnMethod, owner);
      },
      nb::arg("original"), nb::arg("stages"), nb::arg("in_rules"), nb::arg("rules"),
      nb::arg("owner"),
      "`DynamicJaxprTrace.make_eqn`; records its equations with the innermost bind.");
  m.def(
      "recorded_recipe",
      [](nb::handle original, SwitchHandle stages, nb::handle inRules, SwitchHandle rules) {
        wrap(newEqnRecipe, original, stages, inRules, rules);
        return nb::steal(PyCFunction_New(&newEqnRecipeFunction, nullptr));
      },
      nb::arg("original"), nb::arg("stages"), nb::arg("in_rules"), nb::arg("rules"),
      "`new_eqn_recipe`; records the tracers of its recipes, as equations.");
}
