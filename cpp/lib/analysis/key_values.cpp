// SPDX-License-Identifier: Apache-2.0
#include "hlotag/analysis/key_values.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>

namespace hlotag::analysis {

namespace {

bool isDigit(char c) { return c >= '0' && c <= '9'; }

bool isInteger(std::string_view text) {
  if (!text.empty() && (text[0] == '+' || text[0] == '-'))
    text.remove_prefix(1);
  return !text.empty() && std::all_of(text.begin(), text.end(), isDigit);
}

template <class T> bool fits(std::string_view text) {
  if (!isInteger(text))
    return false;
  text.remove_prefix(text[0] == '+');
  T value = 0;
  return std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc();
}

/// `G`, `G:I` or `:I`.
bool isSchedulingGroup(std::string_view text) {
  size_t colon = text.find(':');
  if (colon == std::string_view::npos)
    return isInteger(text);
  return (colon == 0 || isInteger(text.substr(0, colon))) && isInteger(text.substr(colon + 1));
}

bool isNotEmpty(std::string_view text) { return !text.empty(); }

/// `{{0,1}, {1,2}}`
bool isPairs(std::string_view text) {
  auto take = [&](std::string_view prefix) {
    bool found = text.substr(0, prefix.size()) == prefix;
    text.remove_prefix(found ? prefix.size() : 0);
    return found;
  };
  auto takeAll = [&](std::string_view set) {
    size_t end = std::min(text.find_first_not_of(set), text.size());
    text.remove_prefix(end);
    return end > 0;
  };
  constexpr std::string_view digits = "0123456789", spaces = " \t\n\r\f\v";
  if (!take("{"))
    return false;
  do {
    takeAll(spaces);
    if (!take("{") || !takeAll(digits) || !take(","))
      return false;
    takeAll(spaces);
    if (!takeAll(digits) || !take("}"))
      return false;
  } while (take(","));
  return text == "}";
}

constexpr char kAborts[] = "the GPU compiler would abort the process";
constexpr char kFlag[] = "true, false";

struct Entry {
  std::string_view key;
  std::string_view words; ///< separated by `, `
  bool (*matches)(std::string_view) = nullptr;
  std::string_view text = {}; ///< describes the values that `matches` accepts
  bool ignoresCase = false;
  std::string_view otherwise = {}; ///< how XLA treats other values
};

constexpr Entry kEntries[] = {
    {"_xla_compute_type", "host, dense, sparse, sparseoffload"},
    {"_xla_buffer_placement",
     "pinned_host, unpinned_host, device, pinned_device, vmem",
     nullptr,
     {},
     false,
     "compilation would fail: invalid external annotation"},
    {"_scheduling_group_id", "noop", isSchedulingGroup, "G, G:I, :I (G, I: integers)"},
    {"keep_original_sequence_order_in_group",
     kFlag,
     nullptr,
     {},
     false,
     "the scheduler would take it for false"},
    {"scheduler_hint",
     "force_early, force_delay, force_delay_async",
     nullptr,
     {},
     false,
     "the scheduler would ignore it"},
    {"scheduler_delay_priority", "", fits<int32_t>, "an integer", false,
     "the latency-hiding scheduler would abort the process"},
    {"latency_metadata", "", fits<int64_t>, "an integer"},
    {"_xla_stream_annotation", "collective", fits<int32_t>, "an integer", true, kAborts},
    {"inlineable", "false, true, auto, xla_early, xla_late"},
    {"FUSE_LIMIT", "true", fits<int64_t>, "an integer"},
    {"grad_x", kFlag},
    {"grad_y", kFlag},
    {"collective_group_key", "", isNotEmpty, "text, not empty", false, "XLA would form no group"},
    {"collective_communication_domain", "unspecified, scale_up_fabric"},
    {"is_pipelineable", kFlag},
    {"_xla_collective_matmul", "none, lhs_ag, rhs_ag, rs"},
    {"_xla_send_recv_source_target_pairs", "", isPairs, "{{0,1},...}"},
    {"_xla_send_recv_pipeline", "0, 1"},
    {"_xla_gpu_collective_stream", "p2p"},
    {"_xla_loop_unroll_strategy", "full, double-buffer", nullptr, {}, true, kAborts},
    {"skip-simplify-while-loops_trip-count-one", kFlag},
    {"num_batch_dims", "", fits<int64_t>, "an integer"},
};

bool isWord(std::string_view words, std::string_view value) {
  constexpr std::string_view separator = ", ";
  while (!words.empty()) {
    size_t end = std::min(words.find(separator), words.size());
    if (words.substr(0, end) == value)
      return true;
    words.remove_prefix(std::min(end + separator.size(), words.size()));
  }
  return false;
}

bool isLegal(const Entry &entry, std::string_view value) {
  if (isWord(entry.words, value) || (entry.matches && entry.matches(value)))
    return true;
  if (!entry.ignoresCase)
    return false;
  std::string lower(value);
  for (char &c : lower)
    c = char(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return isWord(entry.words, lower);
}

} // namespace

std::string whyIllegal(std::string_view key, std::string_view value) {
  auto entry = std::find_if(std::begin(kEntries), std::end(kEntries),
                            [&](const Entry &entry) { return entry.key == key; });
  if (entry == std::end(kEntries) || isLegal(*entry, value))
    return {};
  std::string_view separator = entry->words.empty() || entry->text.empty() ? "" : ", ";
  std::string_view otherwise = entry->otherwise.empty()
                                   ? "XLA would ignore it, or fail without naming this line"
                                   : entry->otherwise;
  return "legal values: " + std::string(entry->words) + std::string(separator) +
         std::string(entry->text) + ". With this one " + std::string(otherwise);
}

} // namespace hlotag::analysis
