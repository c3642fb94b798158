// SPDX-License-Identifier: Apache-2.0
#include "hlotag/hlo/numbering.h"

#include <algorithm>
#include <optional>
#include <string>

namespace hlotag::hlo {

using ir::NameLoc;
using ir::Operation;

namespace {

constexpr char kMark = '\x01';

/// A number in a name, and the text before and after it.
struct Found {
  std::string_view before, digits, after;
};

/// Finds the first number in `name` with `token`; with any token if `token` is empty.
std::optional<Found> findNumber(std::string_view name, std::string_view token = {}) {
  auto endOf = [&](size_t at, auto belongs) {
    while (at < name.size() && belongs(name[at]))
      ++at;
    return at;
  };
  auto isDigit = [](char c) { return c >= '0' && c <= '9'; };
  auto isHex = [&](char c) { return isDigit(c) || (c >= 'a' && c <= 'f'); };
  for (size_t start = name.find(kMark); start != name.npos; start = name.find(kMark, start + 1)) {
    size_t colon = endOf(start + 1, isHex);
    std::string_view found = name.substr(start + 1, colon - start - 1);
    if (found.empty() || name.substr(colon, 1) != ":" || (!token.empty() && found != token))
      continue;
    size_t end = endOf(colon + 1, isDigit);
    if (end == colon + 1 || name.substr(end, 1) != "\x01")
      continue;
    if (name.substr(end + 1, 1) == "/")
      return Found{name.substr(0, start), name.substr(colon + 1, end - colon - 1),
                   name.substr(end + 2)};
  }
  return std::nullopt;
}

/// Removes all numbers, also those of an audit, so that numbering is the same with and without one.
std::string removeAllNumbers(std::string_view name) {
  std::string result;
  auto found = findNumber(name);
  for (; found; found = findNumber(name)) {
    result += found->before;
    name = found->after;
  }
  return result += name;
}

/// Returns the numbers with `token`, in order.
std::vector<int64_t> numbersIn(std::string_view name, std::string_view token) {
  std::vector<int64_t> numbers;
  for (auto found = findNumber(name, token); found; found = findNumber(name, token)) {
    numbers.push_back(std::stoll(std::string(found->digits)));
    name = found->after;
  }
  return numbers;
}

std::vector<std::string_view> split(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  for (size_t end = text.find(separator); end != text.npos; end = text.find(separator)) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + separator.size());
  }
  parts.push_back(text);
  return parts;
}

/// Prepends the caller's name as XLA does: unless `name` begins with it.
std::string inCaller(std::string caller, std::string_view name) {
  if (caller.empty() || name.substr(0, caller.size()) == caller)
    return std::string(name);
  return caller.append(1, '/').append(name);
}

/// Returns the name that XLA gives an operation of inlined functions. Numbers make all names
/// distinct, so XLA kept every caller's name. XLA inlines inner calls first; operations in loops
/// and branches then get the whole path from the program's function.
std::string joinInlined(std::string_view name, std::string_view token) {
  std::vector<std::string> path;
  for (auto found = findNumber(name, token); found; found = findNumber(name, token)) {
    path.emplace_back(found->before);
    name = found->after;
  }
  path.emplace_back(name);
  if (path[0].empty()) // a caller without a number may precede the first number
    path.erase(path.begin());
  for (std::string &part : path)
    if (&part != &path.back() && !part.empty())
      part.pop_back(); // the slash

  std::string root = path[0].substr(0, path[0].find('/')) + '/';
  auto isWhole = [&](const std::string &part) {
    return (part + '/').compare(0, root.size(), root) == 0;
  };
  std::string result;
  for (auto first = path.begin(); first != path.end();) {
    auto end = std::find_if(first + 1, path.end(), isWhole);
    std::string way = *(end - 1);
    for (auto part = end - 1; part != first;)
      way = inCaller(*--part, way);
    result = inCaller(std::move(result), way);
    first = end;
  }
  return result;
}

constexpr int kMaxCombined = 32; // how often XLA combines what it combined

/// Splits the name of combined collectives, `prefix/(a:b)`; empty for other names. XLA writes equal
/// names once, but numbers make all names distinct.
std::vector<std::string> splitCombined(std::string_view name, int depth = 0) {
  std::string first = {'(', kMark};
  size_t open = name.substr(0, first.size()) == first ? 0 : name.find('/' + first) + 1;
  if (depth == kMaxCombined || name.empty() || name.back() != ')' ||
      name.substr(open, first.size()) != first)
    return {};
  std::string_view inside = name.substr(open + first.size(), name.size() - open - first.size() - 1);
  std::vector<std::string> names;
  for (std::string_view part : split(inside, std::string{':', kMark}))
    names.push_back(std::string(name.substr(0, open)).append(1, kMark).append(part));
  return names;
}

bool areEqual(const std::vector<std::string> &names) {
  return std::all_of(names.begin(), names.end(),
                     [&](const auto &name) { return name == names[0]; });
}

