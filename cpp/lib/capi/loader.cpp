// SPDX-License-Identifier: Apache-2.0
#include "hlotag/capi/loader.h"

#include "hlotag/capi/table.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <unordered_map>

#if defined(__linux__)
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace hlotag::capi {

std::vector<std::string> installFrom(const std::string &path,
                                     const std::map<std::string, std::uint64_t> &offsets) {
  std::optional<LoadedLibrary> library = findLoaded(path);
  if (!library)
    throw LoaderError(path + ": this process has not loaded it");
  std::map<std::string, std::uint64_t> inside;
  for (const auto &[name, offset] : offsets)
    if (library->isExecutable(offset))
      inside.emplace(name, offset);
  checkLoadedFrom(path, *library, inside);
  return install([&](std::string_view name) -> void * {
    auto found = inside.find(std::string(name));
    return found == inside.end() ? nullptr
                                 : reinterpret_cast<void *>(library->base + found->second);
  });
}

#if defined(__linux__)

namespace {

[[noreturn]] void fail(const std::string &path, const std::string &reason) {
  throw LoaderError(path + ": " + reason);
}

/// Owns a file descriptor.
class File {
public:
  explicit File(const std::string &path) : fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd < 0)
      fail(path, std::string("cannot be opened: ") + std::strerror(errno));
    struct stat info;
    bool known = ::fstat(fd, &info) == 0;
    if (known && S_ISREG(info.st_mode)) {
      size = static_cast<std::uint64_t>(info.st_size);
      return;
    }
    ::close(fd);
    fail(path, "is not a regular file");
  }
  ~File() { ::close(fd); }
  File(const File &) = delete;
  File &operator=(const File &) = delete;

  int fd;
  std::uint64_t size = 0;
};

/// Maps a whole file for reading. Only the pages of the symbol and string tables are loaded.
class Mapping {
public:
  Mapping(const std::string &path, const File &file) : size(file.size) {
    if (size == 0)
      fail(path, "is empty");
    void *address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
    if (address == MAP_FAILED)
      fail(path, std::string("cannot be mapped: ") + std::strerror(errno));
    data = static_cast<const unsigned char *>(address);
  }
  ~Mapping() { ::munmap(const_cast<unsigned char *>(data), size); }
  Mapping(const Mapping &) = delete;
  Mapping &operator=(const Mapping &) = delete;

  const unsigned char *data;
  std::uint64_t size;
};

/// A view of an ELF64 file. Checks every access against the file's size.
class ElfFile {
public:
  ElfFile(const std::string &path, const Mapping &mapping) : path(path), mapping(mapping) {
    if (mapping.size < EI_NIDENT || std::memcmp(mapping.data, ELFMAG, SELFMAG) != 0)
      fail(path, "is not an ELF file");
    if (mapping.data[EI_CLASS] != ELFCLASS64)
      fail(path, "is not a 64-bit ELF file");
    if (mapping.data[EI_DATA] != ELFDATA2LSB)
      fail(path, "is not a little-endian ELF file");
    header = read<Elf64_Ehdr>(0, "ELF header");
    if (header.e_type != ET_DYN)
      fail(path, "is not a shared library (ELF type " + std::to_string(header.e_type) + ")");
    if (header.e_phnum != 0 && header.e_phentsize != sizeof(Elf64_Phdr))
      fail(path, "has program headers of an unknown size");
    if (header.e_shoff != 0 && header.e_shentsize != sizeof(Elf64_Shdr))
      fail(path, "has section headers of an unknown size");
  }

  /// Returns the bytes [offset, offset + size). Throws a LoaderError that names `what` is missing.
  const unsigned char *bytes(std::uint64_t offset, std::uint64_t size, const char *what) const {
    if (offset > mapping.size || size > mapping.size - offset)
      fail(path, std::string("is truncated: its ") + what + " lies beyond the end of the file");
    return mapping.data + offset;
  }

