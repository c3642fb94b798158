// SPDX-License-Identifier: Apache-2.0
#include "hlotag/hlo/sources.h"

#include "fields.h"
#include "hlotag/hlo/wire.h"

namespace hlotag::hlo {

/// Returns the element with an id that counts from 1; a default one for other ids.
template <class Element> static Element elementOf(const std::vector<Element> &all, int64_t id) {
  return id > 0 && uint64_t(id) <= all.size() ? all[size_t(id) - 1] : Element{};
}

Sources::Sources(const Module &module) : module_(module) {
  using namespace fields::frames;
  std::vector<std::string_view> files, locations, frames;
  for (wire::Message field(module.stackFrames); field.next();)
    if (field.field() == kFileNames)
      files.push_back(field.bytes());
    else if (field.field() == kLocations)
      locations.push_back(field.bytes());
    else if (field.field() == kFrames)
      frames.push_back(field.bytes());
  for (std::string_view frame : frames) {
    auto location = elementOf(locations, wire::numberIn(frame, kLocationOfFrame, 0));
    frames_.push_back({elementOf(files, wire::numberIn(location, kFileOfLocation, 0)),
                       wire::numberIn(location, kLineOfLocation, 0)});
  }
}

Source Sources::of(size_t instruction) const {
  using namespace fields::metadata;
  Source own;
  int64_t frame = 0;
  for (wire::Message field(module_.instructions[instruction].metadata); field.next();)
    if (field.field() == kFile)
      own.file = field.bytes();
    else if (field.field() == kLine)
      own.line = field.number();
    else if (field.field() == kFrame)
      frame = field.number();
  return own.file.empty() ? elementOf(frames_, frame) : own;
}

} // namespace hlotag::hlo
