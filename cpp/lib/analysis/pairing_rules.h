// SPDX-License-Identifier: Apache-2.0
//
// What JAX's differentiation rules emit, by the names of primitives.
#pragma once

#include <cstdint>
#include <string_view>

namespace hlotag::analysis {

/// How well a backward operation of primitive `derived` fits an equation of primitive `primal`:
/// 0 (never seen) to 3 (the mark of that rule).
float transposeFit(std::string_view primal, std::string_view derived);

/// The same for what the derivative of such an operation emits.
float linearizedFit(std::string_view primal, std::string_view derived);

/// What an operation that a differentiation rule computes ahead works on: the operands of its
/// equation, the result, or what such operations made before it.
enum Residual : unsigned char { kNotResidual = 0, kOfOperand = 1, kOfResult = 2, kOfHelper = 4 };

/// Whether the derivative of `primal` computes a value with `helper` in the forward pass, to be
/// used in the backward pass, and from what: `tanh` computes `sub` of its result.
unsigned residualOf(std::string_view primal, std::string_view helper);

/// Whether the derivative of `primal` uses its result, like that of `exp`.
bool usesOwnResult(std::string_view primal);

/// Whether it uses an operand, like that of `mul`. That of `sin` uses only what was computed ahead.
bool usesOperand(std::string_view primal);

/// Whether the cotangent of `primal` is that of its operands, with nothing computed.
bool passesCotangent(std::string_view primal);

/// Whether `derived` may serve an operation of any equation, as batching and lowering add it.
bool isHelper(std::string_view derived);

/// Whether `name` is what differentiation rules compute ahead, and seldom a step of its own.
bool isMostlyResidual(std::string_view name);

/// Whether backward operations of `primal` may use other values than the equation itself does.
bool usesAnything(std::string_view primal);

/// How the result of a primitive depends on its operands.
enum class Linearity : unsigned char {
  Unknown,
  None,    ///< not linear in any
  Sum,     ///< linear in some together; see `isLinearIn`
  Product, ///< linear in each
};
Linearity linearityOf(std::string_view primitive);

/// Whether a sum is linear in the operand of that number; the others have no tangents.
bool isLinearIn(std::string_view sum, intptr_t number);

/// What is asked of a primitive for each pair it may be in.
struct Traits {
  explicit Traits(std::string_view primitive)
      : usesAnything(analysis::usesAnything(primitive)),
        usesOwnResult(analysis::usesOwnResult(primitive)),
        usesOperand(analysis::usesOperand(primitive)),
        passesCotangent(analysis::passesCotangent(primitive)),
        isMostlyResidual(analysis::isMostlyResidual(primitive)), isSum(primitive == "add_any"),
        isBroadcast(primitive == "broadcast_in_dim"), isReduceSum(primitive == "reduce_sum") {}

  bool usesAnything, usesOwnResult, usesOperand, passesCotangent, isMostlyResidual, isSum,
      isBroadcast, isReduceSum;
};

} // namespace hlotag::analysis
