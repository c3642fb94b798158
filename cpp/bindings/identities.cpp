// SPDX-License-Identifier: Apache-2.0
//
// This runs for every operation that JAX traces.
#include "identities.h"

#include <nanobind/stl/string.h>

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace nb = nanobind;

namespace {

/// An element of a name stack that adds no text: JAX carries it to all equations that stem from
/// the operation.
struct Identity {
  /// See `take_source_info`.
  enum Kind : char { Closed = 'c', Ruled = 'r', Open = 'o', Call = 'j' };

  nb::object primitive; // of the operation
  Kind kind;
  bool isOfLowering; // not of the program
  nb::object kept;   // the identity that this one repeats, see `keepIdentity`; else null

  bool isClosed() const { return kind == Closed || kind == Ruled; }

  static void wrap(const Identity &, nb::handle) {}
};

/// Whether any stage needs identities; guarded by the interpreter's lock, as all here.
bool areGiven = false;
thread_local bool isLowering = false;

// See `take_source_info`. Never destroyed, as the interpreter is gone when globals are.
PyObject *sourceContext, *nameStackClass, *sourceInfoClass, *kinds;
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

/// An item of a dictionary, borrowed; null if it is not there.
PyObject *find(PyObject *dict, PyObject *key) {
  PyObject *value = PyDict_GetItemWithError(dict, key);
  if (!value && PyErr_Occurred())
    throw nb::python_error();
  return value;
}

/// What a bind of `primitive` is: closed, unless `kinds` says otherwise.
Identity::Kind kindOf(PyObject *primitive, PyObject *const *values, PyObject *names) {
  PyObject *kind = find(kinds, primitive);
  if (kind && PyTuple_Check(kind)) {
    PyObject *parameter = PyTuple_GetItem(kind, 1), *ofValues = PyTuple_GetItem(kind, 2);
    kind = PyTuple_GetItem(kind, 0);
    for (Py_ssize_t i = 0; names && i < PyTuple_Size(names); ++i)
      if (PyTuple_GetItem(names, i) == parameter) // Both are interned.
        if (PyObject *special = find(ofValues, values[i]))
          kind = special;
  }
  return kind ? Identity::Kind(nb::cast<char>(nb::handle(kind))) : Identity::Closed;
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
  if (!current || nb::inst_ptr<Identity>(current)->isClosed() || innermost(stack))
    return names;
  const Identity &identity = *nb::inst_ptr<Identity>(current);
  if (identity.kept)
    return withName(stack, current, true);
  return withName(stack,
                  nb::cast(Identity{identity.primitive, identity.kind, false, nb::borrow(current)}),
                  true);
}

bool isIdentified() { return innermost(stackOf(namesOf(currentSource()))); }

/// A name stack's elements without identities.
nb::object withoutIdentities(nb::object stack) {
  if (!innermost(stack))
    return stack;
  nb::list others;
  for (nb::handle element : stack)
    if (Py_TYPE(element.ptr()) != identityType)
      others.append(element);
  return nb::steal(PyList_AsTuple(others.ptr()));
}

/// Numbers a program's identities in the order in which it meets them.
class Chains {
public:
  /// The chain of an equation of `primitive`, as marks have it; see `docs/design_notes.md`.
  std::string of(nb::handle stack, nb::handle primitive) {
    std::vector<PyObject *> identities = identitiesOf(stack);
    std::string text;
    if (identities.empty() || at(identities.front()).isOfLowering)
      return text;
    for (PyObject *identity : identities) {
      if (!text.empty())
        text += '.';
      text += std::to_string(numberOf(identity));
      if (!at(identity).isClosed())
        text += char(at(identity).kind);
    }
    const Identity &last = at(identities.back());
    // The operation itself ('e'), not what a rule made for it. No rule makes a call of a function
    // with rules of its own, and the equations of one are operations of their own.
    if (last.isClosed() && last.primitive.is(primitive))
      text += last.kind == Identity::Ruled ? char(Identity::Open) : 'e';
    return text;
  }

private:
  static const Identity &at(PyObject *identity) { return *nb::inst_ptr<Identity>(identity); }

  /// Outermost first, borrowed. An identity that a rule kept for what it traced anew is left out
  /// behind that of another call: JAX cached the trace.
  static std::vector<PyObject *> identitiesOf(nb::handle stack) {
    std::vector<PyObject *> found;
    for (Py_ssize_t i = 0; i < PyTuple_Size(stack.ptr()); ++i) {
      PyObject *element = PyTuple_GetItem(stack.ptr(), i);
      if (Py_TYPE(element) != identityType)
        continue;
      PyObject *kept = at(element).kept.ptr();
      if (!kept)
        found.push_back(element);
      else if (found.empty() || !at(found.back()).primitive.is(at(kept).primitive))
        found.push_back(kept);
    }
    return found;
  }

  size_t numberOf(PyObject *identity) {
    auto [known, isNew] = numbers_.try_emplace(identity, numbers_.size());
    if (isNew)
      kept_.push_back(nb::borrow(identity));
    return known->second;
  }

  std::unordered_map<PyObject *, size_t> numbers_;
  std::vector<nb::object> kept_;
};

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
    nb::object identity =
        nb::cast(Identity{nb::borrow(primitive), kindOf(primitive, values, names), isLowering, {}});
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
      .def("wrap", &Identity::wrap, nb::arg("names"), "Adds nothing to the text of the names.");
  identityType = reinterpret_cast<PyTypeObject *>(nb::type<Identity>().ptr());
  m.def(
      "take_source_info",
      [](nb::handle context, nb::handle nameStack, nb::handle sourceInfo, nb::handle kindOf) {
        sourceContext = context.inc_ref().ptr();
        nameStackClass = nameStack.inc_ref().ptr();
        sourceInfoClass = sourceInfo.inc_ref().ptr();
        kinds = kindOf.inc_ref().ptr();
      },
      nb::arg("context"), nb::arg("name_stack"), nb::arg("source_info"), nb::arg("kinds"),
      "Where JAX has the names of what is traced, the classes of these, and the kinds of binds by "
      "primitive; or the kind, the name of a parameter, and the kinds for some of its values. "
      "Before anything is given.");
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
  m.def("without_identities", &withoutIdentities, nb::arg("stack"),
        "The elements of a name stack that are no identities; `stack` itself if all are none.");
  nb::class_<Chains>(m, "Chains", "Numbers a program's identities in the order it meets them.")
      .def(nb::init<>())
      .def("of", &Chains::of, nb::arg("stack"), nb::arg("primitive"),
           "The identities of an equation of `primitive`, as marks have them; empty if there are "
           "none, or lowering traced it, for that belongs to what is lowered.");
}