  /// Copies, because a table in the file may be unaligned.
  template <class T> T read(std::uint64_t offset, const char *what) const {
    T value;
    std::memcpy(&value, bytes(offset, sizeof(T), what), sizeof(T));
    return value;
  }

  std::vector<Elf64_Phdr> segments() const {
    return table<Elf64_Phdr>(header.e_phoff, header.e_phnum, "program header table");
  }

  std::vector<Elf64_Shdr> sections() const {
    if (header.e_shoff == 0)
      return {};
    std::uint64_t count = header.e_shnum;
    // The number of sections exceeds 16 bits: the size field of the first header has it.
    if (count == 0)
      count = read<Elf64_Shdr>(header.e_shoff, "section header table").sh_size;
    return table<Elf64_Shdr>(header.e_shoff, count, "section header table");
  }

  const std::string &path;
  Elf64_Ehdr header;

private:
  template <class T>
  std::vector<T> table(std::uint64_t offset, std::uint64_t count, const char *what) const {
    if (count > mapping.size / sizeof(T))
      fail(path, std::string("is truncated: its ") + what + " is larger than the file");
    std::vector<T> entries(count);
    const unsigned char *data = bytes(offset, count * sizeof(T), what);
    if (count != 0)
      std::memcpy(entries.data(), data, count * sizeof(T));
    return entries;
  }

  const Mapping &mapping;
};

std::vector<LoadedLibrary::Range> executableRanges(const Elf64_Phdr *begin, std::size_t count) {
  std::vector<LoadedLibrary::Range> ranges;
  for (std::size_t i = 0; i < count; ++i) {
    const Elf64_Phdr &segment = begin[i];
    if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X))
      continue;
    if (segment.p_memsz > UINT64_MAX - segment.p_vaddr)
      continue;
    ranges.push_back({segment.p_vaddr, segment.p_vaddr + segment.p_memsz});
  }
  return ranges;
}

/// A symbol table and its string table. It is full, or of a stripped library's exports.
struct SymbolTable {
  bool isFull;
  const unsigned char *symbols;
  std::uint64_t count;
  const char *strings;
  std::uint64_t stringsSize;
};

SymbolTable readTable(const ElfFile &elf, const std::vector<Elf64_Shdr> &sections,
                      const Elf64_Shdr &section) {
  if (section.sh_entsize != sizeof(Elf64_Sym))
    fail(elf.path, "has symbols of an unknown size");
  if (section.sh_link >= sections.size() || sections[section.sh_link].sh_type != SHT_STRTAB)
    fail(elf.path, "has a symbol table without a string table");
  const Elf64_Shdr &strings = sections[section.sh_link];
  SymbolTable table;
  table.isFull = section.sh_type == SHT_SYMTAB;
  table.symbols = elf.bytes(section.sh_offset, section.sh_size, "symbol table");
  table.count = section.sh_size / sizeof(Elf64_Sym);
  table.strings =
      reinterpret_cast<const char *>(elf.bytes(strings.sh_offset, strings.sh_size, "string table"));
  table.stringsSize = strings.sh_size;
  return table;
}

constexpr char stripped[] = "has no symbol table (it was stripped)";

/// Returns the full symbol table; in a stripped library, the exported symbols if there are any.
SymbolTable findSymbolTable(const ElfFile &elf) {
  std::vector<Elf64_Shdr> sections = elf.sections();
  for (Elf64_Word type : {SHT_SYMTAB, SHT_DYNSYM})
    for (const Elf64_Shdr &section : sections)
      if (section.sh_type == type)
        return readTable(elf, sections, section);
  fail(elf.path, stripped);
}

