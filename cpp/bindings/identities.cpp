// SPDX-License-Identifier: Apache-2.0
//
// This runs for every operation that JAX traces.
#include "identities.h"

#include <utility>

namespace nb = nanobind;

namespace {

/// An element of a name stack that adds no text: JAX carries it to all equations that stem from
/// the operation.
struct Identity {
  nb::object primitive; // of the operation
  nb::object kind;      // see `take_source_info`
  bool isOfLowering;    // not of the program
  nb::object kept;      // the identity that this one repeats, see `keepIdentity`; else None

  static void wrap(const Identity &, nb::handle) {}
};

/// Whether any stage needs identities; guarded by the interpreter's lock, as all here.
bool areGiven = false;
thread_local bool isLowering = false;

// See `take_source_info`. Never destroyed, as the interpreter is gone when globals are.
PyObject *sourceContext, *nameStackClass, *sourceInfoClass, *kinds, *closed;
PyTypeObject *identityType;

PyObject *interned(const char *name) { return PyUnicode_InternFromString(name); }

nb::object attribute(nb::handle object, PyObject *name) {
  nb::object value = nb::steal(PyObject_GetAttr(object.ptr(), name));
  if (!value)
    throw nb::python_error();
  return value;
}

nb::object stackOf(nb::handle names) {
  static PyObject *const stack = interned("stack");
  return attribute(names, stack);
}

/// The innermost identity of a tuple of elements, borrowed; null if there is none.
PyObject *innermost(nb::handle stack) {
  for (Py_ssize_t i = PyTuple_Size(stack.ptr()); i-- > 0;) {
    PyObject *element = PyTuple_GetItem(stack.ptr(), i);
    if (Py_TYPE(element) == identityType)
      return element;
  }
  return nullptr;
}

nb::object currentSource() {
  static PyObject *const context = interned("context");
  return attribute(sourceContext, context);
}

void setCurrentSource(nb::handle source) {
  static PyObject *const context = interned("context");
  if (PyObject_SetAttr(sourceContext, context, source.ptr()))
    throw nb::python_error();
}

nb::object namesOf(nb::handle source) {
  static PyObject *const names = interned("name_stack");
  return attribute(source, names);
}

/// What a bind of `primitive` is: "closed", unless `kinds` says otherwise.
nb::object kindOf(PyObject *primitive, PyObject *const *values, PyObject *names) {
  PyObject *kind = PyDict_GetItemWithError(kinds, primitive); // borrowed
  if (!kind && PyErr_Occurred())
    throw nb::python_error();
  if (!kind || PyUnicode_Check(kind))
    return nb::borrow(kind ? kind : closed);
  nb::dict params;
  for (Py_ssize_t i = 0; names && i < PyTuple_Size(names); ++i)
    params[PyTuple_GetItem(names, i)] = nb::borrow(values[i]);
  return nb::borrow(kind)(params);
}

nb::object withName(nb::handle stack, nb::handle element, bool isFirst) {
  Py_ssize_t size = PyTuple_Size(stack.ptr());
  nb::object longer = nb::steal(PyTuple_New(size + 1));
  PyTuple_SetItem(longer.ptr(), isFirst ? 0 : size, element.inc_ref().ptr());
  for (Py_ssize_t i = 0; i < size; ++i)
    PyTuple_SetItem(longer.ptr(), i + isFirst,
                    nb::borrow(PyTuple_GetItem(stack.ptr(), i)).release().ptr());
  return nb::handle(nameStackClass)(longer);
}

/// `names`, with the identity of what is traced now if they have none and that holds equations of
/// its own: what else its rules trace belongs to it. JAX may cache the trace, and use it for
/// another operation, whose identity is in front then: so this one is marked as repeated.
nb::object keepIdentity(nb::object names) {
  if (!areGiven || isLowering)
    return names;
  PyObject *current = innermost(stackOf(namesOf(currentSource())));
  nb::object stack = stackOf(names);
  if (!current || nb::inst_ptr<Identity>(current)->kind.is(closed) || innermost(stack))
    return names;
  const Identity &identity = *nb::inst_ptr<Identity>(current);
  if (!identity.kept.is_none())
    return withName(stack, current, true);
  return withName(stack,
                  nb::cast(Identity{identity.primitive, identity.kind, false, nb::borrow(current)}),
                  true);
}

bool isIdentified() { return innermost(stackOf(namesOf(currentSource()))); }

} // namespace

bool hlotag::python::Identified::enter(PyObject *primitive, PyObject *const *values,
                                       PyObject *names) {
  static PyObject *const traceback = interned("traceback");
  if (!areGiven)
    return true;
  try {
    nb::object source = currentSource();
    nb::object stack = stackOf(namesOf(source));
    if (innermost(stack))
      return true;
    nb::object identity = nb::cast(
        Identity{nb::borrow(primitive), kindOf(primitive, values, names), isLowering, nb::none()});
    setCurrentSource(nb::handle(sourceInfoClass)(attribute(source, traceback),
                                                 withName(stack, identity, false)));
    before_ = std::move(source);
  } catch (nb::python_error &error) {
    error.restore();
    return false;
  }
  return true;
}

hlotag::python::Identified::~Identified() {
  if (!before_)
    return;
  nb::error_scope pending; // of what was bound
  try {
    setCurrentSource(before_);
  } catch (nb::python_error &error) {
    error.discard_as_unraisable("hlotag: the source info of a bind");
  }
}

void hlotag::python::bindIdentities(nb::module_ &m) {
  nb::class_<Identity>(m, "Identity",
                       "An element of a name stack: which operation of the program this is.")
      .def_ro("primitive", &Identity::primitive)
      .def_ro("kind", &Identity::kind)
      .def_ro("kept", &Identity::kept)
      .def_ro("is_of_lowering", &Identity::isOfLowering)
      .def("wrap", &Identity::wrap, nb::arg("names"), "Adds nothing to the text of the names.");
  identityType = reinterpret_cast<PyTypeObject *>(nb::type<Identity>().ptr());
  m.def(
      "take_source_info",
      [](nb::handle context, nb::handle nameStack, nb::handle sourceInfo, nb::handle kindOf,
         nb::handle isClosed) {
        sourceContext = context.inc_ref().ptr();
        nameStackClass = nameStack.inc_ref().ptr();
        sourceInfoClass = sourceInfo.inc_ref().ptr();
        kinds = kindOf.inc_ref().ptr();
        closed = isClosed.inc_ref().ptr();
      },
      nb::arg("context"), nb::arg("name_stack"), nb::arg("source_info"), nb::arg("kinds"),
      nb::arg("closed"),
      "Where JAX has the names of what is traced, the classes of these, what binds of primitives "
      "are (or how their parameters say it), and what all others are. Before anything is given.");
  m.def(
      "give_identities", [](bool areNeeded) { areGiven = areNeeded; }, nb::arg("are_needed"),
      "Whether what is bound from now on, in all threads, is given identities.");
  m.def(
      "set_lowering", [](bool lowers) { return std::exchange(isLowering, lowers); },
      nb::arg("lowers"),
      "Whether this thread traces from now on for lowering; returns whether that was so.");
  m.def("keep_identity", &keepIdentity, nb::arg("names"),
        "The name stack `names`, with which something is traced anew: with the identity that it "
        "belongs to.");
  m.def("is_identified", &isIdentified, "Whether what is traced now has an identity.");
}
