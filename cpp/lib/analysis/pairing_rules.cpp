// SPDX-License-Identifier: Apache-2.0
#include "pairing_rules.h"

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

const Table &transposes() {
  // Implicit broadcasting of an operand shows as reduce_sum and reshape.
  static const std::vector<Emits> elementwise{{"mul", 2.5f}, {"neg", 1.5f}, {"div", 1.0f}};
  static const std::vector<Emits> additive{
      {"neg", 1.0f}, {"reduce_sum", 1.2f}, {"reshape", 1.0f}, {"broadcast_in_dim", 0.4f}};
  static const Table table = [] {
    Table t{
        {"dot_general", {{"dot_general", 3}, {"transpose", 1.8f}, {"reduce_sum", 0.4f}}},
        {"conv_general_dilated", {{"conv_general_dilated", 3}, {"rev", 1.5f}, {"transpose", 1}}},
        {"transpose", {{"transpose", 3}}},
        {"reshape", {{"reshape", 3}}},
        {"squeeze", {{"reshape", 2.5f}, {"broadcast_in_dim", 1.5f}, {"expand_dims", 3}}},
        {"expand_dims", {{"reshape", 2}, {"squeeze", 3}, {"reduce_sum", 2}}},
        {"broadcast_in_dim", {{"reduce_sum", 2.7f}, {"reshape", 1.2f}, {"squeeze", 1}}},
        {"reduce_sum", {{"broadcast_in_dim", 2.7f}}},
        {"reduce_max", {{"mul", 1.2f}, {"broadcast_in_dim", 1}, {"div", 0.8f}, {"select_n", 1}}},
        {"mul", {{"mul", 2.5f}, {"reduce_sum", 1.2f}, {"reshape", 1.0f}, {"neg", 0.4f}}},
        {"div",
         {{"div", 2.5f}, {"mul", 2.4f}, {"neg", 2.4f}, {"reduce_sum", 1.2f}, {"reshape", 1.0f}}},
        {"add", {{"reduce_sum", 1.2f}, {"reshape", 1.0f}, {"broadcast_in_dim", 0.4f}}},
        {"sub", {{"neg", 2.5f}, {"reduce_sum", 1.2f}, {"reshape", 1.0f}}},
        {"neg", {{"neg", 3}}},
        {"max", {{"mul", 2}, {"select_n", 2}, {"broadcast_in_dim", 1}, {"reduce_sum", 1}}},
        {"select_n", {{"select_n", 3}, {"broadcast_in_dim", 1.5f}, {"reduce_sum", 1}}},
        {"convert_element_type", {{"convert_element_type", 3}}},
        {"gather", {{"scatter-add", 3}, {"broadcast_in_dim", 1.5f}, {"mul", 0.5f}}},
        {"scatter-add", {{"gather", 3}}},
        {"scatter", {{"gather", 3}, {"scatter", 3}, {"broadcast_in_dim", 1}, {"mul", 1}}},
        {"scatter_mul", {{"gather", 2}, {"mul", 2}, {"scatter_mul", 2}}},
        {"dynamic_slice",
         {{"dynamic_update_slice", 3}, {"broadcast_in_dim", 1.5f}, {"pad", 2}, {"scatter-add", 2}}},
        {"dynamic_update_slice",
         {{"dynamic_slice", 3}, {"dynamic_update_slice", 3}, {"broadcast_in_dim", 1.5f}}},
        {"slice", {{"pad", 3}, {"dynamic_update_slice", 1}}},
        {"split", {{"concatenate", 3}, {"broadcast_in_dim", 1}}},
        {"pad", {{"pad", 2}, {"slice", 3}, {"reduce_sum", 1.5f}, {"sub", 1}, {"neg", 0.5f}}},
        {"concatenate", {{"slice", 3}, {"split", 3}}},
        {"rev", {{"rev", 3}}},
        {"cumsum", {{"cumsum", 3}, {"rev", 1.5f}}},
        {"sort", {{"scatter-add", 3}, {"gather", 2}, {"broadcast_in_dim", 1.5f}}},
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
    for (std::string_view unary :
         {"tanh",   "logistic",   "exp",         "exp2",    "log",         "log1p",
          "expm1",  "sqrt",       "rsqrt",       "cbrt",    "sin",         "cos",
          "tan",    "erf",        "erfc",        "erf_inv", "integer_pow", "pow",
          "square", "abs",        "asin",        "acos",    "atan",        "sinh",
          "cosh",   "asinh",      "acosh",       "atanh",   "lgamma",      "digamma",
          "min",    "reduce_min", "reduce_prod", "cumprod", "cummax",      "cumlogsumexp",
          "clamp"})
      for (const Emits &emits : elementwise)
        t[unary].push_back(emits);
    t["log"] = {{"div", 2.7f}, {"mul", 1.5f}};
    t["log1p"] = {{"div", 2.7f}, {"mul", 1.5f}};
    for (const Emits &emits : additive) {
      t["pow"].push_back(emits);
      t["min"].push_back(emits);
    }
    return t;
  }();
  return table;
}

} // namespace

