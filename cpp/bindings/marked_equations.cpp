// SPDX-License-Identifier: Apache-2.0
//
// This runs for every equation that is lowered: in Python it took twice the instructions.
#include "marked_equations.h"

#include <unordered_map>
#include <utility>

namespace nb = nanobind;

namespace {

/// An attribute that a class keeps in a slot of its instances, read and written where it lies, as
/// the interpreter does once it has run a piece of code often enough: through the class's
/// descriptor, that was half of what marking an equation took.
class Slot {
public:
  /// Finds the slot in `owner`, whose attribute it changes while it looks.
  Slot(nb::handle owner, const char *name) : owner_(nb::borrow(owner.type())) {
    nb::object descriptor = nb::getattr(owner.type(), name);
    auto write =
        reinterpret_cast<descrsetfunc>(PyType_GetSlot(Py_TYPE(descriptor.ptr()), Py_tp_descr_set));
    nb::object value = nb::getattr(owner, name);
    nb::object marker = nb::module_::import_("builtins").attr("object")();
    auto set = [&](nb::handle to) {
      if (!write || write(descriptor.ptr(), owner.ptr(), to.ptr()))
        throw nb::type_error("hlotag: an attribute of JAX's equations cannot be set");
    };
    set(marker);
    size_t size = nb::cast<size_t>(nb::getattr(owner.type(), "__basicsize__"));
    for (size_t offset = sizeof(PyObject); offset < size; offset += sizeof(PyObject *)) {
      offset_ = offset;
      if (at(owner) == marker.ptr())
        break;
      offset_ = 0;
    }
    set(value);
    if (!offset_)
      throw nb::type_error("hlotag: an attribute of JAX's equations is no slot");
  }

  /// Borrowed.
  nb::handle of(nb::handle owner) const {
    bool hasSlot = owner.type().is(owner_) || PyObject_IsInstance(owner.ptr(), owner_.ptr()) == 1;
    PyObject *value = hasSlot ? at(owner) : nullptr;
    if (!value) {
      PyErr_Format(PyExc_TypeError, "hlotag: expected an equation of JAX's, got %R", owner.ptr());
      throw nb::python_error();
    }
    return value;
  }
  void set(nb::handle owner, nb::handle value) const {
    PyObject *&place = at(owner);
    nb::object former = nb::steal(place);
    place = value.inc_ref().ptr();
  }

private:
  PyObject *&at(nb::handle owner) const {
    return *reinterpret_cast<PyObject **>(reinterpret_cast<char *>(owner.ptr()) + offset_);
  }

  nb::object owner_; // its class
  size_t offset_ = 0;
};

/// The slots of JAX's classes.
struct Slots {
  explicit Slots(nb::handle equation)
      : copied{{equation, "invars"}, {equation, "outvars"}, {equation, "params"}},
        effects(equation, "effects"), primitive(equation, "primitive"), context(equation, "ctx"),
        source(equation, "source_info"), traceback(source.of(equation), "traceback"),
        names(source.of(equation), "name_stack"), stack(names.of(source.of(equation)), "stack") {}

  Slot copied[3], effects, primitive, context, source, traceback, names, stack;
};

/// An iterator over equations, some of them marked: `_compat.marked_equations`.
class MarkedEquations {
public:
  /// `equations` is an iterator.
  MarkedEquations(nb::object equations, nb::object marked, nb::object valueTag, nb::callable markOf,
                  nb::callable onValueTag)
      : equations_(std::move(equations)), marked_(std::move(marked)), slots_(slotsOf(marked_)),
        info_(nb::borrow(slots_.source.of(marked_))), names_(nb::borrow(slots_.names.of(info_))),
        valueTag_(std::move(valueTag)), markOf_(std::move(markOf)),
        onValueTag_(std::move(onValueTag)) {}

  static PyObject *iterNext(PyObject *self) noexcept {
    try {
      return nb::inst_ptr<MarkedEquations>(self)->next().release().ptr();
    } catch (nb::python_error &error) {
      error.restore();
      return nullptr;
    }
  }

private:
  static const Slots &slotsOf(nb::handle equation) {
    // Never destroyed, as the interpreter is gone when globals are.
    static const auto *const slots = new Slots(equation);
    return *slots;
  }

  /// Null at the end.
  nb::object next() {
    nb::object equation = nb::steal(PyIter_Next(equations_.ptr()));
    if (!equation) {
      if (PyErr_Occurred())
        throw nb::python_error();
      return equation;
    }
    nb::handle primitive = slots_.primitive.of(equation);
    if (primitive.is(valueTag_))
      onValueTag_();
    // Neighbours often have the same context, source and name stack: what was made for one does
    // for the next. Objects are compared, for equal ones need not be alike: a scope called `jvp`
    // equals the transformation.
    nb::handle context = slots_.context.of(equation);
    if (!context.is(context_))
      enter(nb::borrow(context));
    if (mark_.is_none())
      return equation;
    nb::handle source = slots_.source.of(equation);
    if (!source.is(source_))
      setSource(nb::borrow(source));
    slots_.primitive.set(marked_, primitive);
    for (const Slot &slot : slots_.copied)
      slot.set(marked_, slot.of(equation));
    nb::handle effects = slots_.effects.of(equation);
    if (!effects.is(effects_)) { // Hardly any has some, and an empty set is the same for all.
      effects_ = nb::borrow(effects);
      slots_.effects.set(marked_, effects_);
    }
    return marked_;
  }

  void enter(nb::object context) {
    context_ = std::move(context);
    source_ = stack_ = nb::object();
    auto [known, isNew] = marks_.try_emplace(context_.ptr());
    if (isNew)
      known->second = {context_, markOf_(context_)};
    mark_ = known->second.mark;
    if (mark_.is_none())
      return;
    element_ = mark_.attr("element");
    slots_.context.set(marked_, mark_.attr("context"));
  }

  void setSource(nb::object source) {
    source_ = std::move(source);
    nb::handle stack = slots_.stack.of(slots_.names.of(source_));
    if (!stack.is(stack_)) {
      stack_ = nb::borrow(stack);
      slots_.stack.set(names_, stack_ + element_);
    }
    slots_.traceback.set(info_, slots_.traceback.of(source_));
  }

  nb::object equations_, marked_;
  const Slots &slots_;
  nb::object info_, names_; // of `marked_`
  nb::object valueTag_;
  nb::callable markOf_, onValueTag_;
  struct Marked {
    nb::object context, mark;
  };
  std::unordered_map<PyObject *, Marked> marks_; // by context; Python would take longer to find it
  nb::object context_, mark_, element_, source_, stack_, effects_; // of the last equation
};

PyType_Slot iterator[] = {{Py_tp_iter, reinterpret_cast<void *>(PyObject_SelfIter)},
                          {Py_tp_iternext, reinterpret_cast<void *>(MarkedEquations::iterNext)},
                          {0, nullptr}};

} // namespace

void hlotag::python::bindMarkedEquations(nb::module_ &m) {
  nb::class_<MarkedEquations>(m, "MarkedEquations", nb::type_slots(iterator),
                              "Equations, some of them marked; see `_compat.marked_equations`.")
      .def(nb::init<nb::object, nb::object, nb::object, nb::callable, nb::callable>(),
           nb::arg("equations"), nb::arg("marked"), nb::arg("value_tag"), nb::arg("mark_of"),
           nb::arg("on_value_tag"));
}
