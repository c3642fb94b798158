// SPDX-License-Identifier: Apache-2.0
#include "inlined_block.h"

#include <algorithm>

namespace hlotag::analysis {

using ir::Block;
using ir::Operation;
using ir::Value;

namespace {

bool staysCall(Operation call) {
  ir::DictionaryAttr entries = ir::TagWriter::get(call);
  auto text = ir::dynCast<ir::StringAttr>(entries ? entries.lookup("inlineable") : ir::Attribute());
  return text && text.value() == "false";
}

} // namespace

InlinedCalls::InlinedCalls(const CallGraph &graph, const ir::OpIds &ids)
    : manual_(ids.manualComputation) {
  for (const CallGraph::CallSite &site : graph.callSites()) {
    if (!ids.is(site.op.name(), ir::kInlined) || site.callee == CallGraph::kNone ||
        staysCall(site.op))
      continue;
    if (Block body = graph.functions()[site.callee].op.regions()[0].firstBlock())
      *bodies_.insert(site.op.opaque()).first = body;
  }
  for (const CallGraph::Function &function : graph.functions()) {
    bool isInlined = !function.isRoot();
    for (size_t site : function.callers)
      isInlined &= bool(bodyOf(graph.callSites()[site].op));
    if (isInlined)
      inlinedOnly_.insert(function.op.regions()[0].firstBlock().opaque());
  }
}

Block InlinedCalls::bodyOf(Operation op) const {
  if (manual_ && op.name() == manual_)
    return staysCall(op) ? Block() : op.regions()[0].firstBlock();
  const Block *body = bodies_.find(op.opaque());
  return body ? *body : Block();
}

/// A walk through one body: the next operation, and which operations compute the body's values.
struct InlinedBlock::Frame {
  Operation next;
  Operation call;                ///< the inlined operation; null at the top
  Block body;                    ///< its body; null at the top
  ir::PointerMap<Index> by = {}; ///< by value; none for values from outside

  /// Makes the values of `to` those that `from` has in another frame.
  template <class To, class From> void pass(const To &to, const Frame &frame, const From &from) {
    for (intptr_t i = 0; i < std::min(to.size(), from.size()); ++i)
      if (const Index *index = frame.by.find(Value(from[i]).opaque()))
        *by.insert(Value(to[i]).opaque()).first = *index;
  }
};

InlinedBlock::InlinedBlock(Operation first, Operation last, const InlinedCalls &calls,
                           size_t maxOps) {
  std::vector<Frame> frames;
  frames.push_back({first, {}, {}});
  for (size_t numVisited = 0;; ++numVisited) {
    if (numVisited == maxOps) {
      isComplete_ = false;
      return;
    }
    Frame &frame = frames.back();
    Operation op = frame.next;
    if (!op) {
      Frame done = std::move(frame);
      op = done.call;
      frames.pop_back();
      if (Operation end = done.body.terminator())
        frames.back().pass(op.results(), done, end.operands());
    } else {
      frame.next = op.nextInBlock();
      if (Block body = calls.bodyOf(op)) {
        Frame callee{body.firstOp(), op, body};
        callee.pass(body.arguments(), frame, op.operands());
        frames.push_back(std::move(callee));
        continue;
      }
      add(frame, op);
    }
    if (frames.size() == 1 && op == last)
      return;
  }
}

void InlinedBlock::add(Frame &frame, Operation op) {
  std::vector<Index> &uses = uses_.emplace_back();
  ir::forEachOperand(op, [&](Operation, intptr_t, Value value) {
    if (const Index *index = frame.by.find(value.opaque()))
      uses.push_back(*index);
  });
  for (Value result : op.results())
    *frame.by.insert(result.opaque()).first = Index(ops_.size());
  ops_.push_back(op);
}

} // namespace hlotag::analysis