/// Returns the build id in a PT_NOTE segment; empty if it has none.
std::string buildIdInNotes(const unsigned char *notes, std::uint64_t size) {
  auto padded = [](std::uint64_t n) { return (n + 3) & ~std::uint64_t{3}; };
  while (size >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes, sizeof(note));
    std::uint64_t nameSize = padded(note.n_namesz);
    std::uint64_t total = sizeof(note) + nameSize + padded(note.n_descsz);
    if (total > size)
      return {};
    const unsigned char *name = notes + sizeof(note);
    bool isGnu = note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0;
    if (isGnu && note.n_type == NT_GNU_BUILD_ID && note.n_descsz != 0) {
      static const char digits[] = "0123456789abcdef";
      std::string text;
      for (std::uint64_t i = 0; i < note.n_descsz; ++i) {
        unsigned char byte = name[nameSize + i];
        text += digits[byte >> 4];
        text += digits[byte & 15];
      }
      return text;
    }
    notes += total;
    size -= total;
  }
  return {};
}

class Fnv1a {
public:
  void add(const void *data, std::size_t size) {
    const auto *bytes = static_cast<const unsigned char *>(data);
    for (std::size_t i = 0; i < size; ++i)
      hash = (hash ^ bytes[i]) * 0x100000001b3u;
  }
  std::string hex() const {
    static const char digits[] = "0123456789abcdef";
    std::string text(16, '0');
    for (int i = 0; i < 16; ++i)
      text[i] = digits[(hash >> (60 - 4 * i)) & 15];
    return text;
  }

private:
  std::uint64_t hash = 0xcbf29ce484222325u;
};

} // namespace

std::map<std::string, std::uint64_t> readSymbols(const std::string &path,
                                                 const std::vector<std::string_view> &names) {
  File file(path);
  Mapping mapping(path, file);
  ElfFile elf(path, mapping);
  std::vector<Elf64_Phdr> segments = elf.segments();
  LoadedLibrary layout;
  layout.executable = executableRanges(segments.data(), segments.size());
  SymbolTable table = findSymbolTable(elf);

  struct Found {
    std::uint64_t offset = 0;
    int definitions = 0;
  };
  std::unordered_map<std::string_view, Found> wanted;
  // Hash only names with the common prefix of the wanted ones ("mlir"): a library has 700,000
  // names.
  std::string_view prefix = names.empty() ? std::string_view() : names.front();
  std::size_t longest = 0;
  for (std::string_view name : names) {
    wanted.emplace(name, Found());
    longest = std::max(longest, name.size());
    std::size_t common = 0;
    while (common < prefix.size() && common < name.size() && prefix[common] == name[common])
      ++common;
    prefix = prefix.substr(0, common);
  }

  for (std::uint64_t i = 0; i < table.count; ++i) {
    Elf64_Sym symbol;
    std::memcpy(&symbol, table.symbols + i * sizeof(symbol), sizeof(symbol));
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF)
      continue;
    if (symbol.st_name >= table.stringsSize)
      continue;
    const char *text = table.strings + symbol.st_name;
    std::uint64_t room = table.stringsSize - symbol.st_name;
    if (room <= prefix.size() || std::string_view(text, prefix.size()) != prefix)
      continue;
    std::size_t length = ::strnlen(text, std::min<std::uint64_t>(room, longest + 1));
    if (length > longest || length == room)
      continue;
    auto it = wanted.find(std::string_view(text, length));
    if (it == wanted.end() || !layout.isExecutable(symbol.st_value))
      continue;
    Found &found = it->second;
    if (found.definitions != 0 && found.offset == symbol.st_value)
      continue;
    found.offset = symbol.st_value;
    ++found.definitions;
  }

  std::map<std::string, std::uint64_t> offsets;
  for (const auto &[name, found] : wanted)
    if (found.definitions == 1)
      offsets.emplace(name, found.offset);
  if (offsets.empty() && !table.isFull)
    fail(path, stripped);
  return offsets;
}

