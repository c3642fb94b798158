// SPDX-License-Identifier: Apache-2.0
//
// Which types batching may make of which, and which have no derivative.
#include "pairing_graph.h"

#include <algorithm>

namespace hlotag::analysis {

using namespace ir;

/// The dimensions of a tensor type, and its element type last.
static std::vector<std::string> partsOf(const void *type) {
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

const Shape &PairingGraph::shape(TypeId type) {
  if (type >= shapes_.size())
    shapes_.resize(values_.types().size());
  Shape &shape = shapes_[type];
  if (shape.parts.empty()) {
    shape.parts = partsOf(values_.types()[type]);
    const std::string &element = shape.parts.back();
    shape.isOfIntegers = element[0] == 'i' || element.compare(0, 2, "ui") == 0;
    shape.hasUnitDimension =
        std::find(shape.parts.begin(), shape.parts.end(), "1") != shape.parts.end();
  }
  return shape;
}

bool PairingGraph::areIntegers(Span<TypeId> types) {
  return !types.empty() && std::all_of(types.begin(), types.end(),
                                       [&](TypeId type) { return shape(type).isOfIntegers; });
}

bool PairingGraph::isAlike(TypeId a, TypeId b, size_t numBatched) {
  if (a == b || numBatched == 0)
    return a == b;
  const std::vector<std::string> *shorter = &shape(b).parts, *longer = &shape(a).parts;
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
