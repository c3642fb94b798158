// SPDX-License-Identifier: Apache-2.0
#include "hlotag/analysis/paths.h"

#include "hlotag/ir/support.h"

#include <algorithm>
#include <utility>

namespace hlotag::analysis {

/// Returns whether `name` is JAX's of a region of the loop or branch `outer`.
static bool isRegion(std::string_view outer, std::string_view name) {
  if (outer == "while")
    return name == "body" || name == "cond";
  return outer == "cond" && ir::startsWith(name, "branch_") && ir::endsWith(name, "_fun");
}

PathId Paths::child(PathId path, uint32_t name) {
  auto [made, isNew] = children_.insert(uint64_t(path) << 32 | name);
  if (!isNew)
    return *made;
  if (isRegion(element(path), elements_[name]))
    return *made = outer(path);
  // As long as the two shortcuts before it together, if these are equally long: a path of n
  // elements leads to any that it begins with in log n steps.
  const Node &before = nodes_[path], &middle = nodes_[before.shortcut];
  bool areEqual = before.length - middle.length == middle.length - nodes_[middle.shortcut].length;
  *made = PathId(nodes_.size());
  nodes_.push_back({path, name, before.length + 1, areEqual ? middle.shortcut : path});
  return *made;
}

PathId Paths::append(PathId path, std::string_view text) {
  while (!text.empty()) {
    size_t end = std::min(text.find('/'), text.size());
    std::string_view name = text.substr(0, end);
    auto known = elementIds_.find(name);
    if (known == elementIds_.end()) {
      auto id = uint32_t(elements_.size());
      known = elementIds_.emplace(elements_.emplace_back(name), id).first;
    }
    path = child(path, known->second);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return path;
}

PathId Paths::nest(PathId outer, PathId inner) {
  if (!outer)
    return inner;
  std::vector<uint32_t> elements;
  for (; inner; inner = nodes_[inner].outer)
    elements.push_back(nodes_[inner].element);
  for (auto element = elements.rbegin(); element != elements.rend(); ++element)
    outer = child(outer, *element);
  return outer;
}

PathId Paths::commonPrefix(PathId a, PathId b) const {
  if (nodes_[a].length < nodes_[b].length)
    std::swap(a, b);
  while (nodes_[a].length > nodes_[b].length) {
    bool isTooFar = nodes_[nodes_[a].shortcut].length < nodes_[b].length;
    a = isTooFar ? nodes_[a].outer : nodes_[a].shortcut;
  }
  // Paths of one length have shortcuts of one length.
  while (a != b) {
    bool isTooFar = nodes_[a].shortcut == nodes_[b].shortcut;
    a = isTooFar ? nodes_[a].outer : nodes_[a].shortcut;
    b = isTooFar ? nodes_[b].outer : nodes_[b].shortcut;
  }
  return a;
}

std::string Paths::text(PathId path) const {
  std::vector<std::string_view> names;
  for (; path; path = nodes_[path].outer)
    names.push_back(elements_[nodes_[path].element]);
  std::reverse(names.begin(), names.end());
  return ir::join(names, "/");
}

} // namespace hlotag::analysis
