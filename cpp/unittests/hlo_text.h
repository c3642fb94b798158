// SPDX-License-Identifier: Apache-2.0
//
// How do unit tests write modules and programs? As text, one instruction or operation in a line.
#pragma once

#include "hlo/fields.h"
#include "hlotag/hlo/program.h"
#include "hlotag/hlo/wire.h"

#include <map>
#include <regex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace hlotag::testing {

/// The token in numbers of names. In text, `#3/f/mul` is a name with the number 3.
inline constexpr std::string_view kToken = "ab";

/// The regular expression of a text, compiled once: tests have modules of many lines.
inline const std::regex &regexOf(const std::string &text) {
  static std::map<std::string, std::regex> known;
  return known.try_emplace(text, text).first->second;
}

inline std::vector<std::string> split(const std::string &text, const std::string &separator) {
  std::vector<std::string> parts;
  const std::regex &at = regexOf(separator);
  for (std::sregex_token_iterator part(text.begin(), text.end(), at, -1), end; part != end; ++part)
    if (part->length() != 0)
      parts.push_back(*part);
  return parts;
}

/// A line `NAME = OPCODE[4,8](a, b) calls=c channel=1 index=0 {k=v} "name"`. All after the opcode
/// may be missing.
struct Line {
  explicit Line(const std::string &text) {
    static const std::regex shape(
        R"(\s*([\w.-]+) = ([\w.$-]+)(\[[\d,]*\])?(\([^)]*\))?(.*?)(\{.*\})?\s*("[^"]*")?\s*)");
    std::smatch found;
    if (!std::regex_match(text, found, shape))
      throw std::invalid_argument("not an instruction: " + text);
    name = found[1];
    opcode = found[2];
    for (const std::string &size : split(found[3].str(), "[^\\d]+"))
      dimensions.push_back(std::stoull(size));
    operands = split(found[4].str(), "[(), ]+");
    for (const std::string &field : split(found[5].str(), " "))
      fields[field.substr(0, field.find('='))] = field.substr(field.find('=') + 1);
    for (const std::string &entry : split(found[6].str(), "[{}, ]+"))
      entries[entry.substr(0, entry.find('='))] = entry.substr(entry.find('=') + 1);
    std::string number = std::string("\1").append(kToken).append(":$1\1/");
    opName = std::regex_replace(found[7].str(), regexOf("\"|^\"|\"$"), "");
    opName = std::regex_replace(opName, regexOf("#(\\d+)/"), number);
  }

  std::string name, opcode, opName;
  std::vector<uint64_t> dimensions;
  std::vector<std::string> operands;
  std::map<std::string, std::string> fields;
  hlo::Entries entries;
};

/// A serialized module and the names of its instructions. A line `body:` begins a computation,
/// whose last instruction is its root. The last computation is the entry. All values are `f32`.
class HloText {
public:
  explicit HloText(const std::string &text) {
    for (const std::string &line : split(text, "\n")) {
      if (std::smatch found; std::regex_match(line, found, regexOf(R"(\s*(\w+):\s*)"))) {
        end();
        computations_[found[1]] = computation_ = computations_.size() + 1;
      } else if (line.find_first_not_of(' ') != std::string::npos) {
        add(Line(line));
      }
    }
    end();
    wire::append(data, hlo::fields::module::kEntryId, computations_.size());
  }

  size_t number(const std::string &name) const { return size_t(ids_.at(name) - 1); }

