// SPDX-License-Identifier: Apache-2.0
//
// This runs for every equation that is lowered: in Python it took twice the instructions.
#include "marked_equations.h"

#include <utility>

namespace nb = nanobind;

namespace {

/// An attribute that a class keeps in a slot of its instances. Read and written by the class's
/// descriptor: to look that up by name for each instance takes three times as long.
class Slot {
public:
  Slot(nb::handle owner, const char *name)
      : descriptor_(nb::getattr(owner.type(), name)), get_(function<descrgetfunc>(Py_tp_descr_get)),
        set_(function<descrsetfunc>(Py_tp_descr_set)) {
    if (!get_ || !set_)
      throw nb::type_error("hlotag: an attribute of JAX's equations is no slot");
  }

  nb::object of(nb::handle owner) const {
    nb::object value = nb::steal(get_(descriptor_.ptr(), owner.ptr(), nullptr));
    if (!value)
      throw nb::python_error();
    return value;
  }
  void set(nb::handle owner, nb::handle value) const {
    if (set_(descriptor_.ptr(), owner.ptr(), value.ptr()))
      throw nb::python_error();
  }

private:
  template <class F> F function(int slot) const {
    return reinterpret_cast<F>(PyType_GetSlot(Py_TYPE(descriptor_.ptr()), slot));
  }

  nb::object descriptor_;
  descrgetfunc get_;
  descrsetfunc set_;
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
        info_(slots_.source.of(marked_)), names_(slots_.names.of(info_)),
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
    nb::object primitive = slots_.primitive.of(equation);
    if (primitive.is(valueTag_))
      onValueTag_();
    // Neighbours often have the same context, source and name stack: what was made for one does
    // for the next. Objects are compared, for equal ones need not be alike: a scope called `jvp`
    // equals the transformation.
    nb::object context = slots_.context.of(equation);
    if (!context.is(context_))
      enter(std::move(context));
    if (mark_.is_none())
      return equation;
    nb::object source = slots_.source.of(equation);
    if (!source.is(source_))
      setSource(std::move(source));
    slots_.primitive.set(marked_, primitive);
    for (const Slot &slot : slots_.copied)
      slot.set(marked_, slot.of(equation));
    nb::object effects = slots_.effects.of(equation);
    if (!effects.is(effects_)) { // Hardly any has some, and an empty set is the same for all.
      effects_ = std::move(effects);
      slots_.effects.set(marked_, effects_);
    }
    return marked_;
  }

  void enter(nb::object context) {
    context_ = std::move(context);
    mark_ = markOf_(context_);
    source_ = stack_ = nb::object();
    if (mark_.is_none())
      return;
    element_ = mark_.attr("element");
    slots_.context.set(marked_, mark_.attr("context"));
  }

  void setSource(nb::object source) {
    source_ = std::move(source);
    nb::object stack = slots_.stack.of(slots_.names.of(source_));
    if (!stack.is(stack_)) {
      stack_ = std::move(stack);
      slots_.stack.set(names_, stack_ + element_);
    }
    slots_.traceback.set(info_, slots_.traceback.of(source_));
  }

  nb::object equations_, marked_;
  const Slots &slots_;
  nb::object info_, names_; // of `marked_`
  nb::object valueTag_;
  nb::callable markOf_, onValueTag_;
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