/// Returns the length of the path components that all names begin with.
size_t commonPrefix(const std::vector<std::string> &names) {
  size_t common = 0;
  for (size_t slash = names[0].find('/'); slash != names[0].npos;
       slash = names[0].find('/', common)) {
    auto beginsAlike = [&](const std::string &name) {
      return name.compare(0, slash + 1, names[0], 0, slash + 1) == 0;
    };
    if (!std::all_of(names.begin(), names.end(), beginsAlike))
      break;
    common = slash + 1;
  }
  return common;
}

/// Returns the name that XLA gives combined collectives, with their common components once.
std::string combine(const std::vector<std::string> &names) {
  if (areEqual(names))
    return names[0];
  size_t common = commonPrefix(names);
  std::string combined = names[0].substr(0, common) + '(';
  for (const std::string &name : names)
    combined.append(name, common).append(1, ':');
  combined.back() = ')';
  return combined;
}

/// Puts `change(name)` in place of the name of each operation that became the instruction.
template <class Change>
std::string changeNames(std::string_view name, bool isOnePlace, Change change, int depth = 0) {
  std::vector<std::string> names = splitCombined(name, depth);
  bool isCombined = !names.empty();
  if (!isCombined)
    for (std::string_view merged : split(name, ";"))
      names.emplace_back(merged);
  if (names.size() == 1)
    return change(name);
  for (std::string &part : names)
    part = changeNames(part, isOnePlace, change, depth + 1);
  if (isCombined)
    return combine(names);
  return isOnePlace && areEqual(names) ? names[0] : ir::join(names, ";");
}

/// Returns the location with an operation's name, or null. A name `"type:"(...)` around it is the
/// operation's kind, which XLA stores apart.
NameLoc nameOf(ir::Location location) {
  auto name = ir::dynCast<NameLoc>(location);
  bool isType = name && !name.name().str().empty() && name.name().str().back() == ':';
  return isType ? ir::dynCast<NameLoc>(name.child()) : name;
}

bool haveOneLocation(NameLoc a, NameLoc b) {
  return b && a.child() == b.child() &&
         removeAllNumbers(a.name().str()) == removeAllNumbers(b.name().str());
}

/// Returns the only user of the first result of `op`, or null.
Operation onlyUser(Operation op) {
  Operation user;
  for (ir::OpOperand use : op.results()[0].uses()) {
    if (user && use.owner() != user)
      return {};
    user = use.owner();
  }
  return user;
}

} // namespace

std::vector<std::pair<size_t, size_t>> numberNames(ir::Rewriter &rewriter,
                                                   const ir::OpList &operations,
                                                   const ir::OpIds &ids, std::string_view token,
                                                   bool every) {
  ir::PointerMap<size_t> numbers;
  for (size_t i = 1; !every && i < operations.size(); ++i)
    *numbers.insert(operations[i].op.opaque()).first = i - 1;

  std::vector<std::pair<size_t, size_t>> helpers;
  std::string prefix = std::string(1, kMark).append(token) + ':';
  std::string numbered;
  for (size_t i = 1; i < operations.size(); ++i) {
    auto [op, name, numNested, hasRegions] = operations[i];
    // XLA drops the metadata of constants, and invents an instruction name if the name is empty.
    auto location = name == ids.constant ? NameLoc() : nameOf(op.location());
    if (!location || location.name().str().empty())
      continue;
    size_t number = i - 1;
    if (!every && name == ids.broadcast) {
      Operation user = onlyUser(op);
      if (user && haveOneLocation(location, nameOf(user.location()))) {
        number = *numbers.find(user.opaque());
        helpers.emplace_back(i - 1, number);
      }
    }
    numbered.assign(prefix).append(std::to_string(number)).append({kMark, '/'});
    numbered.append(location.name().str());
    // The name directly around a file location is a frame's name, and may also be the operation's.
    ir::Location child = ir::isa<ir::FileLoc>(location.child()) ? location : location.child();
    ir::Location made = NameLoc::get(numbered, child);
    if (location != op.location())
      made = NameLoc::get(ir::dynCast<NameLoc>(op.location()).name().str(), made);
    rewriter.setLocation(op, made);
  }
  return helpers;
}

NumberedName readNumbers(std::string_view name, std::string_view token) {
  auto found = findNumber(name, token);
  if (!found)
    return {};
  if (found->after.find(kMark) == name.npos)
    return {numbersIn(name, token), {}, false};
  NumberedName read;
  read.isCombined = !splitCombined(name).empty();
  changeNames(name, false, [&](std::string_view one) {
    std::vector<int64_t> path = numbersIn(one, token);
    if (path.empty())
      return "";
    if (std::find(read.numbers.begin(), read.numbers.end(), path.back()) == read.numbers.end())
      read.numbers.push_back(path.back());
    read.callers.insert(read.callers.end(), path.begin(), path.end() - 1);
    return "";
  });
  return read;
}

std::string removeNumbers(std::string_view name, std::string_view token, bool isOnePlace) {
  if (!findNumber(name, token))
    return std::string(name);
  return changeNames(name, isOnePlace,
                     [&](std::string_view one) { return joinInlined(one, token); });
}

} // namespace hlotag::hlo
