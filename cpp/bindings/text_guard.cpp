// SPDX-License-Identifier: Apache-2.0
#include "text_guard.h"

#include <algorithm>
#include <string_view>

namespace nb = nanobind;

namespace hlotag::python {

namespace {

int hexDigit(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/// Replaces `\XX`, a backslash and two hexadecimal digits, by the byte.
std::string unescape(std::string_view literal) {
  std::string bytes;
  for (size_t i = 0; i < literal.size(); ++i) {
    int high = literal[i] == '\\' && i + 2 < literal.size() ? hexDigit(literal[i + 1]) : -1;
    int low = high < 0 ? -1 : hexDigit(literal[i + 2]);
    bytes += low < 0 ? literal[i] : static_cast<char>(16 * high + low);
    i += low < 0 ? (literal[i] == '\\' ? 1 : 0) : 2;
  }
  return bytes;
}

bool isUtf8(const std::string &bytes) {
  nb::object text =
      nb::steal(PyUnicode_DecodeUTF8(bytes.data(), Py_ssize_t(bytes.size()), nullptr));
  if (text.is_valid())
    return true;
  PyErr_Clear();
  return false;
}

/// Whether the literal between `before` and `after` is a name: of an operation, attribute, symbol
/// or location. Values of attributes are read as bytes.
bool isName(std::string_view before, std::string_view after) {
  std::string_view line = before.substr(before.rfind('\n') + 1);
  bool inLocation = line.find("loc(") != std::string_view::npos;
  bool isSymbol = !before.empty() && before.back() == '@';
  return inLocation || isSymbol || after.substr(0, 1) == "(" || after.substr(0, 2) == " =";
}

} // namespace

std::optional<std::string> findUndecodable(nb::handle capsule) {
  nb::object cls = nb::module_::import_("jaxlib.mlir.ir").attr("Operation");
  nb::object printed = cls.attr("_CAPICreate")(capsule).attr("get_asm")(
      nb::arg("binary") = true, nb::arg("large_elements_limit") = 16,
      nb::arg("large_resource_limit") = 16, nb::arg("enable_debug_info") = true,
      nb::arg("print_generic_op_form") = true, nb::arg("assume_verified") = true);
  auto bytes = nb::cast<nb::bytes>(printed);
  std::string_view text(bytes.c_str(), bytes.size());
  // Quotes inside a literal are escaped, so quotes come in pairs.
  for (size_t open = text.find('"'); open != std::string_view::npos;) {
    size_t close = std::min(text.find('"', open + 1), text.size() - 1);
    std::string_view literal = text.substr(open + 1, close - open - 1);
    bool isPlain = literal.find('\\') == std::string_view::npos;
    if (!isPlain && !isUtf8(unescape(literal)) &&
        isName(text.substr(0, open), text.substr(close + 1)))
      return std::string(literal);
    open = text.find('"', close + 1);
  }
  return std::nullopt;
}

} // namespace hlotag::python
