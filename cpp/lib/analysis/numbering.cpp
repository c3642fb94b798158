// SPDX-License-Identifier: Apache-2.0
#include "hlotag/analysis/numbering.h"

#include <algorithm>
#include <optional>
#include <string>

namespace hlotag::analysis {

using ir::NameLoc;
using ir::Operation;

namespace {

constexpr char kMark = '\x01';

/// A number in a name.
struct Found {
  std::string_view before, token, digits, after; // What is before it and after it is text.
};

/// The first number in `name`.
std::optional<Found> findNumber(std::string_view name) {
  auto endOf = [&](size_t at, auto belongs) {
    while (at < name.size() && belongs(name[at]))
      ++at;
    return at;
  };
  auto isDigit = [](char c) { return c >= '0' && c <= '9'; };
  auto isHex = [&](char c) { return isDigit(c) || (c >= 'a' && c <= 'f'); };
  for (size_t start = name.find(kMark); start != name.npos; start = name.find(kMark, start + 1)) {
    size_t colon = endOf(start + 1, isHex);
    if (colon == start + 1 || name.substr(colon, 1) != ":")
      continue;
    size_t end = endOf(colon + 1, isDigit);
    if (end == colon + 1 || name.substr(end, 1) != "\x01")
      continue;
    // What has no name (JAX's call of a helper) has nothing after its number, and XLA joins names
    // without a slash at the end.
    std::string_view after = name.substr(end + 1);
    bool hasName = after.substr(0, 1) == "/";
    if (hasName || after.empty() || after[0] == ';')
      return Found{name.substr(0, start), name.substr(start + 1, colon - start - 1),
                   name.substr(colon + 1, end - colon - 1), after.substr(hasName ? 1 : 0)};
  }
  return std::nullopt;
}

/// A name without numbers: what an audit has numbered is numbered as it will be without one.
std::string plain(std::string_view name) {
  std::string result;
  auto found = findNumber(name);
  for (; found; found = findNumber(name)) {
    result += found->before;
    name = found->after;
  }
  return result += name;
}

/// The numbers with a token, in order.
std::vector<int64_t> numbersIn(std::string_view name, std::string_view token) {
  std::vector<int64_t> numbers;
  for (auto found = findNumber(name); found; found = findNumber(name)) {
    if (found->token == token)
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

/// The name of an operation in inlined functions: those of its callers and its own. XLA does not
/// put a caller's name before one that begins with it; with numbers, none does.
std::string inlinedName(std::string_view name) {
  std::string text = plain(name);
  size_t start = 0, end = 0;
  bool isNamed = true;
  for (auto found = findNumber(name); found; found = findNumber(name)) {
    end += found->before.size();
    name = found->after;
    isNamed = !name.empty();
    std::string_view callers = std::string_view(text).substr(start, end - start);
    if (!callers.empty() && callers.back() == '/')
      callers.remove_suffix(1);
    if (isNamed && text.compare(end, callers.size(), callers) == 0)
      start = end;
  }
  text.erase(0, start);
  if (!isNamed && !text.empty() && text.back() == '/')
    text.pop_back();
  return text;
}

/// XLA writes the names of combined collectives as `/(a:b)` where they differ; ours differ in their
/// numbers.
void uncombine(std::string &name) {
  size_t open = name.rfind("/(");
  if (open == name.npos || name.back() != ')')
    return;
  std::string_view inside(&name[open + 2], name.size() - open - 3);
  std::vector<std::string_view> parts = split(inside, ":");
  bool areEqual =
      parts.size() > 1 && !parts[0].empty() && inside.find_first_of("()") == inside.npos;
  for (std::string_view part : parts)
    areEqual &= part == parts[0];
  if (areEqual)
    name = name.substr(0, open + 1) + std::string(parts[0]);
}

bool haveOneLocation(NameLoc a, NameLoc b) {
  return b && a.child() == b.child() && plain(a.name().str()) == plain(b.name().str());
}

/// The only operation that uses a result of `op`, or null.
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

std::vector<std::pair<size_t, size_t>> numberNames(const ir::OpList &operations,
                                                   const ir::OpIds &ids, std::string_view token,
                                                   bool every) {
  ir::Identifier broadcast =
      ir::Identifier::get(operations[0].op.context(), "stablehlo.broadcast_in_dim");
  ir::PointerMap<size_t> numbers;
  for (size_t i = 1; !every && i < operations.size(); ++i)
    *numbers.insert(operations[i].op.opaque()).first = i - 1;

  std::vector<std::pair<size_t, size_t>> helpers;
  std::string prefix = std::string(1, kMark).append(token) + ':';
  std::string numbered;
  for (size_t i = 1; i < operations.size(); ++i) {
    auto [op, name, numNested, hasRegions] = operations[i];
    // XLA gives constants no metadata, and would make up another instruction name where there is
    // none.
    auto location = name == ids.constant ? NameLoc() : ir::dynCast<NameLoc>(op.location());
    if (!location)
      continue;
    size_t number = i - 1;
    if (!every && name == broadcast) {
      Operation user = onlyUser(op);
      if (user && haveOneLocation(location, ir::dynCast<NameLoc>(user.location()))) {
        number = *numbers.find(user.opaque());
        helpers.emplace_back(i - 1, number);
      } else if (plain(location.name().str()).find('/') == std::string::npos) {
        continue;
      }
    }
    numbered.assign(prefix).append(std::to_string(number)).append({kMark, '/'});
    numbered.append(location.name().str());
    capi::fn().mlirOperationSetLocation(op.raw(), NameLoc::get(numbered, location.child()).raw());
  }
  return helpers;
}

NumberedName readNumbers(std::string_view name, std::string_view token) {
  auto found = findNumber(name);
  if (!found)
    return {};
  if (found->after.find(kMark) == name.npos)
    return {numbersIn(name, token), {}};
  NumberedName read;
  auto addPath = [&](std::vector<int64_t> path) {
    if (path.empty())
      return;
    if (std::find(read.numbers.begin(), read.numbers.end(), path.back()) == read.numbers.end())
      read.numbers.push_back(path.back());
    read.callers.insert(read.callers.end(), path.begin(), path.end() - 1);
  };
  for (std::string_view merged : split(name, ";")) {
    constexpr std::string_view kCombined = "/(\x01", kNext = ":\x01";
    size_t combined = merged.find(kCombined);
    if (combined == merged.npos || combined + kCombined.size() == merged.size()) {
      addPath(numbersIn(merged, token));
      continue;
    }
    std::string callers(merged.substr(0, combined));
    for (std::string_view part : split(merged.substr(combined + kCombined.size()), kNext))
      addPath(numbersIn(callers + "/\x01" + std::string(part), token));
  }
  return read;
}

std::string withoutNumbers(std::string_view name, bool isOnePlace) {
  auto found = findNumber(name);
  if (!found)
    return std::string(name);
  // As most are: one number, in front.
  std::string_view rest = found->after;
  if (found->before.empty() && rest.find(kMark) == rest.npos && rest.find(';') == rest.npos &&
      (rest.empty() || rest.back() != ')'))
    return std::string(rest);
  std::vector<std::string_view> parts = split(name, ";");
  std::string first = inlinedName(parts[0]);
  std::string joined = first;
  bool areEqual = parts.size() > 1;
  for (size_t i = 1; i < parts.size(); ++i) {
    std::string own = inlinedName(parts[i]);
    areEqual &= own == first;
    joined.append(";").append(own);
  }
  if (areEqual && isOnePlace)
    return first;
  uncombine(joined);
  return joined;
}

} // namespace hlotag::analysis
