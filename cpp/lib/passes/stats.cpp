// SPDX-License-Identifier: Apache-2.0
#include "hlotag/analysis/entries.h"
#include "hlotag/analysis/provenance.h"
#include "hlotag/pass/pass.h"
#include "hlotag/passes/passes.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <tuple>

namespace hlotag::passes {

namespace {

using namespace pass;

class Stats final : public PassBase<Stats> {
public:
  static const PassInfo &staticInfo();
  LogicalResult run(PassContext &ctx) override;

private:
  Option<std::string> output_{options(), "output",
                              "the file to write to; by default a remark on the module"};
};

const PassInfo &Stats::staticInfo() {
  static const PassInfo info{
      "hlotag-stats", "HlotagStats",
      "Count tagged operations, by key, value, kind, phase and function",
      R"md(Reports one JSON object on one line, as a remark on the module or in the file `output`, which the
pass overwrites. The module stays unchanged.

| field | value |
|---|---|
| `ops` | the number of taggable operations: all except modules, functions and terminators |
| `tagged`, `untagged` | the number of operations with and without entries |
| `functions` | the number of functions, including those of nested modules |
| `keys` | by key: `ops`, the number of operations with the key, and `values` |
| `keys.K.values` | by value: `ops`, the number of operations, in total and by kind (`kinds`), phase (`phases`: `forward`, `backward`) and function (`functions`) |

Names are sorted. A value that is not a string is written as MLIR prints it. Bytes that are not valid UTF-8 become
`\udc80` to `\udcff`, as with Python's `surrogateescape`.

For this module:

```mlir
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
  %1 = stablehlo.cosine %0 : tensor<f32>
  return %1 : tensor<f32>
}
```

the report is, on one line:

```json
{"ops": 2, "tagged": 1, "untagged": 1, "functions": 1, "keys": {"k": {"ops": 1, "values":
 {"v": {"ops": 1, "kinds": {"stablehlo.sine": 1}, "phases": {"forward": 1}, "functions": {"main": 1}}}}}}
```)md"};
  return info;
}

/// The number of bytes of the UTF-8 sequence at the start of `text`; 0 if there is none.
size_t lengthOfUtf8(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char first = byte(0);
  size_t length = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (length == 0 || first > 0xF4 || length > text.size())
    return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80)
      return 0;
  // Overlong, a surrogate, or above U+10FFFF.
  bool isBad =
      length > 2 && ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F) ||
                     (first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F));
  return isBad ? 0 : length;
}

/// Quotes any bytes as a JSON string.
std::string quoteJson(std::string_view text) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string result = "\"";
  auto escape = [&](std::string_view prefix, unsigned char byte) {
    result.append(prefix);
    result += digits[byte >> 4];
    result += digits[byte & 15];
  };
  for (size_t i = 0; i < text.size();) {
    auto byte = static_cast<unsigned char>(text[i]);
    size_t length = lengthOfUtf8(text.substr(i));
    if (length == 0)
      escape("\\udc", byte);
    else if (byte == '"' || byte == '\\')
      result.append("\\").append(1, char(byte));
    else if (byte < 0x20 || byte == 0x7F)
      escape("\\u00", byte);
    else
      result.append(text.substr(i, length));
    i += length == 0 ? 1 : length;
  }
  return result + '"';
}

using Counts = std::map<std::string, size_t, std::less<>>;

struct ValueStats {
  size_t numOps = 0;
  Counts kinds, phases, functions;
};

struct KeyStats {
  size_t numOps = 0;
  std::map<std::string, ValueStats, std::less<>> values;
};

std::string toJson(size_t count) { return std::to_string(count); }
std::string toJson(const ValueStats &value);
std::string toJson(const KeyStats &key);

template <class Map> std::string objectOf(const Map &map) {
  std::string text;
  for (const auto &[name, value] : map)
    text.append(text.empty() ? "" : ", ")
        .append(quoteJson(name))
        .append(": ")
        .append(toJson(value));
  return "{" + text + "}";
}

std::string toJson(const ValueStats &value) {
  return ir::concat({"{\"ops\": ", toJson(value.numOps), ", \"kinds\": ", objectOf(value.kinds),
                     ", \"phases\": ", objectOf(value.phases),
                     ", \"functions\": ", objectOf(value.functions), "}"});
}