  std::string data;
  std::vector<std::string> names;

private:
  void add(const Line &line) {
    using namespace hlo::fields;
    using wire::append;
    names.push_back(line.name);
    ids_[line.name] = names.size();
    std::string made, type, named, attributes, contracted;
    append(made, instruction::kId, names.size());
    append(made, instruction::kOpcode, line.opcode);
    append(type, shape::kElementType, uint64_t(11)); // F32
    for (uint64_t size : line.dimensions)
      append(type, shape::kDimensions, size);
    if (line.fields.count("scratch"))
      type = withScratch(type, std::stoull(line.fields.at("scratch")));
    append(made, instruction::kShape, type);
    append(named, metadata::kOpName, line.opName);
    append(made, instruction::kMetadata, named);
    for (const std::string &operand : line.operands)
      append(made, instruction::kOperandIds, ids_.at(operand));
    for (const auto &[key, value] : line.entries) {
      std::string entry;
      append(entry, entry::kKey, key);
      append(entry, entry::kValue, value);
      append(attributes, attributes::kMap, entry);
    }
    if (!attributes.empty())
      append(made, instruction::kFrontendAttributes, attributes);
    for (const auto &[field, value] : line.fields) {
      if (field == "calls")
        for (const std::string &name : split(value, ","))
          append(made, instruction::kCalledIds, computations_.at(name));
      else if (field == "channel")
        append(made, instruction::kChannelId, std::stoull(value));
      else if (field == "index")
        append(made,
               line.opcode == "parameter" ? instruction::kParameterNumber
                                          : instruction::kTupleIndex,
               std::stoull(value));
      else if (field == "contracting")
        append(contracted, dot::kLhsContracting, std::stoull(value));
      else if (field == "length")
        append(made, instruction::kFftLength, std::stoull(value));
      else if (field == "window")
        append(made, instruction::kWindow, windowOf(split(value, ",")));
      else if (field == "spatial")
        append(made, instruction::kConvolutionDimensions, spatialOf(std::stoull(value)));
      else if (field == "target")
        append(made, instruction::kTarget, value);
      else if (field == "scratch")
        continue;
      else if (field == "config")
        append(made, instruction::kBackendConfig, value);
      else
        throw std::invalid_argument("no field " + field);
    }
    if (!contracted.empty())
      append(made, instruction::kDotDimensions, contracted);
    append(body_, computation::kInstructions, made);
  }

  /// The shape of a tuple: an array, and scratch memory of this many bytes.
  static std::string withScratch(const std::string &array, uint64_t bytes) {
    using namespace hlo::fields::shape;
    std::string scratch, made;
    wire::append(scratch, kElementType, uint64_t(2)); // S8
    wire::append(scratch, kDimensions, bytes);
    wire::append(made, kElementType, uint64_t(13)); // a tuple
    wire::append(made, kTupleShapes, array);
    wire::append(made, kTupleShapes, scratch);
    return made;
  }

  /// A window of one dimension: its size, stride, padding, dilation and base dilation, as many as
  /// there are.
  static std::string windowOf(const std::vector<std::string> &numbers) {
    using namespace hlo::fields::window;
    constexpr int kFields[] = {kSize, kStride, kPaddingLow, kDilation, kBaseDilation};
    std::string dimension, made;
    for (size_t i = 0; i < numbers.size(); ++i)
      wire::append(dimension, kFields[i], std::stoull(numbers[i]));
    wire::append(made, kDimensions, dimension);
    return made;
  }

  /// The dimensions of a convolution along one dimension of its input and of its result.
  static std::string spatialOf(uint64_t dimension) {
    std::string made;
    wire::append(made, hlo::fields::convolution::kInputSpatial, dimension);
    wire::append(made, hlo::fields::convolution::kOutputSpatial, dimension);
    return made;
  }

  void end() {
    using namespace hlo::fields;
    if (body_.empty())
      return;
    wire::append(body_, computation::kId, computation_);
    wire::append(body_, computation::kRootId, uint64_t(names.size()));
    wire::append(data, module::kComputations, body_);
    body_.clear();
  }

  std::string body_;
  uint64_t computation_ = 0;
  std::map<std::string, uint64_t> ids_, computations_;
};

/// A program: `0 = stablehlo.sine[4](_)`, where `_` is an argument, and the number is that of the
/// line. `helpers=1` and `value=0` are the fields of `Program::Operation`. `result` ends a line
/// whose value the program returns.
inline hlo::Program programOf(const std::string &text) {
  hlo::Program program;
  program.token = kToken;
  for (const std::string &each : split(text, "\n")) {
    if (each.find_first_not_of(' ') == std::string::npos)
      continue;
    Line line(each);
    hlo::Program::Operation made{};
    made.kind = program.kinds.size();
    made.entries = made.value = made.place = program.operations.size();
    program.kinds.emplace_back(line.opcode);
    program.entries.push_back(line.entries);
    made.dimensions.assign(line.dimensions.begin(), line.dimensions.end());
    for (const std::string &operand : line.operands) {
      made.operands.push_back(operand == "_" ? hlo::kNone : std::stoll(operand));
      made.arguments.emplace_back();
    }
    for (const auto &[field, value] : line.fields) {
      if (field == "helpers")
        made.helpers.push_back(std::stoll(value));
      else if (field == "value")
        made.value = std::stoull(value);
      else if (field == "place")
        made.place = std::stoull(value);
      else if (field == "result")
        program.results.push_back(int64_t(program.operations.size()));
      else
        throw std::invalid_argument("no field " + field);
    }
    program.operations.push_back(std::move(made));
  }
  return program;
}

} // namespace hlotag::testing