float transposeFit(std::string_view primal, std::string_view derived) {
  if (primal == derived && primal.size() > 4 && primal.substr(0, 4) == "jit(")
    return 3;
  if (derived == "add_any")
    return 0.8f; // cotangents of a value used twice are added in any equation
  auto found = transposes().find(primal);
  if (found == transposes().end())
    return primal == derived ? 2.0f : 0.6f;
  for (const Emits &emits : found->second)
    if (emits.derived == derived)
      return emits.fit;
  return 0;
}

bool usesOwnResult(std::string_view primal) {
  for (std::string_view name : {"exp", "exp2", "expm1", "tanh", "logistic", "sqrt", "rsqrt", "cbrt",
                                "tan", "reduce_max", "reduce_min", "reduce_prod", "cumprod", "pow"})
    if (primal == name)
      return true;
  return false;
}

bool isResidualOf(std::string_view primal, std::string_view helper) {
  using Names = std::vector<std::string_view>;
  static const std::unordered_map<std::string_view, Names> table{
      {"tanh", {"sub", "add", "mul", "one_minus_square", "square"}},
      {"logistic", {"sub", "mul"}},
      {"sin", {"cos"}},
      {"cos", {"sin", "neg"}},
      {"tan", {"integer_pow", "add", "square"}},
      {"sqrt", {"div", "mul"}},
      {"rsqrt", {"div", "mul", "integer_pow"}},
      {"cbrt", {"div", "mul"}},
      {"integer_pow", {"integer_pow", "mul", "square"}},
      {"square", {"mul"}},
      {"pow", {"pow", "sub", "mul", "log", "select_n", "eq", "lt", "convert_element_type"}},
      {"div", {"integer_pow", "mul", "div", "neg", "broadcast_in_dim", "square"}},
      {"log1p", {"add"}},
      {"expm1", {"add"}},
      {"abs", {"sign"}},
      {"erf", {"integer_pow", "neg", "exp", "mul", "square"}},
      {"max", {"eq", "gt", "lt", "ge", "select_n", "div", "convert_element_type", "max", "mul"}},
      {"min", {"eq", "gt", "lt", "ge", "select_n", "div", "convert_element_type", "min", "mul"}},
      {"reduce_max", {"eq", "convert_element_type", "reduce_sum", "div", "broadcast_in_dim"}},
      {"reduce_min", {"eq", "convert_element_type", "reduce_sum", "div", "broadcast_in_dim"}},
  };
  // A custom derivative may compute anything.
  if (primal.substr(0, 4) == "jit(" || primal == "custom_jvp_call")
    return true;
  auto found = table.find(primal);
  if (found == table.end())
    return false;
  for (std::string_view name : found->second)
    if (name == helper)
      return true;
  return false;
}

} // namespace hlotag::analysis
