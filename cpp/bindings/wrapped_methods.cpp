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

  bool isOn() const { return stages->uses != 0; }
};

WrappedMethod bind, bindWithTrace, makeEqn, newEqnRecipe;

/// Adds the operation of a bind to the name stack of its thread: `Primal` of `_compat.jaxprs`.
/// Never destroyed: the interpreter is gone before globals are.
struct Primals {
  const Switch *rules = nullptr;
  nb::object thread;     // has the `SourceInfo` of the thread as its `context`
  nb::object nameStack;  // the class `NameStack`
  nb::object sourceInfo; // the class `SourceInfo`
  nb::object primal;     // the class `Primal`
  nb::object isOpen;     // whether the equations within those of a primitive are operations
  nb::object typeOf;     // the type of an operand

  /// Returns what `leave` restores, or null if nothing changed: the bind runs within another one.
  nb::object enter(nb::handle primitive, Arguments arguments, Py_ssize_t count, PyObject *names) {
    nb::object outer = thread.attr("context");
    nb::object elements = outer.attr("name_stack").attr("stack");
    for (nb::handle element : elements)
      if (element.type().is(primal))
        return {};
    if (nb::cast<bool>(isOpen(primitive)))
      return {};
    nb::list types;
    for (Py_ssize_t i = 0; i < count; ++i)
      types.append(typeOf(nb::handle(arguments[i])));
    nb::dict params;
    for (Py_ssize_t i = 0, end = names ? PyTuple_Size(names) : 0; i < end; ++i)
      params[nb::handle(PyTuple_GetItem(names, i))] = nb::handle(arguments[count + i]);
    nb::object added = nb::make_tuple(primal(primitive, nb::tuple(types), params));
    nb::object all = nb::steal(PySequence_Concat(elements.ptr(), added.ptr()));
    if (!all)
      throw nb::python_error();
    thread.attr("context") = sourceInfo(outer.attr("traceback"), nameStack(all));
    return outer;
  }

  /// Keeps the error that is set, if any.
  void leave(nb::handle outer) const noexcept {
    nb::error_scope error;
    if (PyObject_SetAttrString(thread.ptr(), "context", outer.ptr()) != 0)
      PyErr_WriteUnraisable(thread.ptr());
  }
};

Primals &primals() {
  static auto *const primals = new Primals();
  return *primals;
}

/// Calls `function`, which may throw: no exception leaves for the interpreter's frames. Returns
/// false with an error set.
template <class Function> bool runs(Function &&function) noexcept {
  try {
    function();
    return true;
  } catch (nb::python_error &error) {
    error.restore();
  } catch (const std::exception &error) {
    PyErr_Format(PyExc_RuntimeError, "hlotag cannot record an equation: %s", error.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "hlotag cannot record an equation");
  }
  return false;
}

PyObject *callBind(PyObject *self, Arguments arguments, Py_ssize_t count, PyObject *names) {
  if (!bind.isOn())
    return callOriginal(bind.original, self, arguments, count, names);
  OpenBind open;
  if (primals().rules->uses == 0)
    return callOriginal(bind.original, self, arguments, count, names);
  nb::object outer;
  if (!runs([&] { outer = primals().enter(self, arguments, count, names); }))
    return nullptr;
  PyObject *result = callOriginal(bind.original, self, arguments, count, names);
  if (outer)
    primals().leave(outer);
  return result;
}

/// A `bind` that was held before it was wrapped calls only this.
PyObject *callBindWithTrace(PyObject *self, Arguments arguments, Py_ssize_t count,
                            PyObject *names) {
  if (OpenBind::innermost || !bindWithTrace.isOn())
    return callOriginal(bindWithTrace.original, self, arguments, count, names);
  OpenBind open;
  return callOriginal(bindWithTrace.original, self, arguments, count, names);
}

PyObject *recordEquation(PyObject *self, Arguments arguments, Py_ssize_t count, PyObject *names) {
  nb::object result = nb::steal(callOriginal(makeEqn.original, self, arguments, count, names));
  if (!result || !makeEqn.isOn())
    return result.release().ptr();
  bool isRecorded = runs([&] { hlotag::python::record(self, result[0]); });
  return isRecorded ? result.release().ptr() : nullptr;
}

/// Records the tracers of a recipe: recipes are tuples, which have no weak references.
PyObject *recordRecipe(PyObject *, Arguments arguments, Py_ssize_t count, PyObject *names) {
  nb::object recipe =
      nb::steal(PyObject_Vectorcall(newEqnRecipe.original, arguments, count, names));
  if (!recipe || !newEqnRecipe.isOn())
    return recipe.release().ptr();
  bool isRecorded = runs([&] {
    for (nb::handle reference : recipe.attr("out_tracer_refs")) {
      nb::object tracer = reference();
      hlotag::python::record(tracer.attr("_trace"), tracer);
    }
  });
  return isRecorded ? recipe.release().ptr() : nullptr;
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

/// Makes a method of the class `owner`.
nb::object makeMethod(PyMethodDef &method, nb::handle owner) {
  return nb::steal(PyDescr_NewMethod(reinterpret_cast<PyTypeObject *>(owner.ptr()), &method));
}

using SwitchHandle = nb::handle_t<Switch>;

void defineMethod(nb::module_ &m, const char *name, WrappedMethod &wrapped, PyMethodDef &method,
                  const char *doc) {
  auto wrapIn = [&wrapped, &method](nb::handle original, SwitchHandle stages, nb::handle owner) {
    wrap(wrapped, original, stages);
    return makeMethod(method, owner);
  };
  m.def(name, wrapIn, nb::arg("original"), nb::arg("stages"), nb::arg("owner"), doc);
}

} // namespace

void hlotag::python::bindWrappedMethods(nb::module_ &m) {
  nb::class_<Switch>(m, "Switch",
                     "Counts who needs a wrapper. One that nobody needs only calls the original.")
      .def(nb::init<>())
      .def_rw("uses", &Switch::uses);
  m.def(
      "in_bind",
      [](nb::handle original, SwitchHandle stages, SwitchHandle rules, const nb::tuple &names,
         nb::handle owner) {
        wrap(bind, original, stages);
        primals() = {kept(rules), names[0], names[1], names[2], names[3], names[4], names[5]};
        return makeMethod(bindMethod, owner);
      },
      nb::arg("original"), nb::arg("stages"), nb::arg("rules"), nb::arg("names"), nb::arg("owner"),
      "`Primitive.bind`, recorded while it runs. While `rules` has uses, its operation is in the "
      "name stack; `names` are the thread's context, the classes NameStack, SourceInfo and Primal, "
      "and functions that tell open primitives and types of operands.");
  defineMethod(m, "in_some_bind", bindWithTrace, bindWithTraceMethod,
               "`Primitive.bind_with_trace`, recorded unless a bind runs already.");
  defineMethod(m, "recorded", makeEqn, makeEqnMethod,
               "`DynamicJaxprTrace.make_eqn`; records its equations with the innermost bind.");
  m.def(
      "recorded_recipe",
      [](nb::handle original, SwitchHandle stages) {
        wrap(newEqnRecipe, original, stages);
        return nb::steal(PyCFunction_New(&newEqnRecipeFunction, nullptr));
      },
      nb::arg("original"), nb::arg("stages"),
      "`new_eqn_recipe`; records the tracers of its recipes, as equations.");
}
