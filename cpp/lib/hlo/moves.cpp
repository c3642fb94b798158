// SPDX-License-Identifier: Apache-2.0
#include "moves.h"

#include <initializer_list>

namespace hlotag::hlo {

namespace {

/// Returns true if an operation has entries and `entries` includes all of them.
bool includesEntriesOf(const Facts &facts, const Entries &entries, int64_t number) {
  const Entries &own = facts.operations.entries(number);
  return !own.empty() && std::includes(entries.begin(), entries.end(), own.begin(), own.end());
}

/// Returns the first of `candidates` that relabels to the dimensions of `i` and shares an entry
/// with it; empty if there is none.
Ids relabelled(const Facts &facts, size_t i, const Ids &candidates) {
  Entries entries = facts.module.attributes(i);
  Ids dimensions = facts.module.dimensions(i);
  auto isShared = [&](const Entries::value_type &entry) {
    auto found = entries.find(entry.first);
    return found != entries.end() && found->second == entry.second;
  };
  for (int64_t number : candidates) {
    const Entries &own = facts.operations.entries(number);
    if (facts.operations.relabels(number) && std::any_of(own.begin(), own.end(), isShared) &&
        facts.operations.dimensions(number) == dimensions)
      return {number};
  }
  return {};
}

/// Returns the operations that no instruction comes from.
Ids operationsGone(const Facts &facts) {
  std::vector<bool> isPresent(facts.operations.size());
  for (size_t i : facts.order)
    for (int64_t number : facts[i].ids)
      isPresent.at(size_t(number)) = true;
  Ids gone;
  for (size_t number = 0; number < isPresent.size(); ++number)
    if (!isPresent[number])
      gone.push_back(int64_t(number));
  return gone;
}

} // namespace

Ids moved(Facts &facts, size_t i) {
  Operations &operations = facts.operations;
  const Ids &named = facts[i].ids;
  Ids wanted =
      operations.ofSize(operations.select(facts[i].wanted, facts.opcode(i)), facts.size(i));
  Ids helpers = operations.helpers(named[0], facts.opcode(i));
  Entries entries = facts.module.attributes(i);
  auto tagged = std::find_if(helpers.begin(), helpers.end(), [&](int64_t number) {
    return includesEntriesOf(facts, entries, number);
  });
  if (tagged != helpers.end())
    std::iter_swap(helpers.begin(), tagged);
  helpers.resize(std::min<size_t>(helpers.size(), 1));
  if (!entries.empty()) {
    bool isRelabelled = facts.kind(i).isRelabelled;
    Ids users = isRelabelled ? relabelled(facts, i, operations.relabellings(named[0])) : Ids();
    for (const Ids *ids : std::initializer_list<const Ids *>{&users, &wanted, &helpers, &named})
      if (!ids->empty() && includesEntriesOf(facts, entries, (*ids)[0]))
        return *ids;
  }
  return !wanted.empty() ? wanted : !helpers.empty() ? helpers : named;
}

void adoptNameless(Facts &facts) {
  std::vector<size_t> nameless;
  for (size_t i : facts.order)
    if (facts[i].ids.empty() && facts.kind(i).isRelabelled &&
        !facts.module.instructions[i].attributes.empty())
      nameless.push_back(i);
  if (nameless.empty())
    return;
  Ids gone = operationsGone(facts);
  for (size_t i : nameless)
    facts[i].ids = relabelled(facts, i, gone);
}

} // namespace hlotag::hlo