std::string toJson(const KeyStats &key) {
  return ir::concat(
      {"{\"ops\": ", toJson(key.numOps), ", \"values\": ", objectOf(key.values), "}"});
}

/// Counts operations by (entries, name, function, phase), and makes text once for each.
class Counter {
public:
  explicit Counter(PassContext &ctx) : ctx_(ctx), carrier_(ctx.rewriter(), ctx.tags(), ctx.ids()) {}

  std::string run() {
    count();
    std::map<std::string, KeyStats, std::less<>> keys;
    for (const auto &[kind, count] : counts_)
      add(kind, count, keys);
    return ir::concat({"{\"ops\": ", toJson(numOps_), ", \"tagged\": ", toJson(numTagged_),
                       ", \"untagged\": ", toJson(numOps_ - numTagged_), ", \"functions\": ",
                       toJson(numFunctions_), ", \"keys\": ", objectOf(keys), "}"});
  }

private:
  /// Entries, name, function, and whether it is of the backward pass.
  using Kind = std::tuple<ir::DictionaryAttr, ir::Identifier, ir::Operation, bool>;

  void count();
  void add(const Kind &kind, size_t count, std::map<std::string, KeyStats, std::less<>> &keys);

  PassContext &ctx_;
  analysis::EntryCarrier carrier_;
  std::optional<analysis::Provenance> provenance_; // created at the first tagged operation
  std::map<Kind, size_t> counts_;
  size_t numOps_ = 0, numTagged_ = 0, numFunctions_ = 0;
};

void Counter::count() {
  const ir::OpList &operations = ctx_.operations();
  ir::Operation function; // functions do not nest
  size_t end = 0;         // of the function
  for (size_t i = 0; i < operations.size(); ++i) {
    ir::Operation op = operations[i].op;
    ir::Identifier name = operations[i].name;
    if (name == ctx_.ids().func) {
      ++numFunctions_;
      function = op;
      end = operations.after(i);
    } else if (i == end) {
      function = {};
    }
    if (!carrier_.isTaggable(name))
      continue;
    ++numOps_;
    ir::DictionaryAttr entries = ctx_.tags().get(op);
    if (!entries || entries.empty())
      continue;
    ++numTagged_;
    if (!provenance_)
      provenance_.emplace(ctx_.operations());
    bool isBackward = provenance_->isTransposed(op);
    ++counts_[{entries, name, function, isBackward}];
  }
}

void Counter::add(const Kind &kind, size_t count,
                  std::map<std::string, KeyStats, std::less<>> &keys) {
  auto [entries, name, op, isBackward] = kind;
  std::string opName(name.str()), function;
  if (auto symbol = op ? op.attrOf<ir::StringAttr>(ctx_.ids().symName.str()) : ir::StringAttr())
    function = symbol.value();
  for (ir::NamedAttribute entry : entries) {
    auto text = ir::dynCast<ir::StringAttr>(entry.value);
    std::string value = text ? std::string(text.value()) : entry.value.str();
    KeyStats &key = keys[std::string(entry.name.str())];
    ValueStats &stats = key.values[value];
    key.numOps += count;
    stats.numOps += count;
    stats.kinds[opName] += count;
    stats.phases[isBackward ? "backward" : "forward"] += count;
    stats.functions[function] += count;
  }
}

/// Returns why the file could not be written, or an empty string.
std::string write(const std::string &path, const std::string &text) {
  std::FILE *file = std::fopen(path.c_str(), "wb");
  if (!file)
    return std::strerror(errno);
  bool isWritten = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  // A full disk may show only here.
  bool isClosed = std::fclose(file) == 0;
  return isWritten && isClosed ? "" : std::strerror(errno);
}

LogicalResult Stats::run(PassContext &ctx) {
  std::string json = Counter(ctx).run();
  if (output_->empty()) {
    ctx.emitRemark(ctx.module(), json);
    return success();
  }
  std::string problem = write(*output_, json + '\n');
  if (!problem.empty())
    return ctx.emitError(ctx.module(), "cannot write '" + *output_ + "': " + problem);
  return success();
}

} // namespace

std::unique_ptr<pass::Pass> createStatsPass() { return std::make_unique<Stats>(); }

} // namespace hlotag::passes
