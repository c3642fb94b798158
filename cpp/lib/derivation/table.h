// SPDX-License-Identifier: Apache-2.0
//
// What differentiating and transposing an equation adds to a program, by primitive.
#pragma once

#include "hlotag/analysis/provenance.h"

#include <string_view>
#include <unordered_map>
#include <vector>

namespace hlotag::derivation {

using analysis::TextId;

/// What an emitted equation takes.
struct Input {
  enum Kind : uint8_t {
    Constant,
    Cotangent, ///< of the equation's result
    Operand,   ///< of the equation, `number`
    Result,
    Emitted ///< by the node `number`
  } kind;
  uint8_t number = 0;
};

/// An equation that a derivative emits. Without a primitive it stands for a cotangent that is
/// handed on as it is.
struct Node {
  TextId primitive = 0;
  std::vector<Input> inputs;
  std::vector<uint8_t> operands; ///< whose cotangent it makes
  std::vector<uint8_t> users;    ///< other nodes
  bool isLinear = false;         ///< in the cotangent; others make residuals
};

/// The nodes of all forms of the primitive's derivative; equal ones are one.
struct Row {
  std::vector<Node> nodes;
  std::vector<uint8_t> handedOn; ///< operands that may get the cotangent as it is
};

/// A node of a row.
struct RowNode {
  TextId primitive;
  uint8_t node;
  friend bool operator==(RowNode a, RowNode b) {
    return a.primitive == b.primitive && a.node == b.node;
  }
};

/// A primitive that lowering writes out under the names of others.
struct Expansion {
  TextId primitive;
  size_t arity;
  std::vector<TextId> names;
};

/// The rows of `table.inc`, which tools/derivation_table.py makes from JAX.
class Table {
public:
  explicit Table(analysis::Provenance &provenance);

  /// Null if the primitive has no derivative, or none that is known.
  const Row *row(TextId primitive) const {
    auto found = rows_.find(primitive);
    return found == rows_.end() ? nullptr : &found->second;
  }
  /// Those that begin with that name, the longest first.
  const std::vector<Expansion> *expansions(TextId name) const {
    auto found = expansions_.find(name);
    return found == expansions_.end() ? nullptr : &found->second;
  }
  /// The nodes that are equations of that primitive.
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
