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

/// A wrapper that is off only calls the original.
struct Switch {
  bool isOn = false;
};

/// A method that is wrapped, by one wrapper at a time.
struct WrappedMethod {
  PyObject *original = nullptr; // the unwrapped method
  const Switch *itsSwitch = nullptr;
};

WrappedMethod bind, bindWithTrace, makeEqn, newEqnRecipe;

PyObject *callBind(PyObject *self, Arguments arguments, Py_ssize_t count, PyObject *names) {
  if (!bind.itsSwitch->isOn)
    return callOriginal(bind.original, self, arguments, count, names);
  OpenBind open;
  return callOriginal(bind.original, self, arguments, count, names);
}

PyObject *callBindWithTrace(PyObject *self, Arguments arguments, Py_ssize_t count,
                            PyObject *names) {
  if (OpenBind::innermost || !bindWithTrace.itsSwitch->isOn)
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
  nb::object result = nb::steal(callOriginal(makeEqn.original, self, arguments, count, names));
  if (!result || !makeEqn.itsSwitch->isOn)
    return result.release().ptr();
  nb::handle equation = result;
  return returnAfter(std::move(result), [&] { hlotag::python::record(self, equation[0]); });
}

/// Records the tracers of a recipe: recipes are tuples, which have no weak references.
PyObject *recordRecipe(PyObject *, Arguments arguments, Py_ssize_t count, PyObject *names) {
  nb::object recipe =
      nb::steal(PyObject_Vectorcall(newEqnRecipe.original, arguments, count, names));
  if (!recipe || !newEqnRecipe.itsSwitch->isOn)
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

void wrap(WrappedMethod &wrapped, nb::handle original, nb::handle itsSwitch) {
  nb::object before = nb::steal(std::exchange(wrapped.original, original.inc_ref().ptr()));
  wrapped.itsSwitch =
      nb::inst_ptr<Switch>(itsSwitch.inc_ref()); // Patches live as long as the process.
}

/// Makes a method of the class `owner` that replaces `original`.
nb::object wrapMethod(WrappedMethod &wrapped, PyMethodDef &method, nb::handle original,
                      nb::handle itsSwitch, nb::handle owner) {
  wrap(wrapped, original, itsSwitch);
  return nb::steal(PyDescr_NewMethod(reinterpret_cast<PyTypeObject *>(owner.ptr()), &method));
}

} // namespace

void hlotag::python::bindWrappedMethods(nb::module_ &m) {
  nb::class_<Switch>(m, "Switch",
                     "Turns a wrapper on. A wrapper that is off only calls the original.")
      .def(nb::init<>())
      .def_rw("is_on", &Switch::isOn);
  auto wraps = [&m](const char *name, WrappedMethod &wrapped, PyMethodDef &method,
                    const char *doc) {
    m.def(
        name,
        [&wrapped, &method](nb::handle original, nb::handle_t<Switch> itsSwitch, nb::handle owner) {
          return wrapMethod(wrapped, method, original, itsSwitch, owner);
        },
        nb::arg("original"), nb::arg("switch"), nb::arg("owner"), doc);
  };
  wraps("in_bind", bind, bindMethod, "`Primitive.bind`, recorded while it runs.");
  wraps("in_some_bind", bindWithTrace, bindWithTraceMethod,
        "`Primitive.bind_with_trace`, recorded unless a bind runs already.");
  wraps("recorded", makeEqn, makeEqnMethod,
        "`DynamicJaxprTrace.make_eqn`; records its equations with the innermost bind.");
  m.def(
      "recorded_recipe",
      [](nb::handle original, nb::handle_t<Switch> itsSwitch) {
        wrap(newEqnRecipe, original, itsSwitch);
        return nb::steal(PyCFunction_New(&newEqnRecipeFunction, nullptr));
      },
      nb::arg("original"), nb::arg("switch"),
      "`new_eqn_recipe`; records the tracers of its recipes, as equations.");
}
