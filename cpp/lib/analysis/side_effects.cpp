// SPDX-License-Identifier: Apache-2.0
#include "side_effects.h"

#include <algorithm>
#include <iterator>

namespace hlotag::analysis {

SideEffects::SideEffects(const CallGraph &graph, const ir::OpIds &ids) : ids_(ids) {
  // Callees first. In a cycle, which HLO cannot have, an unknown callee counts as free of effects.
  for (size_t f : graph.calleesFirst()) {
    const CallGraph::Function &function = graph.functions()[f];
    bool isDeclaration = function.op.regions()[0].empty();
    if (isDeclaration || has(function.op))
      functions_.emplace(function.name);
  }
}

bool SideEffects::has(ir::Operation op) {
  return !ir::walk(op, [&](ir::Operation nested) {
    bool some = false;
    std::string_view symbol;
    switch (kindOf(nested.name())) {
    case Kind::None:
      break;
    case Kind::Some:
      some = true;
      break;
    case Kind::Call:
      symbol = "callee";
      break;
    case Kind::Composite:
      symbol = "decomposition";
      break;
    case Kind::CustomCall: {
      ir::Attribute flag = nested.attr("has_side_effect");
      some = flag && flag.str() == "true";
      break;
    }
    }
    if (!symbol.empty()) {
      auto callee = nested.attrOf<ir::FlatSymbolRefAttr>(symbol);
      some = !callee || functions_.count(std::string(callee.value()));
    }
    return some ? ir::WalkResult::Interrupt : ir::WalkResult::Advance;
  });
}

SideEffects::Kind SideEffects::kindOf(ir::Identifier opName) {
  static constexpr std::string_view pureDialects[] = {"stablehlo", "chlo", "mhlo",  "sdy",
                                                      "arith",     "math", "shape", "tensor"};
  static constexpr std::string_view impure[] = {"stablehlo.infeed",
                                                "stablehlo.outfeed",
                                                "stablehlo.send",
                                                "stablehlo.recv",
                                                "stablehlo.rng",
                                                "stablehlo.async_start",
                                                "stablehlo.async_done",
                                                "mhlo.infeed",
                                                "mhlo.outfeed",
                                                "mhlo.send",
                                                "mhlo.recv",
                                                "mhlo.rng",
                                                "mhlo.async_start",
                                                "mhlo.async_done",
                                                "mhlo.async_update",
                                                "mhlo.custom_call"};
  auto [kind, isNew] = kinds_.insert(opName.opaque());
  if (!isNew)
    return *kind;
  std::string_view name = opName.str();
  auto contains = [](const auto &list, std::string_view text) {
    return std::find(std::begin(list), std::end(list), text) != std::end(list);
  };
  if (opName == ids_.func || opName == ids_.funcReturn)
    *kind = Kind::None;
  else if (opName == ids_.funcCall)
    *kind = Kind::Call;
  else if (opName == ids_.composite)
    *kind = Kind::Composite;
  else if (opName == ids_.customCall)
    *kind = Kind::CustomCall;
  else if (contains(impure, name) || !contains(pureDialects, name.substr(0, name.find('.'))))
    *kind = Kind::Some;
  return *kind;
}

} // namespace hlotag::analysis
