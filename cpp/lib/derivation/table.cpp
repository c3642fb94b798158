// SPDX-License-Identifier: Apache-2.0
#include "table.h"

#include <algorithm>

namespace hlotag::derivation {
namespace {

struct RowText {
  std::string_view primitive, nodes;
};
struct ExpansionText {
  std::string_view primitive;
  size_t arity;
  std::string_view names;
};

#include "table.inc"

/// Calls `visit` with the parts of `text` between separators.
template <class Visit> void split(std::string_view text, char separator, Visit visit) {
  while (!text.empty()) {
    size_t end = text.find(separator);
    visit(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
}

uint8_t number(std::string_view text) {
  uint8_t value = 0;
  for (char digit : text)
    value = uint8_t(value * 10 + (digit - '0'));
  return value;
}

Input parseInput(std::string_view text) {
  switch (text[0]) {
  case 'C':
    return {Input::Constant};
  case 'T':
    return {Input::Cotangent};
  case 'R':
    return {Input::Result};
  case 'O':
    return {Input::Operand, number(text.substr(1))};
  default:
    return {Input::Emitted, number(text)};
  }
}

/// Parses a node. `mul(T,O1)>0`: the product of the cotangent and operand 1 is the cotangent of
/// operand 0.
Node parseNode(std::string_view text, analysis::Provenance &provenance) {
  Node node;
  size_t open = text.find('('), close = text.find(')');
  if (open > 0)
    node.primitive = provenance.intern(text.substr(0, open));
  split(text.substr(open + 1, close - open - 1), ',',
        [&](std::string_view input) { node.inputs.push_back(parseInput(input)); });
  if (close + 2 <= text.size())
    split(text.substr(close + 2), ',',
          [&](std::string_view operand) { node.operands.push_back(number(operand)); });
  return node;
}

} // namespace

Table::Table(analysis::Provenance &provenance) : addAny(provenance.intern("add_any")) {
  for (const RowText &text : kRows) {
    TextId primitive = provenance.intern(text.primitive);
    Row &row = rows_[primitive];
    split(text.nodes, ' ',
          [&](std::string_view node) { row.nodes.push_back(parseNode(node, provenance)); });
    for (size_t at = 0; at < row.nodes.size(); ++at) {
      Node &node = row.nodes[at];
      for (Input input : node.inputs) {
        bool isEmitted = input.kind == Input::Emitted;
        if (isEmitted)
          row.nodes[input.number].users.push_back(uint8_t(at));
        node.isLinear |=
            input.kind == Input::Cotangent || (isEmitted && row.nodes[input.number].isLinear);
      }
      if (node.primitive)
        nodes_[node.primitive].push_back({primitive, uint8_t(at)});
      else
        row.handedOn.insert(row.handedOn.end(), node.operands.begin(), node.operands.end());
    }
  }
  for (const ExpansionText &text : kExpansions) {
    Expansion expansion{provenance.intern(text.primitive), text.arity, {}};
    split(text.names, ' ',
          [&](std::string_view name) { expansion.names.push_back(provenance.intern(name)); });
    // Try longer expansions first.
    std::vector<Expansion> &list = expansions_[expansion.names[0]];
    auto shorter = std::find_if(list.begin(), list.end(), [&](const Expansion &other) {
      return other.names.size() < expansion.names.size();
    });
    list.insert(shorter, std::move(expansion));
  }
}

} // namespace hlotag::derivation
