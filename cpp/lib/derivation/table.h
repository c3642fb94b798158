// SPDX-License-Identifier: Apache-2.0
//
// Which equations do differentiation and transposition emit, by primitive?
#pragma once

#include "hlotag/analysis/provenance.h"

#include <string_view>
#include <unordered_map>
#include <vector>

namespace hlotag::derivation {

using analysis::TextId;

/// An input of an emitted equation.
struct Input {
  enum Kind : uint8_t {
    Constant,
    Cotangent, ///< of the primal's result
    Operand,   ///< operand `number` of the primal
    Result,
    Emitted ///< the result of node `number`
  } kind;
  uint8_t number = 0;
};

/// An equation that a derivative emits. Without a primitive: a cotangent that is handed on
/// unchanged.
struct Node {
  TextId primitive = 0;
  std::vector<Input> inputs;
  std::vector<uint8_t> operands; ///< operands whose cotangent the node makes
  std::vector<uint8_t> users;    ///< nodes that take its result
  bool isLinear = false;         ///< in the cotangent; false for residuals
};

/// The distinct nodes in all forms of a primitive's derivative.
struct Row {
  std::vector<Node> nodes;
  std::vector<uint8_t> handedOn; ///< operands that may get the cotangent unchanged
};

/// A node of a row.
struct RowNode {
  TextId primitive;
  uint8_t node;
  friend bool operator==(RowNode a, RowNode b) {
    return a.primitive == b.primitive && a.node == b.node;
  }
};

/// A primitive that lowers to a sequence of other primitives' operations.
struct Expansion {
  TextId primitive;
  size_t arity;
  std::vector<TextId> names;
};

/// The rows of `table.inc`, generated from JAX by tools/derivation_table.py.
class Table {
public:
  explicit Table(analysis::Provenance &provenance);

  /// Null if the table has no derivative of the primitive.
  const Row *row(TextId primitive) const {
    auto found = rows_.find(primitive);
    return found == rows_.end() ? nullptr : &found->second;
  }
  /// The expansions that begin with `name`, longest first; null if there are none.
  const std::vector<Expansion> *expansions(TextId name) const {
    auto found = expansions_.find(name);
    return found == expansions_.end() ? nullptr : &found->second;
  }
  /// The nodes that are equations of `primitive`.
  const std::vector<RowNode> &nodesOf(TextId primitive) const {
    static const std::vector<RowNode> none;
    auto found = nodes_.find(primitive);
    return found == nodes_.end() ? none : found->second;
  }
  TextId addAny;

private:
  std::unordered_map<TextId, Row> rows_;
  std::unordered_map<TextId, std::vector<Expansion>> expansions_;
  std::unordered_map<TextId, std::vector<RowNode>> nodes_; ///< by the node's primitive
};

} // namespace hlotag::derivation
