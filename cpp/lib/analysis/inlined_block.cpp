// SPDX-License-Identifier: Apache-2.0
#include "inlined_block.h"

namespace hlotag::analysis {

using ir::Block;
using ir::Operation;

namespace {

bool staysCall(Operation call, const ir::TagWriter &tags) {
  ir::DictionaryAttr entries = tags.get(call);
  auto text = ir::dynCast<ir::StringAttr>(entries ? entries.lookup("inlineable") : ir::Attribute());
  return text && text.value() == "false";
}

} // namespace

InlinedCalls::InlinedCalls(const CallGraph &graph, const ir::OpIds &ids,
                           const ir::TagWriter &tags) {
  for (const CallGraph::CallSite &site : graph.callSites()) {
    if (!ids.is(site.op.name(), ir::kInlined) || site.callee == CallGraph::kNone ||
        staysCall(site.op, tags))
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

Block InlinedCalls::bodyOf(Operation call) const {
  const Block *body = bodies_.find(call.opaque());
  return body ? *body : Block();
}

/// The state of a walk through one body: its position and the places of its values.
struct InlinedBlock::Frame {
  Operation next;
  Operation call; ///< the inlined call; null at the top
  Block body;     ///< the callee's body; null at the top
  std::vector<Place> arguments = {};
  ir::PointerMap<Place> places = {};               // of operations
  ir::PointerMap<std::vector<Place>> results = {}; // of inlined calls

  Place find(ir::Value value) const {
    auto at = [&](const std::vector<Place> &places) {
      size_t number = size_t(value.number());
      return number < places.size() ? places[number] : kNone;
    };
    Operation definition = value.definingOp();
    if (!definition)
      return body && value.ownerBlock() == body ? at(arguments) : kNone;
    if (const std::vector<Place> *inlined = results.find(definition.opaque()))
      return at(*inlined);
    const Place *place = places.find(definition.opaque());
    return place ? *place : kNone;
  }
  std::vector<Place> findOperands(Operation op) const {
    std::vector<Place> found;
    for (ir::Value operand : op.operands())
      found.push_back(find(operand));
    return found;
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
      Operation end = frame.body.terminator();
      std::vector<Place> results = end ? frame.findOperands(end) : std::vector<Place>();
      op = frame.call;
      frames.pop_back();
      *frames.back().results.insert(op.opaque()).first = std::move(results);
    } else {
      frame.next = op.nextInBlock();
      if (Block body = calls.bodyOf(op)) {
        frames.push_back({body.firstOp(), op, body, frame.findOperands(op)});
        continue;
      }
      add(frame, op);
    }
    if (frames.size() == 1 && op == last)
      return;
  }
}

void InlinedBlock::add(Frame &frame, Operation op) {
  *frame.places.insert(op.opaque()).first = Place(ops_.size());
  ir::forEachOperand(op, [&](Operation, intptr_t, ir::Value value) {
    if (Place place = frame.find(value); place != kNone)
      uses_.push_back(place);
  });
  ops_.push_back(op);
  endOfUses_.push_back(uses_.size());
}

} // namespace hlotag::analysis
