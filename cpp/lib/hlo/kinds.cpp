// SPDX-License-Identifier: Apache-2.0
#include "hlotag/hlo/kinds.h"

#include "hlotag/ir/support.h"

#include <algorithm>
#include <initializer_list>

namespace hlotag::hlo {

size_t Kinds::of(std::string_view name) {
  auto known = indices_.find(name);
  if (known != indices_.end())
    return known->second;
  size_t index = kinds_.size();
  indices_.emplace(name, index);
  auto isOne = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  Opcodes::Traits traits = opcodes_.traitsOf(name);
  Kind kind{std::string(name), index,        traits.isMove,      traits.isRelabelling,
            traits.isXlasOwn,  traits.heavy, traits.isPointwise, traits.isLayout};
  kind.isHeavy = !traits.heavy.empty();
  kind.isFusion = isOne({"fusion"});
  kind.isCall = isOne({"call"});
  kind.isLoop = isOne({"while"});
  kind.isParameter = isOne({"parameter"});
  kind.isElement = isOne({"get-tuple-element"});
  kind.isTuple = isOne({"tuple"});
  kind.isConstant = isOne({"constant"});
  kind.isReshaped = isOne({"bitcast", "copy", "reshape", "transpose"});
  kind.isCopied = isOne({"bitcast", "copy"});
  kind.isControl = isOne({"fusion", "while", "conditional", "call"});
  kind.isCommutative = isOne({"add", "and", "maximum", "minimum", "multiply", "or", "xor"});
  kind.isAsyncStart = isOne({"async-start"});
  kind.isDone = isOne({"async-update"}) || ir::endsWith(name, "-done");
  kind.isWrapper = kind.isFusion || kind.isAsyncStart || kind.isDone;
  kind.isSlice = isOne({"slice", "dynamic-slice"});
  kind.isCombinable =
      !kind.isDone && (kind.heavy == "all-gather" || kind.heavy == "all-reduce" ||
                       kind.heavy == "collective-permute" || kind.heavy == "collective-broadcast" ||
                       kind.heavy == "reduce-scatter");
  kinds_.push_back(std::move(kind));
  size_t opcode = of(traits.opcode);
  kinds_[index].opcode = opcode;
  return index;
}

bool Kinds::mayBe(size_t name, size_t opcode) {
  auto [known, isNew] = mayBe_.try_emplace({name, opcode});
  if (isNew)
    known->second = opcodes_.mayBe(kinds_[name].name, kinds_[opcode].name);
  return known->second;
}

} // namespace hlotag::hlo
