// SPDX-License-Identifier: Apache-2.0
#include "capi/library_file.h"

#ifdef __linux__

#include <elf.h>

namespace hlotag::capi {

namespace {

class ElfFile : public LibraryFile {
public:
  explicit ElfFile(Bytes file) : LibraryFile(std::move(file)) {
    if (bytes.size < EI_NIDENT || std::memcmp(bytes.data, ELFMAG, SELFMAG) != 0)
      bytes.fail("is not an ELF file");
    if (bytes.data[EI_CLASS] != ELFCLASS64)
      bytes.fail("is not a 64-bit ELF file");
    if (bytes.data[EI_DATA] != ELFDATA2LSB)
      bytes.fail("is not a little-endian ELF file");
    header = bytes.read<Elf64_Ehdr>(0, "ELF header");
    if (header.e_type != ET_DYN)
      bytes.fail("is not a shared library (ELF type " + std::to_string(header.e_type) + ")");
    if (header.e_phnum != 0 && header.e_phentsize != sizeof(Elf64_Phdr))
      bytes.fail("has program headers of an unknown size");
    if (header.e_shoff != 0 && header.e_shentsize != sizeof(Elf64_Shdr))
      bytes.fail("has section headers of an unknown size");
  }

  std::vector<Segment> segments() const override;
  bool visitFunctions(const Visitor &visit) const override;
  std::string buildId() const override;

private:
  std::vector<Elf64_Phdr> programHeaders() const {
    return bytes.table<Elf64_Phdr>(header.e_phoff, header.e_phnum, "program header table");
  }
  std::vector<Elf64_Shdr> sections() const;

  Elf64_Ehdr header;
};

std::vector<Elf64_Shdr> ElfFile::sections() const {
  if (header.e_shoff == 0)
    return {};
  std::uint64_t count = header.e_shnum;
  // The number of sections exceeds 16 bits: the size field of the first header has it.
  if (count == 0)
    count = bytes.read<Elf64_Shdr>(header.e_shoff, "section header table").sh_size;
  return bytes.table<Elf64_Shdr>(header.e_shoff, count, "section header table");
}

std::vector<Segment> ElfFile::segments() const {
  std::vector<Segment> loaded;
  for (const Elf64_Phdr &part : programHeaders())
    if (part.p_type == PT_LOAD)
      loaded.push_back(
          {part.p_vaddr, part.p_memsz, part.p_offset, part.p_filesz, (part.p_flags & PF_X) != 0});
  return loaded;
}

/// Returns the full symbol table; in a stripped library, the exported symbols; null without any.
const Elf64_Shdr *findSymbolTable(const std::vector<Elf64_Shdr> &sections) {
  for (Elf64_Word type : {SHT_SYMTAB, SHT_DYNSYM})
    for (const Elf64_Shdr &section : sections)
      if (section.sh_type == type)
        return &section;
  return nullptr;
}

bool ElfFile::visitFunctions(const Visitor &visit) const {
  std::vector<Elf64_Shdr> all = sections();
  const Elf64_Shdr *section = findSymbolTable(all);
  if (!section)
    bytes.fail(noSymbolTable);
  if (section->sh_entsize != sizeof(Elf64_Sym))
    bytes.fail("has symbols of an unknown size");
  if (section->sh_link >= all.size() || all[section->sh_link].sh_type != SHT_STRTAB)
    bytes.fail("has a symbol table without a string table");
  const unsigned char *symbols = bytes.at(section->sh_offset, section->sh_size, "symbol table");
  const Elf64_Shdr &strings = all[section->sh_link];
  std::string_view names = bytes.text(strings.sh_offset, strings.sh_size, "string table");
  for (std::uint64_t i = 0; i < section->sh_size / sizeof(Elf64_Sym); ++i) {
    Elf64_Sym symbol;
    std::memcpy(&symbol, symbols + i * sizeof(symbol), sizeof(symbol));
    bool isDefined = symbol.st_shndx != SHN_UNDEF && symbol.st_name < names.size();
    if (isDefined && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC)
      visit(names.substr(symbol.st_name), symbol.st_value);
  }
  return section->sh_type == SHT_SYMTAB;
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
    if (isGnu && note.n_type == NT_GNU_BUILD_ID && note.n_descsz != 0)
      return hexadecimal(name + nameSize, note.n_descsz);
    notes += total;
    size -= total;
  }
  return {};
}

template <class T> std::string_view viewOf(const T *first, std::size_t count = 1) {
  return {reinterpret_cast<const char *>(first), count * sizeof(T)};
}

std::string ElfFile::buildId() const {
  std::vector<Elf64_Phdr> parts = programHeaders();
  for (const Elf64_Phdr &part : parts) {
    if (part.p_type != PT_NOTE)
      continue;
    const unsigned char *notes = bytes.at(part.p_offset, part.p_filesz, "note segment");
    std::string id = buildIdInNotes(notes, part.p_filesz);
    if (!id.empty())
      return id;
  }
  std::vector<Elf64_Shdr> all = sections();
  std::string headers(viewOf(&header));
  headers += viewOf(parts.data(), parts.size());
  headers += viewOf(all.data(), all.size());
  return layoutId(headers);
}

} // namespace

std::unique_ptr<LibraryFile> readElf(Bytes bytes) {
  return std::make_unique<ElfFile>(std::move(bytes));
}

} // namespace hlotag::capi

#endif
