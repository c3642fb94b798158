// SPDX-License-Identifier: Apache-2.0
//
// The reader of macOS's libraries runs on every system.
#include "hlotag/capi/loader.h"
#include "temporary_file.h"
#include "testing.h"

#include <cstddef>
#include <cstring>
#include <random>

using namespace hlotag::capi;

namespace {

constexpr unsigned char SECTION = 0x0e, PRIVATE_EXTERN = 0x1e, EXPORTED = 0x0f, UNDEFINED = 0x01;
constexpr unsigned char DEBUGGER = 0x24;
constexpr std::size_t headerSize = 32, commandSize = 72 + 72 + 24 + 24;
constexpr std::size_t codeAt = headerSize, uuidAt = headerSize + 144, tableAt = uuidAt + 24;

struct Symbol {
  std::string name;
  std::uint64_t value;
  unsigned char type = PRIVATE_EXTERN;
};

template <class T> void append(std::string &bytes, T value) {
  bytes.append(reinterpret_cast<const char *>(&value), sizeof(value));
}

void appendWords(std::string &bytes, std::initializer_list<std::uint32_t> words) {
  for (std::uint32_t word : words)
    append(bytes, word);
}

template <class T> std::string patched(std::string bytes, std::size_t offset, T value) {
  std::memcpy(&bytes[offset], &value, sizeof(value));
  return bytes;
}

void appendSegment(std::string &bytes, std::uint64_t begin, std::uint64_t end,
                   std::uint32_t protection) {
  appendWords(bytes, {0x19, 72}); // LC_SEGMENT_64
  bytes.append(16, 'n');
  for (std::uint64_t field : {begin, end - begin, std::uint64_t{0}, end - begin})
    append(bytes, field);
  appendWords(bytes, {7, protection, 0, 0});
}

/// A shared library without code: segments of code and of data, an identifier, symbols.
std::string makeMachO(const std::vector<Symbol> &symbols) {
  std::string table;
  std::string strings(1, '\0');
  for (const Symbol &symbol : symbols) {
    append(table, static_cast<std::uint32_t>(strings.size()));
    table += {static_cast<char>(symbol.type), 1, 0, 0};
    append(table, symbol.value);
    strings += symbol.name + '\0';
  }
  std::string bytes;
  appendWords(bytes, {0xfeedfacf, 0x0100000c, 0, 6, 4, commandSize, 0, 0}); // arm64, MH_DYLIB
  appendSegment(bytes, 0x1000, 0x2000, 5);
  appendSegment(bytes, 0x2000, 0x3000, 3);
  appendWords(bytes, {0x1b, 24, 0xefbeadde, 0, 0, 1}); // LC_UUID
  auto symbolsAt = static_cast<std::uint32_t>(headerSize + commandSize);
  auto tableSize = static_cast<std::uint32_t>(table.size());
  appendWords(bytes, {0x2, 24, symbolsAt, static_cast<std::uint32_t>(symbols.size()),
                      symbolsAt + tableSize, static_cast<std::uint32_t>(strings.size())});
  return bytes + table + strings;
}

const std::vector<Symbol> sample = {
    {"_mlirFoo", 0x1010},
    {"_mlirBar", 0x1030, SECTION},
    {"_mlirExported", 0x1038, EXPORTED},
    {"_mlirFooLonger", 0x1040},
    {"mlirUnderscoreless", 0x1050},
    {"_mlirUndefined", 0x1060, UNDEFINED},
    {"_mlirDebugger", 0x1068, DEBUGGER},
    {"_mlirData", 0x2000},
    {"_mlirTwice", 0x1070},
    {"_mlirTwice", 0x1080},
};

std::map<std::string, std::uint64_t> symbolsOf(const std::string &bytes) {
  TemporaryFile file(bytes);
  return readSymbols(file.path, {"mlirFoo", "mlirBar", "mlirExported", "mlirUnderscoreless",
                                 "mlirUndefined", "mlirDebugger", "mlirData", "mlirTwice"});
}

std::string buildIdOf(const std::string &bytes) {
  TemporaryFile file(bytes);
  return buildId(file.path);
}

} // namespace

TEST(macho_finds_functions) {
  std::map<std::string, std::uint64_t> found = symbolsOf(makeMachO(sample));
  CHECK_EQ(found.size(), 3u);
  CHECK_EQ(found["mlirFoo"], 0x1010u);
  CHECK_EQ(found["mlirBar"], 0x1030u);
  CHECK_EQ(found["mlirExported"], 0x1038u);
}

TEST(macho_build_id) {
  std::string good = makeMachO(sample);
  CHECK_EQ(buildIdOf(good), "deadbeef000000000000000001000000");
  std::string without = patched<std::uint32_t>(good, uuidAt, 0x7f);
  CHECK_EQ(buildIdOf(without).substr(0, 7), "layout-");
  CHECK(buildIdOf(patched<std::uint64_t>(without, codeAt + 32, 0x800)) != buildIdOf(without));
}

TEST(macho_says_what_is_wrong) {
  const std::string good = makeMachO(sample);
  auto changed = [&](std::size_t offset, std::uint32_t value) {
    return symbolsOf(patched(good, offset, value));
  };
  CHECK_THROWS(changed(12, 2), LoaderError, "not a shared library (Mach-O type 2)");
  CHECK_THROWS(changed(codeAt + 4, 0), LoaderError, "load command of an unknown size");
  CHECK_THROWS(changed(codeAt + 4, ~0u), LoaderError, "load commands lies beyond the end");
  CHECK_THROWS(changed(tableAt, 0x7f), LoaderError, "no symbol table (it was stripped)");
  CHECK_THROWS(changed(tableAt + 12, ~0u), LoaderError, "symbol table lies beyond the end");
  CHECK_THROWS(changed(tableAt + 20, ~0u), LoaderError, "string table lies beyond the end");
  CHECK_THROWS(symbolsOf(makeMachO({{"_other", 0x1010, EXPORTED}})), LoaderError, "was stripped");
  CHECK_EQ(symbolsOf(makeMachO({{"_other", 0x1010}})).size(), 0u);
}

TEST(macho_survives_truncation) {
  const std::string good = makeMachO(sample);
  // The string table comes last, so every cut must be seen.
  for (std::size_t length = 4; length < good.size(); ++length)
    CHECK_THROWS(symbolsOf(good.substr(0, length)), LoaderError, "truncated");
}

TEST(macho_survives_damage) {
  const std::string good = makeMachO(sample);
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = good;
    for (unsigned change = 0, changes = 1 + random() % 6; change < changes; ++change) {
      std::size_t at = random() % (bytes.size() - 4) & ~3u;
      bytes = patched<std::uint32_t>(bytes, at, random() % 2 ? random() : ~0u - random() % 64);
    }
    try {
      symbolsOf(bytes);
      buildIdOf(bytes);
    } catch (const LoaderError &) { // damage may be an error, but nothing else
    }
  }
}
