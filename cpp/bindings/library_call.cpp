// SPDX-License-Identifier: Apache-2.0
//
// A value tag asks this of a dozen equations with dozens of frames each: in Python that was half of
// what it took.
#include "library_call.h"

#include <optional>

namespace nb = nanobind;

namespace {

nb::list from(const nb::list &list, size_t first) {
  return nb::steal<nb::list>(PyList_GetSlice(list.ptr(), Py_ssize_t(first), PY_SSIZE_T_MAX));
}

/// The frames are given innermost first.
nb::object libraryCall(const nb::list &codes, const nb::list &instructions, nb::handle bindCode,
                       const nb::callable &isUserFilename) {
  static PyObject *const name = PyUnicode_InternFromString("co_filename");
  std::optional<size_t> bind;
  size_t user = 0, count = codes.size();
  nb::object file;
  // A bind may run user code, which binds in turn: the innermost user frame and the first bind
  // below it.
  for (; user < count; ++user) {
    nb::object code = codes[user];
    nb::object codeFile = nb::steal(PyObject_GetAttr(code.ptr(), name));
    if (!codeFile)
      throw nb::python_error();
    if (!codeFile.is(file)) { // Frames of one file follow each other.
      file = std::move(codeFile);
      if (nb::cast<bool>(isUserFilename(file)))
        break;
    }
    if (code.is(bindCode))
      bind = user;
  }
  if (user == count || !bind)
    return nb::none();
  nb::list inside;
  for (size_t frame = user - 1; frame > *bind; --frame)
    inside.append(nb::make_tuple(codes[frame], instructions[frame]));
  return nb::make_tuple(nb::make_tuple(from(codes, user), from(instructions, user)),
                        nb::tuple(inside));
}

} // namespace

void hlotag::python::bindLibraryCall(nb::module_ &m) {
  m.def("library_call", &libraryCall, nb::arg("codes"), nb::arg("instructions"),
        nb::arg("bind_code"), nb::arg("is_user_filename"), "See `_compat.library_call`.");
}
