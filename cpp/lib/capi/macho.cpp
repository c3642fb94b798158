// SPDX-License-Identifier: Apache-2.0
#include "capi/library_file.h"

namespace hlotag::capi {

namespace {

// From Apple's <mach-o/loader.h> and <mach-o/nlist.h>, which other systems lack.
constexpr std::uint32_t MH_MAGIC_64 = 0xfeedfacf, MH_DYLIB = 6;
constexpr std::uint32_t LC_SYMTAB = 0x2, LC_SEGMENT_64 = 0x19, LC_UUID = 0x1b;
constexpr std::uint32_t VM_PROT_EXECUTE = 4;
constexpr unsigned char N_STAB = 0xe0, N_PEXT = 0x10, N_TYPE = 0x0e, N_SECT = 0x0e, N_EXT = 0x01;

struct Header {
  std::uint32_t magic, cpu, cpuSubtype, type, commands, commandsSize, flags, reserved;
};

struct Command {
  std::uint32_t type, size;
};

struct SegmentCommand {
  Command command;
  char name[16];
  std::uint64_t address, size, offset, fileSize;
  std::uint32_t maximalProtection, protection, sections, flags;
};

struct SymbolTableCommand {
  Command command;
  std::uint32_t symbolsAt, symbols, stringsAt, stringsSize;
};

struct UuidCommand {
  Command command;
  unsigned char uuid[16];
};

struct Symbol {
  std::uint32_t name;
  unsigned char type, section;
  std::uint16_t description;
  std::uint64_t value;
};

class MachOFile : public LibraryFile {
public:
  explicit MachOFile(Bytes file) : LibraryFile(std::move(file)) {
    header = bytes.read<Header>(0, "Mach-O header");
    if (header.type != MH_DYLIB)
      bytes.fail("is not a shared library (Mach-O type " + std::to_string(header.type) + ")");
  }

  std::vector<Segment> segments() const override {
    std::vector<Segment> loaded;
    for (const auto &part : commands<SegmentCommand>(LC_SEGMENT_64))
      loaded.push_back({part.address, part.size, part.offset, part.fileSize,
                        (part.protection & VM_PROT_EXECUTE) != 0});
    return loaded;
  }

  bool visitFunctions(const Visitor &visit) const override;

  std::string buildId() const override {
    for (const UuidCommand &found : commands<UuidCommand>(LC_UUID))
      return hexadecimal(found.uuid, sizeof(found.uuid));
    return layoutId(bytes.text(0, sizeof(Header) + header.commandsSize, "load commands"));
  }

private:
  /// Returns the load commands of one type.
  template <class T> std::vector<T> commands(std::uint32_t type) const {
    std::vector<T> found;
    std::uint64_t at = sizeof(Header);
    for (std::uint32_t i = 0; i < header.commands; ++i) {
      auto command = bytes.read<Command>(at, "load commands");
      if (command.size < sizeof(Command))
        bytes.fail("has a load command of an unknown size");
      if (command.type == type)
        found.push_back(bytes.read<T>(at, "load commands"));
      at += command.size;
    }
    return found;
  }

  Header header;
};

/// Takes each symbol of an executable section for a function: Mach-O does not mark functions.
bool MachOFile::visitFunctions(const Visitor &visit) const {
  std::vector<SymbolTableCommand> tables = commands<SymbolTableCommand>(LC_SYMTAB);
  if (tables.empty())
    bytes.fail(noSymbolTable);
  const SymbolTableCommand &table = tables.front();
  const std::uint64_t size = std::uint64_t{table.symbols} * sizeof(Symbol);
  const unsigned char *symbols = bytes.at(table.symbolsAt, size, "symbol table");
  std::string_view names = bytes.text(table.stringsAt, table.stringsSize, "string table");
  bool hasLocals = false;
  for (std::uint64_t i = 0; i < table.symbols; ++i) {
    Symbol symbol;
    std::memcpy(&symbol, symbols + i * sizeof(symbol), sizeof(symbol));
    if ((symbol.type & N_STAB) != 0 || (symbol.type & N_TYPE) != N_SECT)
      continue;
    hasLocals |= (symbol.type & N_EXT) == 0 || (symbol.type & N_PEXT) != 0;
    // Names of C functions begin with an underscore here.
    if (symbol.name < names.size() && names[symbol.name] == '_')
      visit(names.substr(symbol.name + std::size_t{1}), symbol.value);
  }
  return hasLocals;
}

} // namespace

bool isMachO(const Bytes &bytes) {
  std::uint32_t magic = 0;
  if (bytes.size >= sizeof(magic))
    std::memcpy(&magic, bytes.data, sizeof(magic));
  return magic == MH_MAGIC_64;
}

std::unique_ptr<LibraryFile> readMachO(Bytes bytes) {
  return std::make_unique<MachOFile>(std::move(bytes));
}

} // namespace hlotag::capi
