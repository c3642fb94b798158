// SPDX-License-Identifier: Apache-2.0
//
// What operations and instructions do, by their names: a table of what `Opcodes` was asked.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hlotag::hlo {

/// Knows opcodes of HLO, and names of operations.
class Opcodes {
public:
  struct Traits {
    std::string opcode; // What an operation is translated to; an opcode itself.
    bool isMove, isRelabelling, isXlasOwn;
    std::string heavy; // Which kind of step of its own it is; empty for others.
  };

  virtual Traits traitsOf(std::string_view name) = 0;
  /// Whether XLA makes instructions of that opcode from an operation.
  virtual bool mayBe(std::string_view name, std::string_view opcode) = 0;

protected:
  ~Opcodes() = default;
};

class Kinds {
public:
  struct Kind {
    std::string name;
    size_t opcode; // The kind that an operation is translated to; an opcode's own.
    bool isMove, isRelabelling, isXlasOwn;
    std::string heavy;
    bool isHeavy;
    bool isFusion, isCall, isLoop, isParameter, isElement, isTuple, isConstant;
    bool isRelabelled, isReshaped, isCopied, isControl, isCommutative;
    bool isAsyncStart, isDone; // An end of what runs beside other instructions.
    bool isWrapper;            // Has its value from the computation that it calls, or its start.
    bool isSlice;              // Takes a part of its first operand.
    bool isCombinable;         // XLA makes one collective of several.
    std::vector<signed char> mayBe; // By opcode; -1 where nobody asked.
  };

  explicit Kinds(Opcodes &opcodes) : opcodes_(opcodes) {}

  const Kind &operator[](size_t kind) const { return kinds_[kind]; }
  size_t of(std::string_view name);
  bool mayBe(size_t name, size_t opcode);

private:
  Opcodes &opcodes_;
  std::map<std::string, size_t, std::less<>> indices_;
  std::vector<Kind> kinds_;
};

} // namespace hlotag::hlo