std::string buildId(const std::string &path) {
  File file(path);
  Mapping mapping(path, file);
  ElfFile elf(path, mapping);
  std::vector<Elf64_Phdr> segments = elf.segments();
  for (const Elf64_Phdr &segment : segments) {
    if (segment.p_type != PT_NOTE)
      continue;
    const unsigned char *notes = elf.bytes(segment.p_offset, segment.p_filesz, "note segment");
    std::string id = buildIdInNotes(notes, segment.p_filesz);
    if (!id.empty())
      return id;
  }
  // The sizes and offsets of all segments and sections distinguish builds of a large library.
  std::vector<Elf64_Shdr> sections = elf.sections();
  Fnv1a hash;
  hash.add(&elf.header, sizeof(elf.header));
  hash.add(segments.data(), segments.size() * sizeof(Elf64_Phdr));
  hash.add(sections.data(), sections.size() * sizeof(Elf64_Shdr));
  return "layout-" + hash.hex();
}

namespace {

struct Search {
  const struct stat *wanted;
  std::optional<LoadedLibrary> result;
};

int visitLibrary(dl_phdr_info *info, std::size_t, void *data) {
  auto *search = static_cast<Search *>(data);
  if (!info->dlpi_name || info->dlpi_name[0] == '\0')
    return 0;
  // Compare inodes: the linker's path may contain links and "..".
  struct stat status;
  if (::stat(info->dlpi_name, &status) != 0)
    return 0;
  if (status.st_dev != search->wanted->st_dev || status.st_ino != search->wanted->st_ino)
    return 0;
  LoadedLibrary library;
  library.base = info->dlpi_addr;
  library.executable = executableRanges(info->dlpi_phdr, info->dlpi_phnum);
  search->result = std::move(library);
  return 1;
}

} // namespace

void checkLoadedFrom(const std::string &path, const LoadedLibrary &library,
                     const std::map<std::string, std::uint64_t> &offsets) {
  constexpr std::uint64_t compared = 32; // bytes of each function
  File file(path);
  Mapping mapping(path, file);
  ElfFile elf(path, mapping);
  std::vector<Elf64_Phdr> segments = elf.segments();
  for (const auto &[name, offset] : offsets) {
    auto holds = [offset = offset](const Elf64_Phdr &segment) {
      return segment.p_type == PT_LOAD && offset >= segment.p_vaddr &&
             offset - segment.p_vaddr < segment.p_filesz;
    };
    auto segment = std::find_if(segments.begin(), segments.end(), holds);
    bool isSame = segment != segments.end() && library.isExecutable(offset);
    if (isSame) {
      std::uint64_t at = offset - segment->p_vaddr;
      std::uint64_t size = std::min(compared, segment->p_filesz - at);
      const unsigned char *code = elf.bytes(segment->p_offset + at, size, "code");
      isSame = std::memcmp(code, reinterpret_cast<const void *>(library.base + offset), size) == 0;
    }
    if (!isSame)
      fail(path, "is not what this process has loaded (" + name +
                     " differs): it was replaced since; restart the process");
  }
}

std::optional<LoadedLibrary> findLoaded(const std::string &path) {
  struct stat wanted;
  if (::stat(path.c_str(), &wanted) != 0)
    return std::nullopt;
  Search search{&wanted, std::nullopt};
  ::dl_iterate_phdr(visitLibrary, &search);
  return std::move(search.result);
}

#else

std::map<std::string, std::uint64_t> readSymbols(const std::string &path,
                                                 const std::vector<std::string_view> &) {
  throw LoaderError(path + ": symbol tables are read on Linux only");
}

std::string buildId(const std::string &path) {
  throw LoaderError(path + ": symbol tables are read on Linux only");
}

std::optional<LoadedLibrary> findLoaded(const std::string &) { return std::nullopt; }

void checkLoadedFrom(const std::string &path, const LoadedLibrary &,
                     const std::map<std::string, std::uint64_t> &) {
  throw LoaderError(path + ": symbol tables are read on Linux only");
}

#endif

} // namespace hlotag::capi
