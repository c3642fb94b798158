// SPDX-License-Identifier: Apache-2.0
//
// What do operations and instructions do, by name? A cache of answers from `Opcodes`.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hlotag::hlo {

/// The traits of HLO opcodes and of operations.
class Opcodes {
public:
  struct Traits {
    std::string opcode; // The opcode an operation becomes; of an opcode, itself.
    bool isMove, isRelabelling, isXlasOwn;
    std::string heavy; // The kind of heavy computation (a step of its own), or empty.
  };

  virtual Traits traitsOf(std::string_view name) = 0;
  /// Whether an operation may become an instruction with this opcode.
  virtual bool mayBe(std::string_view name, std::string_view opcode) = 0;

protected:
  ~Opcodes() = default;
};

class Kinds {
public:
  struct Kind {
    std::string name;
    size_t opcode; // The kind an operation becomes; of an opcode, itself.
    bool isMove, isRelabelling, isXlasOwn;
    std::string heavy;
    bool isHeavy;
    bool isFusion, isCall, isLoop, isParameter, isElement, isTuple, isConstant;
    bool isRelabelled, isReshaped, isCopied, isControl, isCommutative;
    bool isAsyncStart, isDone; // One end of an asynchronous operation.
    bool isWrapper;            // Has its value from the computation that it calls, or its start.
    bool isSlice;              // Takes a part of its first operand.
    bool isCombinable;         // XLA makes one collective of several.
    std::vector<signed char> mayBe; // By opcode; -1: not asked yet.
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
