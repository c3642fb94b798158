// SPDX-License-Identifier: Apache-2.0
#include "hlotag/hlo/edit.h"

#include "fields.h"
#include "hlotag/hlo/wire.h"

namespace hlotag::hlo {

/// Returns a message in which `write` appends the fields with one number.
template <class Write>
static std::string rewrite(std::string_view message, int number, Write write) {
  std::string result;
  for (wire::Message field(message); field.next();)
    if (field.field() == number)
      write(result, field);
    else
      result += field.raw();
  return result;
}

std::string toMessage(const Entries &entries) {
  std::string message, entry;
  for (const auto &[key, value] : entries) {
    entry.clear();
    wire::append(entry, fields::entry::kKey, key);
    wire::append(entry, fields::entry::kValue, value);
    wire::append(message, fields::attributes::kMap, entry);
  }
  return message;
}

std::string without(int removed, std::string_view message) {
  return rewrite(message, removed, [](std::string &, const wire::Message &) {});
}

std::string headerOf(std::string_view module) {
  return without(fields::module::kComputations, module);
}

std::string withAttributes(std::string_view module, const std::map<size_t, Entries> &changed) {
  using namespace fields;
  size_t number = 0;
  auto writeInstruction = [&](std::string &computation, const wire::Message &instruction) {
    auto found = changed.find(number++);
    if (found == changed.end()) {
      computation += instruction.raw();
      return;
    }
    std::string written = without(instruction::kFrontendAttributes, instruction.bytes());
    wire::append(written, instruction::kFrontendAttributes, toMessage(found->second));
    wire::append(computation, computation::kInstructions, written);
  };
  return rewrite(
      module, module::kComputations, [&](std::string &result, const wire::Message &computation) {
        wire::append(result, module::kComputations,
                     rewrite(computation.bytes(), computation::kInstructions, writeInstruction));
      });
}

/// Makes each frame the parent of the next. Numbers count from 1; 0 is none.
static std::string chain(std::string_view frames) {
  uint64_t parent = 0;
  return rewrite(frames, fields::frames::kFrames,
                 [&](std::string &result, const wire::Message &frame) {
                   std::string written = without(fields::frames::kParent, frame.bytes());
                   wire::append(written, fields::frames::kParent, parent++);
                   wire::append(result, fields::frames::kFrames, written);
                 });
}

std::string chainFrames(std::string_view module) {
  return rewrite(module, fields::module::kStackFrames,
                 [](std::string &result, const wire::Message &frames) {
                   wire::append(result, fields::module::kStackFrames, chain(frames.bytes()));
                 });
}

} // namespace hlotag::hlo
