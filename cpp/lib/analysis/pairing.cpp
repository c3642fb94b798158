// SPDX-License-Identifier: Apache-2.0
#include "hlotag/analysis/pairing.h"

#include "pairing_aligner.h"

#include <deque>
#include <set>

namespace hlotag::analysis {
namespace {

using namespace ir;

/// Inside a function, an argument is what its callers hand over, if that is one value.
void aliasParameters(PairingGraph &graph, Provenance &provenance) {
  ValueGraph &values = graph.values();
  for (const FunctionNodes &function : graph.functions) {
    std::vector<NodeId> calls;
    for (Operation call : provenance.callsOf(function.function))
      calls.push_back(graph.nodeOfCall(call));
    ValueRange arguments = values.arguments(function.body);
    auto isUnfit = [&](NodeId call) {
      return call == kNone || graph.nodes[call].order->isDerived ||
             graph.operands(call).size() < arguments.size();
    };
    if (calls.empty() || std::any_of(calls.begin(), calls.end(), isUnfit))
      continue;
    for (ValueId argument : arguments) {
      auto given = [&](NodeId call) { return graph.operands(call)[values.number(argument)]; };
      ValueId first = given(calls[0]);
      if (std::all_of(calls.begin(), calls.end(), [&](NodeId id) { return given(id) == first; }))
        values.setAlias(argument, first);
    }
  }
}

/// Inside a backward function, an argument is the forward value that the caller hands over.
void aliasArguments(PairingGraph &graph, NodeId forward, NodeId backward, const FunctionNodes &from,
                    const FunctionNodes &to) {
  ValueGraph &values = graph.values();
  // Nobody verified the module before.
  if (graph.operands(backward).size() < values.arguments(to.body).size() ||
      graph.operands(forward).size() > values.arguments(from.body).size())
    return;
  for (ValueId argument : values.arguments(to.body)) {
    ValueId given = values.canonical(graph.operands(backward)[values.number(argument)]);
    if (values.maker(given) == forward) {
      if (ValueId yielded = values.yielded(from.body, values.number(given)); yielded != kNone)
        values.setAlias(argument, yielded);
      continue;
    }
    Span<ValueId> operands = graph.operands(forward);
    for (size_t i = 0; i < operands.size(); ++i)
      if (values.canonical(operands[i]) == given) {
        values.setAlias(argument, values.arguments(from.body)[i]);
        break;
      }
  }
}

/// A function that only one equation's backward code calls is part of that equation, if it has no
/// counterpart in the forward pass. One that stands for a call has equations of its own.
void adoptCallees(PairingGraph &graph, Provenance &provenance,
                  const std::set<const FunctionNodes *> &seen) {
  for (const FunctionNodes &function : graph.functions) {
    const std::vector<Operation> &calls = provenance.callsOf(function.function);
    if (seen.count(&function) || calls.empty())
      continue;
    NodeId primal = kNone;
    float confidence = 1.0f;
    for (Operation call : calls) {
      NodeId id = graph.nodeOfCall(call);
      if (id == kNone || !graph.nodes[id].isTransposed ||
          (primal != kNone && primal != graph.nodes[id].primal)) {
        primal = kNone;
        break;
      }
      primal = graph.nodes[id].primal;
      confidence = std::min(confidence, graph.nodes[id].confidence);
    }
    if (primal != kNone && graph.functionOf(graph.nodes[primal]))
      confidence = std::min(confidence, 0.85f);
    for (NodeId id = function.begin; id < function.end && primal != kNone; ++id) {
      graph.nodes[id].primal = primal;
      graph.nodes[id].confidence = confidence;
    }
  }
}

/// Adds to `pair` what else `node` may stem from; nothing where one of those is not sure itself.
void addRivals(const PairingGraph &graph, NodeId id, Pair &pair) {
  float agreed = graph.nodes[id].agreed;
  if (agreed <= pair.confidence)
    return;
  const NodeIds *rivals = graph.rivals.find(id);
  for (NodeId rival : rivals ? *rivals : NodeIds()) {
    if (graph.nodes[rival].order->isDerived)
      return pair.rivals.clear();
    pair.rivals.push_back(graph.opOf(graph.nodes[rival]));
  }
  pair.agreed = agreed;
}

/// Pairs the operations in the regions of `derived` with those in the regions of `primal`, which
/// may be equations of their own, where the one is a copy of the other.
void visitCopiedBody(Operation function, Operation derived, Operation primal, float confidence,
                     const std::function<void(const Pair &)> &visit) {
  if (derived.name() != primal.name() || derived.regions().size() != primal.regions().size())
    return;
  for (intptr_t i = 0; i < derived.regions().size(); ++i) {
    std::vector<Operation> copies, originals;
    for (Operation op : derived.regions()[i].firstBlock().operations())
      copies.push_back(op);
    for (Operation op : primal.regions()[i].firstBlock().operations())
      originals.push_back(op);
    auto isSameKind = [](Operation a, Operation b) { return a.name() == b.name(); };
    if (!std::equal(copies.begin(), copies.end(), originals.begin(), originals.end(), isSameKind))
      continue;
    for (size_t at = 0; at < copies.size(); ++at)
      visit({function, copies[at], originals[at], confidence});
  }
}

/// Calls `visit` with the pairs of the node `id`, if it was paired.
void visitPairs(PairingGraph &graph, Operation function, NodeId id,
                const std::function<void(const Pair &)> &visit) {
  const Node &node = graph.nodes[id];
  // What was derived from a derived operation stems from what that was derived from.
  NodeId primal = node.primal;
  float confidence = node.confidence;
  while (primal != kNone && graph.nodes[primal].order->isDerived &&
         !graph.nodes[primal].isRematted) {
    confidence = std::min(confidence, graph.nodes[primal].confidence);
    primal = graph.nodes[primal].primal;
  }
  if (primal == kNone)
    return;
  Operation derived = graph.opOf(node);
  if (node.isRematted)
    visitCopiedBody(function, derived, graph.opOf(graph.nodes[primal]), confidence, visit);
  // The body of a reduction goes with it; that of a loop was paired itself.
  bool hasOwnBody = node.hasRegions && node.last == id && node.name != graph.ids().whileOp &&
                    node.name != graph.ids().caseOp;
  auto visitFrom = [&](NodeId source) {
    Pair pair{function, derived, graph.opOf(graph.nodes[source]), confidence};
    if (source == primal && primal == node.primal)
      addRivals(graph, id, pair);
    visit(pair);
    for (intptr_t i = 0; hasOwnBody && i < derived.regions().size(); ++i)
      for (Operation op : derived.regions()[i].firstBlock().operations()) {
        pair.derived = op;
        visit(pair);
      }
  };
  visitFrom(primal);
  for (NodeId member : graph.membersOf(primal))
    if (member != primal)
      visitFrom(member);
  // What drives a loop stands for the loop.
  for (NodeId host = graph.hostOf(graph.nodes[primal]); host != kNone;
       host = graph.hostOf(graph.nodes[host]))
    visitFrom(host);
}

} // namespace

void pairBackward(const OpList &operations, Provenance &provenance,
                  const std::function<void(const Pair &)> &visit) {
  PairingGraph graph(operations, provenance);
  aliasParameters(graph, provenance);
  struct Job {
    const FunctionNodes *forward, *backward;
    NodeId call;
  };
  std::deque<Job> jobs;
  std::set<const FunctionNodes *> seen;
  for (const FunctionNodes &function : graph.functions)
    if (provenance.callsOf(function.function).empty())
      jobs.push_back({&function, &function, kNone});
  auto enqueue = [&](const Job &job) {
    for (NodeId id : job.backward->calls) {
      const Node &node = graph.nodes[id];
      const FunctionNodes *callee = graph.functionOf(node);
      if (!callee || seen.count(callee))
        continue;
      if (!node.isTransposed) {
        seen.insert(callee);
        jobs.push_back({callee, callee, kNone});
        continue;
      }
      const FunctionNodes *from =
          node.primal == kNone ? nullptr : graph.functionOf(graph.nodes[node.primal]);
      if (!from || from == callee)
        continue;
      seen.insert(callee);
      aliasArguments(graph, node.primal, id, *from, *callee);
      jobs.push_back({from, callee, id});
    }
  };
  while (!jobs.empty()) {
    Job job = jobs.front();
    jobs.pop_front();
    Aligner(graph, *job.forward, *job.backward, job.call).run();
    enqueue(job);
  }
  adoptCallees(graph, provenance, seen);
  for (const FunctionNodes &function : graph.functions)
    for (NodeId id : function.derived)
      visitPairs(graph, function.function, id, visit);
}

} // namespace hlotag::analysis
