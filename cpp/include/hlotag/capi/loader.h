// SPDX-License-Identifier: Apache-2.0
//
// Finds C functions that a shared library holds as local symbols.
//
// jaxlib's library exports none of MLIR's C API, but its official builds keep the full symbol
// table. The table is read from the file; the code is the copy that the process has loaded.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace hlotag::capi {

/// The library could not be read, or is not what it has to be. what() names the file and the
/// reason.
class LoaderError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Returns the offsets (from the library's base address) of those functions in `names` that the
/// symbol table of the ELF64 file at `path` defines. A name that is absent, that lies outside of
/// the file's executable segments, or that has several definitions is left out.
///
/// Throws LoaderError if the file cannot be opened, is no little-endian ELF64 shared library, is
/// truncated or inconsistent, or has no symbol table.
std::map<std::string, std::uint64_t> readSymbols(const std::string &path,
                                                 const std::vector<std::string_view> &names);

/// Returns what tells this build of the library from others: its GNU build id in hexadecimal, or,
/// for a file that was linked without one, "layout-" and a hash of its ELF headers. Reads a few
/// kilobytes. Throws LoaderError as readSymbols does.
std::string buildId(const std::string &path);

/// Where a library that this process has loaded lies.
struct LoadedLibrary {
  struct Range {
    std::uint64_t begin;
    std::uint64_t end;
  };
  std::uintptr_t base = 0;
  /// Executable segments, as offsets from `base`.
  std::vector<Range> executable;

  bool isExecutable(std::uint64_t offset) const {
    for (const Range &range : executable)
      if (offset >= range.begin && offset < range.end)
        return true;
    return false;
  }
};

/// Finds the file at `path` among the libraries of this process; null if it is not loaded.
std::optional<LoadedLibrary> findLoaded(const std::string &path);

/// Throws LoaderError unless the code that the process has at `offsets` is what the file at `path`
/// has there. An upgrade of a package replaces files that running processes go on to use.
void checkLoadedFrom(const std::string &path, const LoadedLibrary &library,
                     const std::map<std::string, std::uint64_t> &offsets);

/// The address that a symbol's offset is added to; null if `path` is not loaded.
std::optional<std::uintptr_t> loadedBase(const std::string &path);

} // namespace hlotag::capi
