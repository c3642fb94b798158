// SPDX-License-Identifier: Apache-2.0
//
// Which forward operations may an operation of a backward pass derive from?
#pragma once

#include "hlotag/analysis/provenance.h"

#include <map>
#include <unordered_map>
#include <vector>

namespace hlotag::analysis {

/// Knows operations by scope, line and column, and the operations that derivatives consist of by
/// `derivatives.inc`. The module must not change meanwhile, attributes may.
///
/// Dead code leaves derivatives without a forward operation. So an expression of the program has
/// candidates only if one of its values is used outside of it: then the rest of the expression is
/// alive too. Values that only the expression's own derivatives use are residuals, and no
/// candidates.
class Derivatives {
public:
  /// Follows a value through up to `maxFlows` others: calls and loops pass values on.
  Derivatives(const ir::OpList &operations, Provenance &provenance, size_t maxFlows);

  /// The number of operations whose values are taken for used outside of their expression, because
  /// they pass on more.
  size_t numCutOff() const { return numCutOff_; }

  /// Returns the forward operations that `op` may derive from. Empty if `op` is a forward
  /// operation, or if they are not all known. The list stays, and operations with equal candidates
  /// share it.
  const std::vector<ir::Operation> &candidatesFor(ir::Operation op);

private:
  /// An operation that the derivatives of a primitive consist of.
  struct Emission {
    TextId name = 0;
    bool onlyBatched = false;      ///< emitted by batching
    bool onlyBroadcasting = false; ///< emitted if an operand's type differs from the result's
    bool takesCotangent = false;   ///< takes a value of the type of the primal's result
    bool makesCotangent = false;   ///< makes a value of the type of an operand of the primal
  };
  /// The forward operations of one scope, line and column, last first.
  struct Expression {
    std::vector<ir::Operation> primals;
    ir::PointerMap<bool> isPrimal; ///< false for residuals
  };

  void removeHelpers(std::vector<ir::Operation> &primals);
  bool isSite(ir::Operation op) const;
  std::vector<uint64_t> signatureOf(ir::Operation op, const Origin &origin) const;
  bool addsKnown(ir::Operation sum);
  bool mayEmit(ir::Operation primal, ir::Operation op);
  bool fits(const Emission &emission, ir::Operation primal, ir::Operation op) const;
  bool mayDiffer(ir::Operation op);
  bool isFloat(ir::Value value);
  bool isNeeded(ir::Operation op, uint64_t expression);
  bool leavesModule(ir::Operation op) const;
  void addFlows(ir::OpOperand use, std::vector<ir::Value> &values) const;
  bool movesSlices(ir::Operation op);
  static uint64_t keyOf(const Origin &origin) {
    return uint64_t(origin.localScope) << 32 | origin.sourceKey;
  }

  size_t maxFlows_, numCutOff_ = 0;
  Provenance &provenance_;
  ir::OpIds ids_;
  TextId sum_;
  std::unordered_map<uint64_t, Expression> expressions_;
  std::map<std::vector<uint64_t>, std::vector<ir::Operation>> candidates_; // by signature
  std::unordered_map<TextId, std::vector<Emission>> emissions_;            // by primitive
  ir::PointerMap<bool> floats_;                                            // by type
  ir::FlatMap<uint64_t, bool> loopSources_;                                // by source
  ir::PointerMap<size_t> functions_;                                       // by operation
};

} // namespace hlotag::analysis
