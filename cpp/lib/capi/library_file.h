// SPDX-License-Identifier: Apache-2.0
//
// What does the file of a shared library say about its code?
//
// elf.cpp reads Linux's format, and macho.cpp that of macOS. The file's first bytes choose.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hlotag::capi {

/// The bytes of a file. Checks every access against their number.
class Bytes {
public:
  Bytes(std::string path, const unsigned char *data, std::uint64_t size)
      : path(std::move(path)), data(data), size(size) {}

  /// Throws a LoaderError that names the file.
  [[noreturn]] void fail(const std::string &reason) const;

  /// Returns the bytes [offset, offset + length). Throws a LoaderError that names `what` is
  /// missing.
  const unsigned char *at(std::uint64_t offset, std::uint64_t length, const char *what) const;

  std::string_view text(std::uint64_t offset, std::uint64_t length, const char *what) const {
    return {reinterpret_cast<const char *>(at(offset, length, what)), length};
  }

  /// Copies, because a table in the file may be unaligned.
  template <class T> T read(std::uint64_t offset, const char *what) const {
    T value;
    std::memcpy(&value, at(offset, sizeof(T), what), sizeof(T));
    return value;
  }

  template <class T>
  std::vector<T> table(std::uint64_t offset, std::uint64_t count, const char *what) const {
    if (count > size / sizeof(T))
      fail(std::string("is truncated: its ") + what + " is larger than the file");
    std::vector<T> entries(count);
    const unsigned char *first = at(offset, count * sizeof(T), what);
    if (count != 0)
      std::memcpy(entries.data(), first, count * sizeof(T));
    return entries;
  }

  std::string path;
  const unsigned char *data;
  std::uint64_t size;
};

/// A part of the file that is loaded into memory.
struct Segment {
  std::uint64_t address; // from the library's base address
  std::uint64_t size;
  std::uint64_t offset; // in the file
  std::uint64_t fileSize;
  bool isExecutable;
};

/// A shared library. Its functions throw LoaderError where the file is truncated or inconsistent.
class LibraryFile {
public:
  /// Takes the string table from a function's name on, which ends with a zero byte, and the
  /// function's address.
  using Visitor = std::function<void(std::string_view, std::uint64_t)>;

  explicit LibraryFile(Bytes bytes) : bytes(std::move(bytes)) {}
  virtual ~LibraryFile() = default;

  virtual std::vector<Segment> segments() const = 0;

  /// Visits the functions that the symbol table defines. Returns false if the table was stripped of
  /// all that the library does not export. Throws LoaderError if there is no table.
  virtual bool visitFunctions(const Visitor &visit) const = 0;

  /// See `capi::buildId`.
  virtual std::string buildId() const = 0;

  const Bytes bytes;
};

inline constexpr char noSymbolTable[] = "has no symbol table (it was stripped)";

/// Returns `count` bytes in hexadecimal.
std::string hexadecimal(const unsigned char *bytes, std::uint64_t count);

/// Returns "layout-" and a hash. The sizes and offsets in `headers` distinguish builds of a large
/// library.
std::string layoutId(std::string_view headers);

/// Each throws LoaderError if `bytes` are no 64-bit little-endian shared library of that format.
std::unique_ptr<LibraryFile> readElf(Bytes bytes);
std::unique_ptr<LibraryFile> readMachO(Bytes bytes);
bool isMachO(const Bytes &bytes);

} // namespace hlotag::capi
