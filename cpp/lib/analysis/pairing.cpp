// SPDX-License-Identifier: Apache-2.0
#include "hlotag/analysis/pairing.h"

#include "pairing_aligner.h"

#include <deque>
#include <set>

namespace hlotag::analysis {
namespace {

using namespace ir;

/// Inside a backward function, an argument is the forward value that the caller hands over.
void aliasArguments(PairingGraph &graph, const Node &forward, const Node &backward,
                    const FunctionNodes &from, const FunctionNodes &to) {
  Block forwardBody = from.function.regions()[0].firstBlock();
  Operation end = forwardBody.terminator();
  for (Value argument : to.function.regions()[0].firstBlock().arguments()) {
    Value given = graph.canonical(backward.op.operands()[argument.number()]);
    if (given.isResult() && given.definingOp() == forward.op) {
      graph.setAlias(argument, graph.canonical(end.operands()[given.number()]));
      continue;
    }
    for (intptr_t i = 0; i < forward.op.operands().size(); ++i)
      if (graph.canonical(forward.op.operands()[i]) == given) {
        graph.setAlias(argument, forwardBody.arguments()[i]);
        break;
      }
  }
}

} // namespace

std::vector<Pair> pairBackward(Operation module, Provenance &provenance) {
  PairingGraph graph(module, provenance);
  struct Job {
    const FunctionNodes *forward, *backward;
  };
  std::deque<Job> jobs;
  std::set<const FunctionNodes *> seen;
  for (const FunctionNodes &function : graph.functions)
    if (provenance.callsOf(function.function).empty())
      jobs.push_back({&function, &function});
  auto enqueue = [&](const Job &job) {
    for (NodeId id = job.backward->begin; id < job.backward->end; ++id) {
      const Node &node = graph.nodes[id];
      const FunctionNodes *callee = graph.functionOf(node.op);
      if (!callee || seen.count(callee))
        continue;
      if (!node.origin->transposed) {
        seen.insert(callee);
        jobs.push_back({callee, callee});
        continue;
      }
      const FunctionNodes *from =
          node.primal == kNone ? nullptr : graph.functionOf(graph.nodes[node.primal].op);
      if (!from || from == callee)
        continue;
      seen.insert(callee);
      aliasArguments(graph, graph.nodes[node.primal], node, *from, *callee);
      jobs.push_back({from, callee});
    }
  };
  while (!jobs.empty()) {
    Job job = jobs.front();
    jobs.pop_front();
    Aligner(graph, *job.forward, *job.backward).run();
    enqueue(job);
  }
  std::vector<Pair> pairs;
  for (const Node &node : graph.nodes)
    if (node.primal != kNone) {
      pairs.push_back({node.op, graph.nodes[node.primal].op, node.confidence});
      for (NodeId id = node.primal; id-- > 0 && graph.nodes[id].follows == node.primal;)
        pairs.push_back({node.op, graph.nodes[id].op, node.confidence});
    }
  return pairs;
}

} // namespace hlotag::analysis
