// SPDX-License-Identifier: Apache-2.0
#include "hlotag/capi/loader.h"
#include "temporary_file.h"
#include "testing.h"

#if defined(__linux__)

#include <elf.h>

#include <cstddef>
#include <cstring>
#include <random>

using namespace hlotag::capi;

namespace {

constexpr std::uint64_t textBegin = 0x1000;
constexpr std::uint64_t textEnd = 0x2000;

struct Symbol {
  std::string name;
  std::uint64_t value;
  unsigned char type = STT_FUNC;
  std::uint16_t section = 1;
};

template <class T> void append(std::string &bytes, const T &value) {
  bytes.append(reinterpret_cast<const char *>(&value), sizeof(value));
}

template <class T> void patch(std::string &bytes, std::size_t offset, T value) {
  std::memcpy(&bytes[offset], &value, sizeof(value));
}

constexpr std::size_t segmentsAt = sizeof(Elf64_Ehdr);
constexpr std::size_t noteAt = segmentsAt + 2 * sizeof(Elf64_Phdr);

/// A symbol table, and its strings.
std::pair<std::string, std::string> makeTable(const std::vector<Symbol> &symbols) {
  std::string table(sizeof(Elf64_Sym), '\0');
  std::string strings(1, '\0');
  for (const Symbol &symbol : symbols) {
    Elf64_Sym entry{};
    entry.st_name = static_cast<Elf64_Word>(strings.size());
    entry.st_info = ELF64_ST_INFO(STB_LOCAL, symbol.type);
    entry.st_shndx = symbol.section;
    entry.st_value = symbol.value;
    append(table, entry);
    strings += symbol.name;
    strings += '\0';
  }
  return {table, strings};
}

/// A shared library without code: two segments (code, notes), a symbol table, its strings.
std::string makeElf(const std::vector<Symbol> &symbols, bool withBuildId = true) {
  std::string note;
  append(note, Elf64_Nhdr{4, 4, withBuildId ? 3u : 1u});
  note.append("GNU\0\xde\xad\xbe\xef", 8);

  auto [table, strings] = makeTable(symbols);
  std::uint64_t tableAt = noteAt + note.size();
  std::uint64_t stringsAt = tableAt + table.size();
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_type = ET_DYN;
  header.e_phoff = segmentsAt;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 2;
  header.e_shoff = stringsAt + strings.size();
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 3;

  Elf64_Phdr code{};
  code.p_type = PT_LOAD;
  code.p_flags = PF_R | PF_X;
  code.p_vaddr = textBegin;
  code.p_memsz = textEnd - textBegin;
  Elf64_Phdr notes{};
  notes.p_type = PT_NOTE;
  notes.p_offset = noteAt;
  notes.p_filesz = note.size();

  Elf64_Shdr symbolSection{};
  symbolSection.sh_type = SHT_SYMTAB;
  symbolSection.sh_offset = tableAt;
  symbolSection.sh_size = table.size();
  symbolSection.sh_entsize = sizeof(Elf64_Sym);
  symbolSection.sh_link = 2;
  Elf64_Shdr stringSection{};
  stringSection.sh_type = SHT_STRTAB;
  stringSection.sh_offset = stringsAt;
  stringSection.sh_size = strings.size();

  std::string bytes;
  append(bytes, header);
  append(bytes, code);
  append(bytes, notes);
  bytes += note + table + strings;
  append(bytes, Elf64_Shdr{});
  append(bytes, symbolSection);
  append(bytes, stringSection);
  return bytes;
}

const std::vector<Symbol> sample = {
    {"mlirFoo", 0x1010},
    {"other", 0x1020},
    {"mlirBar", 0x1030},
    {"mlirFooLonger", 0x1040},
    {"mlirData", 0x1050, STT_OBJECT},
    {"mlirUndefined", 0x1060, STT_FUNC, SHN_UNDEF},
    {"mlirOutside", 0x2000},
    {"mlirTwice", 0x1070},
    {"mlirTwice", 0x1080},
    {"mlirAgain", 0x1090},
    {"mlirAgain", 0x1090},
};

std::map<std::string, std::uint64_t> symbolsOf(const std::string &bytes) {
  TemporaryFile file(bytes);
  return readSymbols(file.path, {"mlirFoo", "mlirBar", "mlirData", "mlirUndefined", "mlirOutside",
                                 "mlirTwice", "mlirAgain", "mlirAbsent"});
}

std::string buildIdOf(const std::string &bytes) {
  TemporaryFile file(bytes);
  return buildId(file.path);
}

/// Fails the test if a function throws anything but LoaderError.
void readAll(const std::string &bytes) {
  try {
    symbolsOf(bytes);
  } catch (const LoaderError &) {
  }
  try {
    buildIdOf(bytes);
  } catch (const LoaderError &) {
  }
}

std::size_t sectionsAt(const std::string &bytes) {
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  return header.e_shoff;
}

} // namespace

TEST(loader_finds_functions) {
  std::map<std::string, std::uint64_t> found = symbolsOf(makeElf(sample));
  CHECK_EQ(found.size(), 3u);
  CHECK_EQ(found["mlirFoo"], 0x1010u);
  CHECK_EQ(found["mlirBar"], 0x1030u);
  CHECK_EQ(found["mlirAgain"], 0x1090u);
}

