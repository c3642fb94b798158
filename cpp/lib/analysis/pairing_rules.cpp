// SPDX-License-Identifier: Apache-2.0
#include "pairing_rules.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <unordered_map>
#include <vector>

namespace hlotag::analysis {
namespace {

struct Emits {
  std::string_view derived;
  float fit;
};
using Table = std::unordered_map<std::string_view, std::vector<Emits>>;

/// Scattering transposes to gathering; indices out of bounds are masked by a dozen operations.
std::vector<Emits> gatherOfUpdates() {
  return {{"gather", 3}, {"scatter", 3},  {"broadcast_in_dim", 1},
          {"mul", 1},    {"select_n", 2}, {"ge", 2},
          {"le", 2},     {"and", 2},      {"reduce_and", 2}};
}

/// Measured primitive by primitive, as JAX 0.10 and 0.12 differentiate, transpose and batch them.
const Table &transposes() {
  static const Table table = [] {
    // An operand that is broadcast implicitly shows as reduce_sum and reshape.
    Table t{
        {"dot_general", {{"dot_general", 3}, {"transpose", 1.8f}, {"reduce_precision", 1}}},
        {"conv_general_dilated", {{"conv_general_dilated", 3}, {"rev", 1.5f}, {"transpose", 1}}},
        {"transpose", {{"transpose", 3}}},
        {"reshape", {{"reshape", 3}, {"transpose", 2}}},
        {"squeeze", {{"reshape", 2.5f}, {"broadcast_in_dim", 2.5f}, {"expand_dims", 3}}},
        {"expand_dims", {{"reshape", 2}, {"squeeze", 3}, {"reduce_sum", 2}}},
        {"broadcast_in_dim",
         {{"reduce_sum", 2.7f}, {"reshape", 1.2f}, {"squeeze", 1}, {"broadcast_in_dim", 1.5f}}},
        {"reduce_sum", {{"broadcast_in_dim", 2.7f}}},
        {"reduce_max", {{"mul", 2}, {"broadcast_in_dim", 1.5f}, {"div", 2}}},
        {"reduce_min", {{"mul", 2}, {"broadcast_in_dim", 1.5f}, {"div", 2}}},
        {"reduce_prod",
         {{"mul", 2.5f}, {"pad", 2}, {"broadcast_in_dim", 1}, {"transpose", 1}, {"reshape", 1}}},
        {"mul", {{"mul", 2.5f}, {"reduce_sum", 1.2f}, {"reshape", 1.0f}}},
        {"div",
         {{"div", 2.5f}, {"mul", 2.4f}, {"neg", 2.4f}, {"reduce_sum", 1.2f}, {"reshape", 1.0f}}},
        {"add", {{"reduce_sum", 1.2f}, {"reshape", 1.0f}}},
        {"add_any", {{"reduce_sum", 0.6f}, {"reshape", 0.6f}}},
        {"sub", {{"neg", 2.5f}, {"reduce_sum", 1.2f}, {"reshape", 1.0f}}},
        {"neg", {{"neg", 3}}},
        {"max",
         {{"mul", 2}, {"select_n", 2}, {"broadcast_in_dim", 1}, {"reduce_sum", 1}, {"reshape", 1}}},
        {"min",
         {{"mul", 2}, {"select_n", 2}, {"broadcast_in_dim", 1}, {"reduce_sum", 1}, {"reshape", 1}}},
        {"abs",
         {{"select_n", 2.5f},
          {"neg", 2},
          {"broadcast_in_dim", 1.5f},
          {"mul", 1.5f},
          {"complex", 2}}},
        {"clamp", {{"select_n", 2.5f}, {"broadcast_in_dim", 1.5f}}},
        {"select_n",
         {{"select_n", 3}, {"broadcast_in_dim", 1.5f}, {"reduce_sum", 1}, {"reshape", 0.6f}}},
        {"convert_element_type", {{"convert_element_type", 3}}},
        {"reduce_precision", {{"reduce_precision", 3}}},
        {"copy", {{"copy", 3}}},
        {"real", {{"complex", 3}, {"broadcast_in_dim", 1}}},
        {"imag", {{"complex", 3}, {"broadcast_in_dim", 1}, {"neg", 1}}},
        {"rem", {{"mul", 2}, {"neg", 2}}},
        {"atan2", {{"mul", 2}, {"neg", 1}}},
        {"gather", {{"scatter-add", 3}, {"broadcast_in_dim", 1.5f}, {"mul", 0.5f}}},
        {"scatter-add", gatherOfUpdates()},
        {"scatter", gatherOfUpdates()},
        {"scatter_mul", {{"gather", 2}, {"mul", 2}, {"scatter_mul", 2}}},
        {"dynamic_slice",
         {{"dynamic_update_slice", 3},
          {"broadcast_in_dim", 1.5f},
          {"scatter-add", 2},
          {"concatenate", 0.6f},
          {"clamp", 0.6f},
          {"min", 0.6f}}},
        {"dynamic_update_slice",
         {{"dynamic_slice", 3}, {"dynamic_update_slice", 3}, {"broadcast_in_dim", 1.5f}}},
        {"slice", {{"pad", 3}, {"dynamic_update_slice", 1}}},
        {"split", {{"concatenate", 3}, {"broadcast_in_dim", 1}}},
        {"pad", {{"pad", 2}, {"slice", 3}, {"reduce_sum", 1.5f}, {"sub", 1}, {"neg", 0.5f}}},
        {"concatenate", {{"slice", 3}, {"split", 3}}},
        {"rev", {{"rev", 3}}},
        {"cumsum", {{"cumsum", 3}, {"reduce_window_sum", 3}, {"rev", 1.5f}}},
        {"sort", {{"scatter-add", 3}, {"gather", 2}, {"broadcast_in_dim", 1.5f}}},
        {"top_k", {{"scatter-add", 3}, {"gather", 2}, {"broadcast_in_dim", 1.5f}}},
        {"reduce_window_max",
         {{"select_and_scatter", 3}, {"select_and_scatter_add", 3}, {"pad", 1}, {"slice", 1}}},
        {"reduce_window_sum", {{"reduce_window_sum", 3}, {"pad", 2.0f}, {"broadcast_in_dim", 1}}},
        {"psum", {{"psum", 3}, {"psum_invariant", 3}, {"pvary", 3}, {"pbroadcast", 3}}},
        {"psum_invariant", {{"pvary", 3}, {"pbroadcast", 3}, {"psum", 2}, {"psum_invariant", 2}}},
        {"pvary", {{"psum_invariant", 3}, {"psum", 3}}},
        {"while", {{"while", 3}, {"broadcast_in_dim", 0.5f}, {"scan", 1}}},
        {"scan", {{"scan", 3}, {"while", 1}, {"broadcast_in_dim", 0.5f}}},
        {"cond", {{"cond", 3}, {"broadcast_in_dim", 0.5f}}},
        {"shard_map", {{"shard_map", 3}}},
        {"closed_call", {{"closed_call", 3}}},
    };
    for (std::string_view multiplied :
         {"tanh",  "logistic", "exp",     "exp2",      "expm1", "sqrt",    "rsqrt",
          "cbrt",  "sin",      "tan",     "erf",       "erfc",  "erf_inv", "integer_pow",
          "pow",   "square",   "asin",    "acos",      "sinh",  "cosh",    "asinh",
          "acosh", "lgamma",   "digamma", "polynomial"})
      t[multiplied] = {{"mul", 2.5f}};
    t["cos"] = {{"mul", 2.5f}, {"neg", 2.5f}};
    t["atanh"] = {{"mul", 2}, {"div", 2}};
    for (std::string_view divided : {"log", "log1p", "atan"})
      t[divided] = {{"div", 2.7f}};
    for (std::string_view broadcasting : {"pow", "atan2", "rem"}) {
      t[broadcasting].push_back({"reduce_sum", 1});
      t[broadcasting].push_back({"reshape", 1});
    }
    for (std::string_view discrete : {"eq",
                                      "ne",
                                      "lt",
                                      "le",
                                      "gt",
                                      "ge",
                                      "is_finite",
                                      "and",
                                      "or",
                                      "not",
                                      "xor",
                                      "iota",
                                      "argmax",
                                      "argmin",
                                      "sign",
                                      "floor",
                                      "ceil",
                                      "round",
                                      "stop_gradient",
                                      "lt_to",
                                      "random_bits",
                                      "random_wrap",
                                      "random_seed",
                                      "random_unwrap",
                                      "threefry2x32",
                                      "shift_left",
                                      "shift_right_logical",
                                      "bitcast_convert_type",
                                      "population_count",
                                      "clz"})
      t[discrete] = {};
    return t;
  }();
  return table;
}

} // namespace

float transposeFit(std::string_view primal, std::string_view derived) {
  if (primal == derived && primal.size() > 4 && primal.substr(0, 4) == "jit(")
    return 3;
  bool isCall = derived == "closed_call" || derived.substr(0, 4) == "jit(";
  if (isCall || primal == "closed_call")
    return primal == derived ? 3.0f : 0.0f;
  auto found = transposes().find(primal);
  if (derived == "add_any")
    return found == transposes().end() || !found->second.empty() ? 0.8f
                                                                 : 0.0f; // a value used twice
  if (found == transposes().end())
    return primal == derived ? 2.0f : 0.6f;
  for (const Emits &emits : found->second)
    if (emits.derived == derived)
      return emits.fit;
  return 0;
}

static bool isOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool usesOwnResult(std::string_view primal) {
  return usesAnything(primal) ||
         isOneOf(primal, {"exp", "exp2", "expm1", "tanh", "sqrt", "rsqrt", "cbrt", "reduce_max",
                          "reduce_min", "reduce_prod", "cumprod", "pow", "erf_inv", "sort", "top_k",
                          "argmax", "argmin"});
}

bool usesOperand(std::string_view primal) {
  return usesAnything(primal) || isOneOf(primal, {"mul",
                                                  "div",
                                                  "dot_general",
                                                  "conv_general_dilated",
                                                  "max",
                                                  "min",
                                                  "select_n",
                                                  "gather",
                                                  "scatter",
                                                  "scatter-add",
                                                  "scatter_mul",
                                                  "dynamic_slice",
                                                  "dynamic_update_slice",
                                                  "sort",
                                                  "top_k",
                                                  "clamp",
                                                  "reduce_max",
                                                  "reduce_min",
                                                  "reduce_prod",
                                                  "cumprod",
                                                  "log",
                                                  "log1p",
                                                  "atan",
                                                  "atanh",
                                                  "pow",
                                                  "rem",
                                                  "atan2",
                                                  "reduce_window_max",
                                                  "abs",
                                                  "polynomial",
                                                  "lgamma",
                                                  "digamma"});
}

bool passesCotangent(std::string_view primal) {
  return isOneOf(primal, {"add", "add_any", "sub", "copy", "copy_p", "pvary",
                          "optimization_barrier", "pbroadcast", "sharding_constraint"});
}

bool isHelper(std::string_view derived) {
  return isOneOf(derived, {"broadcast_in_dim", "reshape", "transpose", "squeeze", "expand_dims",
                           "select_n", "slice", "convert_element_type", "concatenate"});
}

bool isMostlyResidual(std::string_view name) {
  return isOneOf(name, {"cos",       "sin",
                        "sub",       "add",
                        "mul",       "integer_pow",
                        "square",    "div",
                        "neg",       "sign",
                        "rsqrt",     "digamma",
                        "polygamma", "cosh",
                        "sinh",      "eq",
                        "ge",        "gt",
                        "lt",        "le",
                        "select_n",  "convert_element_type",
                        "and"});
}

bool usesAnything(std::string_view primal) {
  return primal.empty() || primal.substr(0, 4) == "jit(" ||
         isOneOf(primal, {"custom_jvp_call", "custom_vjp_call", "while", "scan", "cond",
                          "closed_call", "shard_map", "cholesky", "eigh", "svd", "qr", "lu",
                          "triangular_solve", "custom_linear_solve", "fft", "while/body"}) ||
         transposes().find(primal) == transposes().end();
}

float linearizedFit(std::string_view primal, std::string_view derived) {
  auto found = transposes().find(primal);
  if (found == transposes().end())
    return 0;
  for (const Emits &emits : found->second)
    if (residualOf(emits.derived, derived))
      return 0.6f;
  return 0;
}

Linearity linearityOf(std::string_view primitive) {
  static const std::unordered_map<std::string_view, Linearity> table = [] {
    std::unordered_map<std::string_view, Linearity> t;
    for (std::string_view none :
         {"tanh",   "logistic",  "exp",         "exp2",   "expm1",   "log",         "log1p",
          "sqrt",   "rsqrt",     "cbrt",        "sin",    "cos",     "tan",         "asin",
          "acos",   "atan",      "sinh",        "cosh",   "asinh",   "acosh",       "atanh",
          "erf",    "erfc",      "erf_inv",     "lgamma", "digamma", "integer_pow", "square",
          "pow",    "abs",       "sign",        "max",    "min",     "reduce_max",  "reduce_min",
          "argmax", "argmin",    "eq",          "ne",     "lt",      "le",          "gt",
          "ge",     "is_finite", "and",         "or",     "not",     "floor",       "ceil",
          "round",  "iota",      "reduce_prod", "clamp",  "rem",     "atan2"})
      t[none] = Linearity::None;
    for (std::string_view sum : {"add",
                                 "sub",
                                 "add_any",
                                 "neg",
                                 "reshape",
                                 "squeeze",
                                 "expand_dims",
                                 "broadcast_in_dim",
                                 "transpose",
                                 "convert_element_type",
                                 "reduce_sum",
                                 "cumsum",
                                 "slice",
                                 "rev",
                                 "copy",
                                 "concatenate",
                                 "stack",
                                 "unstack",
                                 "split",
                                 "pad",
                                 "real",
                                 "imag",
                                 "reduce_precision",
                                 "div",
                                 "gather",
                                 "dynamic_slice",
                                 "dynamic_update_slice",
                                 "select_n"})
      t[sum] = Linearity::Sum;
    for (std::string_view product : {"mul", "dot_general", "conv_general_dilated"})
      t[product] = Linearity::Product;
    return t;
  }();
  auto found = table.find(primitive);
  return found == table.end() ? Linearity::Unknown : found->second;
}

bool isLinearIn(std::string_view sum, intptr_t number) {
  if (isOneOf(sum, {"div", "gather", "dynamic_slice"}))
    return number == 0;
  if (sum == "dynamic_update_slice")
    return number < 2;
  return sum != "select_n" || number > 0;
}

unsigned residualOf(std::string_view primal, std::string_view helper) {
  struct Rule {
    std::string_view helper;
    unsigned from;
  };
  constexpr unsigned o = kOfOperand, r = kOfResult, h = kOfHelper;
  auto ofExtremum = [](std::string_view itself) {
    return std::vector<Rule>{{"eq", o | r},
                             {"gt", o},
                             {"lt", o},
                             {"ge", o},
                             {"select_n", h},
                             {"div", h},
                             {"convert_element_type", h},
                             {itself, h},
                             {"mul", h}};
  };
  static const std::vector<Rule> ofReducedExtremum{
      {"eq", o | r},     {"reshape", r}, {"convert_element_type", h},
      {"reduce_sum", h}, {"div", h},     {"broadcast_in_dim", r | h}};
  static const std::unordered_map<std::string_view, std::vector<Rule>> table{
      {"tanh", {{"sub", r}, {"add", r}, {"mul", r | h}, {"square", r}}},
      {"logistic", {{"sub", r}, {"mul", r | h}}},
      {"sin", {{"cos", o}}},
      {"cos", {{"sin", o}, {"neg", h}}},
      {"tan", {{"integer_pow", r}, {"square", r}, {"add", h}}},
      {"sqrt", {{"div", r}, {"mul", r | h}}},
      {"rsqrt", {{"div", r | o}, {"mul", h}, {"integer_pow", o | r}}},
      {"cbrt", {{"div", r | o}, {"mul", h}}},
      {"integer_pow", {{"integer_pow", o}, {"mul", o | h}, {"square", o}, {"div", o}}},
      {"square", {{"mul", o}}},
      {"pow",
       {{"pow", o},
        {"sub", o},
        {"mul", r | h | o},
        {"log", o | h},
        {"select_n", o | h},
        {"eq", o},
        {"lt", o},
        {"convert_element_type", o}}},
      {"div",
       {{"integer_pow", o}, {"mul", o | h | r}, {"div", o | r | h}, {"neg", o | h}, {"square", o}}},
      {"log1p", {{"add", o}}},
      {"expm1", {{"add", r}, {"exp", o}}},
      {"exp2", {{"log", o}, {"mul", r | h}}},
      {"abs", {{"sign", o}, {"ge", o}}},
      {"erf", {{"integer_pow", o}, {"neg", h}, {"exp", h}, {"mul", h}, {"square", o}}},
      {"erfc", {{"integer_pow", o}, {"neg", h}, {"exp", h}, {"mul", h}, {"square", o}}},
      {"erf_inv", {{"square", r}, {"exp", h}, {"mul", h}}},
      {"asin", {{"square", o}, {"sub", o | h}, {"add", o}, {"mul", h}, {"rsqrt", h}}},
      {"acos", {{"square", o}, {"sub", o | h}, {"add", o}, {"mul", h}, {"rsqrt", h}, {"neg", h}}},
      {"asinh", {{"square", o}, {"add", h}, {"rsqrt", h}}},
      {"acosh", {{"square", o}, {"sub", o | h}, {"add", o}, {"rsqrt", o | h}, {"mul", h}}},
      {"atan", {{"square", o}, {"add", h}}},
      {"atanh", {{"add", o}, {"integer_pow", h}, {"sub", o}, {"mul", h}}},
      {"atan2", {{"square", o}, {"add", h}, {"div", o | h}, {"neg", o | h}}},
      {"sinh", {{"cosh", o}}},
      {"cosh", {{"sinh", o}}},
      {"lgamma", {{"digamma", o}}},
      {"digamma", {{"polygamma", o}}},
      {"rem", {{"div", o}, {"sign", h}, {"abs", h}, {"floor", h}, {"mul", h}}},
      {"clamp", {{"gt", o}, {"lt", o}, {"and", h}}},
      {"max", ofExtremum("max")},
      {"min", ofExtremum("min")},
      {"reduce_max", ofReducedExtremum},
      {"reduce_min", ofReducedExtremum},
  };
  // A custom derivative may compute anything.
  if (primal.substr(0, 4) == "jit(" || primal == "custom_jvp_call")
    return o | r | h;
  auto found = table.find(primal);
  if (found == table.end())
    return kNotResidual;
  for (const Rule &rule : found->second)
    if (rule.helper == helper)
      return rule.from;
  return kNotResidual;
}

} // namespace hlotag::analysis
