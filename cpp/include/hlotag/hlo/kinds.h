// SPDX-License-Identifier: Apache-2.0
//
// What do operations and instructions do, by name?
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hlotag::hlo {

/// The traits of HLO opcodes and of operations.
class Opcodes {
public:
  struct Traits {
    std::string opcode; ///< the opcode that an operation becomes; for an opcode, itself
    bool isMove, isRelabelling, isXlasOwn;
    std::string heavy;          ///< the kind of heavy computation (a step of its own), or empty
    bool isPointwise, isLayout; ///< computes element by element; moves elements
  };

  virtual Traits traitsOf(std::string_view name) = 0;
  /// Returns true if an operation may become an instruction with this opcode.
  virtual bool mayBe(std::string_view name, std::string_view opcode) = 0;

protected:
  ~Opcodes() = default;
};

/// Asks `Opcodes` once for each name and each pair of names.
class Kinds {
public:
  struct Kind {
    std::string name;
    size_t opcode; ///< the kind that an operation becomes; for an opcode, itself
    bool isMove, isRelabelling, isXlasOwn;
    std::string heavy;
    bool isPointwise, isLayout, isHeavy;
    bool isFusion, isCall, isLoop, isParameter, isElement, isTuple, isConstant;
    bool isReshaped, isCopied, isControl, isCommutative;
    bool isAsyncStart, isDone; ///< one end of an asynchronous operation
    bool isWrapper;    ///< its value is computed in the computation that it or its start calls
    bool isSlice;      ///< takes a part of its first operand
    bool isCombinable; ///< XLA combines several such collectives
  };

  explicit Kinds(Opcodes &opcodes) : opcodes_(opcodes) {}

  const Kind &operator[](size_t kind) const { return kinds_[kind]; }
  size_t of(std::string_view name);
  bool mayBe(size_t name, size_t opcode);

private:
  Opcodes &opcodes_;
  std::map<std::string, size_t, std::less<>> indices_;
  std::vector<Kind> kinds_;
  std::map<std::pair<size_t, size_t>, bool> mayBe_; // by name and opcode
};

} // namespace hlotag::hlo
