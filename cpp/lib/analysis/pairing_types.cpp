// SPDX-License-Identifier: Apache-2.0
//
// Which types batching may make of which, and which have no derivative.
#include "pairing_graph.h"

#include <algorithm>

namespace hlotag::analysis {

using namespace ir;

/// The dimensions of a tensor type, and its element type last.
static std::vector<std::string> shapeOf(const void *type) {
  std::string text = Attribute(capi::fn().mlirTypeAttrGet(MlirType{type})).str();
  std::vector<std::string> parts;
  size_t begin = text.find('<');
  if (begin == std::string::npos)
    return {text};
  for (size_t at = ++begin; at < text.size(); ++at)
    if (text[at] == 'x' || text[at] == '>') {
      parts.push_back(text.substr(begin, at - begin));
      begin = at + 1;
    }
  return parts;
}

const std::vector<std::string> &PairingGraph::shape(TypeId type) {
  if (shapes_.empty())
    shapes_.resize(values_.types().size());
  if (shapes_[type].empty())
    shapes_[type] = shapeOf(values_.types()[type]);
  return shapes_[type];
}

bool PairingGraph::hasUnitDimension(TypeId type) {
  const std::vector<std::string> &dimensions = shape(type);
  return std::find(dimensions.begin(), dimensions.end(), "1") != dimensions.end();
}

bool PairingGraph::makesIntegers(const Node &node) {
  Span<TypeId> types = makes(node);
  return !types.empty() && std::all_of(types.begin(), types.end(), [&](TypeId type) {
    std::string_view element = shape(type).back();
    return element.substr(0, 1) == "i" || element.substr(0, 2) == "ui";
  });
}

bool PairingGraph::isAlike(TypeId a, TypeId b, size_t numBatched) {
  if (a == b || numBatched == 0)
    return a == b;
  const std::vector<std::string> *shorter = &shape(b), *longer = &shape(a);
  if (longer->size() < shorter->size())
    std::swap(longer, shorter);
  size_t numMore = longer->size() - shorter->size();
  if (numMore == 0 || numMore > numBatched)
    return false;
  auto at = longer->begin();
  for (const std::string &part : *shorter) {
    at = std::find(at, longer->end(), part);
    if (at == longer->end())
      return false;
    ++at;
  }
  return true;
}

} // namespace hlotag::analysis
