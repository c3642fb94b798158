// SPDX-License-Identifier: Apache-2.0
//
// This runs for every operation that JAX traces.
#include "identities.h"

#include "python_objects.h"

#include <nanobind/stl/string.h>

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace nb = nanobind;

using hlotag::python::attribute;

namespace {

/// An element of a name stack without text. JAX carries it to all equations derived from the
/// operation.
struct Identity {
  /// See `take_source_info`.
  enum Kind : char { Closed = 'c', Ruled = 'r', Open = 'o', Call = 'j' };

  nb::object primitive; // the operation's primitive
  Kind kind;
  bool isOfLowering; // made while lowering, not by the program
  nb::object kept;   // the identity that this one repeats, see `keepIdentity`, or null

  bool isClosed() const { return kind == Closed || kind == Ruled; }

  static void wrap(const Identity &, nb::handle) {}
};

/// Whether any stage needs identities. The interpreter's lock guards all state in this file.
bool areGiven = false;
thread_local bool isLowering = false;

// See `take_source_info`. Never released: the interpreter is gone before globals are.
PyObject *sourceContext, *nameStackClass, *sourceInfoClass, *kinds;
PyTypeObject *identityType;

PyObject *interned(const char *name) { return PyUnicode_InternFromString(name); }

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

/// Returns an item of a dictionary, borrowed, or null.
PyObject *find(PyObject *dict, PyObject *key) {
  PyObject *value = PyDict_GetItemWithError(dict, key);
  if (!value && PyErr_Occurred())
    throw nb::python_error();
  return value;
}

/// Returns the kind of a bind of `primitive`: from `kinds`, by default closed.
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

/// Adds the current identity to `names`, the name stack of a new trace by a rule, unless they have
/// one or the operation is closed. JAX may cache the trace and use it for another operation, whose
/// identity then comes first; so the added identity is marked as repeated.
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

/// Returns a name stack's elements without identities.
nb::object withoutIdentities(nb::object stack) {
  if (!innermost(stack))
    return stack;
  nb::list others;
  for (nb::handle element : stack)
    if (Py_TYPE(element.ptr()) != identityType)
      others.append(element);
  return nb::steal(PyList_AsTuple(others.ptr()));
}

/// Numbers the identities of one program in the order of use.
class Chains {
public:
  /// Returns the identities of an equation of `primitive`, as text for its mark; see
  /// `docs/design_notes.md`. Empty for an equation without identities or traced by lowering.
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
    // 'e' is the operation itself, without the equations that its rules make. Rules make no calls
    // of functions with custom rules, and the equations of these are operations of their own.
    if (last.isClosed() && last.primitive.is(primitive))
      text += last.kind == Identity::Ruled ? char(Identity::Open) : 'e';
    return text;
  }

private:
  static const Identity &at(PyObject *identity) { return *nb::inst_ptr<Identity>(identity); }

  /// Outermost first, borrowed. Leaves out an identity that a rule added to a new trace, if another
  /// call's identity precedes it: JAX cached the trace.
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
  nb::error_scope pending; // an exception of the bind
  try {
    setCurrentSource(before_);
  } catch (nb::python_error &error) {
    error.discard_as_unraisable("hlotag: the source info of a bind");
  }
}

void hlotag::python::bindIdentities(nb::module_ &m) {
  nb::class_<Identity>(
      m, "Identity",
      "An element of a name stack: the operation of the program that an equation was made for.")
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
      "Sets JAX's context with the current source info, the classes of name stacks and source "
      "infos, and the kinds of primitives that are not closed. A kind may depend on a parameter: "
      "(kind, the parameter's name, kinds by some of its values). Call this before giving "
      "identities.");
  m.def(
      "give_identities", [](bool areNeeded) { areGiven = areNeeded; }, nb::arg("are_needed"),
      "Turns identities on or off, for all threads.");
  m.def(
      "set_lowering", [](bool lowers) { return std::exchange(isLowering, lowers); },
      nb::arg("lowers"), "Sets whether this thread traces for lowering; returns the former value.");
  m.def("keep_identity", &keepIdentity, nb::arg("names"),
        "Adds the current identity to `names`, the name stack of a new trace by a rule.");
  m.def("is_identified", &isIdentified, "Whether equations traced now have an identity.");
  m.def("without_identities", &withoutIdentities, nb::arg("stack"),
        "The elements of a name stack without identities; `stack` itself if it has none.");
  nb::class_<Chains>(m, "Chains", "Numbers the identities of one program in the order of use.")
      .def(nb::init<>())
      .def("of", &Chains::of, nb::arg("stack"), nb::arg("primitive"),
           "The identities in the name stack of an equation of `primitive`, as text for its mark; "
           "empty for an equation without identities or traced by lowering.");
}