TEST(loader_finds_names_without_common_prefix) {
  TemporaryFile file(makeElf(sample));
  CHECK_EQ(readSymbols(file.path, {"mlirFoo", "other"}).size(), 2u);
  CHECK_EQ(readSymbols(file.path, {}).size(), 0u);
  CHECK_EQ(readSymbols(file.path, {""}).size(), 0u);
}

TEST(loader_reads_what_a_stripped_library_exports) {
  auto stripped = [](std::string bytes) {
    patch<Elf64_Word>(bytes, sectionsAt(bytes) + sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_type),
                      SHT_DYNSYM);
    return bytes;
  };
  CHECK_EQ(symbolsOf(stripped(makeElf(sample))).size(), 3u);
  CHECK_THROWS(symbolsOf(stripped(makeElf({{"other", 0x1020}}))), LoaderError, "it was stripped");
}

TEST(loader_build_id) {
  CHECK_EQ(buildIdOf(makeElf(sample)), "deadbeef");
  std::string without = buildIdOf(makeElf(sample, false));
  CHECK_EQ(without.substr(0, 7), "layout-");
  std::vector<Symbol> more = sample;
  more.push_back({"mlirMore", 0x1100});
  CHECK(buildIdOf(makeElf(more, false)) != without);
}

TEST(loader_says_what_is_wrong) {
  const std::string good = makeElf(sample);
  std::string bytes;
  CHECK_THROWS(readSymbols("/nonexistent/lib.so", {"a"}), LoaderError, "cannot be opened");
  CHECK_THROWS(readSymbols("/tmp", {"a"}), LoaderError, "not a regular file");
  CHECK_THROWS(symbolsOf(""), LoaderError, "is empty");
  CHECK_THROWS(symbolsOf("MZ this is something else"), LoaderError, "not an ELF file");
  bytes = good, bytes[EI_CLASS] = ELFCLASS32;
  CHECK_THROWS(symbolsOf(bytes), LoaderError, "not a 64-bit");
  bytes = good, bytes[EI_DATA] = ELFDATA2MSB;
  CHECK_THROWS(symbolsOf(bytes), LoaderError, "not a little-endian");
  bytes = good, patch<Elf64_Half>(bytes, offsetof(Elf64_Ehdr, e_type), ET_EXEC);
  CHECK_THROWS(symbolsOf(bytes), LoaderError, "not a shared library");
  bytes = good, patch<Elf64_Half>(bytes, offsetof(Elf64_Ehdr, e_shentsize), 7);
  CHECK_THROWS(symbolsOf(bytes), LoaderError, "unknown size");
  CHECK_THROWS(symbolsOf(good.substr(0, 40)), LoaderError, "truncated");
  bytes = good, patch<Elf64_Off>(bytes, offsetof(Elf64_Ehdr, e_shoff), 0);
  CHECK_THROWS(symbolsOf(bytes), LoaderError, "stripped");

  std::size_t symbolSection = sectionsAt(good) + sizeof(Elf64_Shdr);
  bytes = good;
  patch<Elf64_Word>(bytes, symbolSection + offsetof(Elf64_Shdr, sh_type), SHT_PROGBITS);
  CHECK_THROWS(symbolsOf(bytes), LoaderError, "stripped");
  bytes = good, patch<Elf64_Word>(bytes, symbolSection + offsetof(Elf64_Shdr, sh_link), 99);
  CHECK_THROWS(symbolsOf(bytes), LoaderError, "without a string table");
  bytes = good, patch<Elf64_Xword>(bytes, symbolSection + offsetof(Elf64_Shdr, sh_entsize), 0);
  CHECK_THROWS(symbolsOf(bytes), LoaderError, "unknown size");
  bytes = good, patch<Elf64_Off>(bytes, symbolSection + offsetof(Elf64_Shdr, sh_offset), ~0ull);
  CHECK_THROWS(symbolsOf(bytes), LoaderError, "beyond the end");
}

TEST(loader_survives_truncation) {
  const std::string good = makeElf(sample);
  for (std::size_t length = 0; length < good.size(); ++length)
    readAll(good.substr(0, length));
  // The section headers come last, so every cut must be seen.
  for (std::size_t cut = 1; cut <= 3 * sizeof(Elf64_Shdr); ++cut)
    CHECK_THROWS(symbolsOf(good.substr(0, good.size() - cut)), LoaderError, "truncated");
}

TEST(loader_survives_damage) {
  const std::string good = makeElf(sample);
  std::mt19937 random(1);
  for (int round = 0; round < 4000; ++round) {
    std::string bytes = good;
    for (unsigned change = 0, changes = 1 + random() % 6; change < changes; ++change) {
      std::size_t at = random() % (bytes.size() - 8);
      switch (random() % 3) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        patch<std::uint64_t>(bytes, at & ~7u, ~std::uint64_t{0} - random() % 64);
        break;
      default:
        patch<std::uint32_t>(bytes, at & ~3u, random());
      }
    }
    readAll(bytes);
  }
}

TEST(loader_survives_names_that_never_end) {
  std::string bytes = makeElf({{"mlirFoo", 0x1010}});
  std::size_t at = bytes.find("mlirFoo");
  bytes[at + 7] = 'X'; // the terminator, the last byte of the string table
  CHECK_EQ(symbolsOf(bytes).count("mlirFoo"), 0u);
}

TEST(loader_finds_loaded_libraries) {
  CHECK(!findLoaded("/nonexistent/lib.so"));
  TemporaryFile file(makeElf(sample));
  CHECK(!findLoaded(file.path));
}

#endif
