// SPDX-License-Identifier: Apache-2.0
//
// Where in memory are the C functions of a shared library that does not export them?
//
// jaxlib's library does not export MLIR's C API, but official builds keep the full symbol table.
// Other builds may be stripped and export it. The symbol table is read from the file; the code is
// the copy loaded into this process.
#pragma once

#include "hlotag/capi/loader_error.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hlotag::capi {

/// Returns the offsets, from the library's base address, of the functions in `names` that the
/// symbol table of the file at `path` defines, or that it exports if it was stripped. Leaves out
/// names that are absent, defined twice, or outside the executable segments.
///
/// Throws LoaderError if the file cannot be opened, is not a 64-bit little-endian shared library,
/// is truncated or inconsistent, or was stripped and exports none of them. Reads Mach-O (macOS)
/// everywhere and ELF on Linux.
std::map<std::string, std::uint64_t> readSymbols(const std::string &path,
                                                 const std::vector<std::string_view> &names);

/// Returns an identifier of this build of the library: its GNU build id or Mach-O UUID in
/// hexadecimal or, without one, "layout-" and a hash of its headers. Reads a few kilobytes. Throws
/// LoaderError as readSymbols does.
std::string buildId(const std::string &path);

/// The addresses of a loaded library.
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

/// Finds the file at `path` among the libraries of this process; null if not loaded.
std::optional<LoadedLibrary> findLoaded(const std::string &path);

/// Throws LoaderError unless the loaded code at `offsets` equals that of the file at `path`. An
/// upgrade of a package replaces files while processes use them.
void checkLoadedFrom(const std::string &path, const LoadedLibrary &library,
                     const std::map<std::string, std::uint64_t> &offsets);

/// Fills the table of `table.h` with the functions at `offsets` of the loaded library at `path`.
/// Returns the names of missing functions, those with an offset outside the library's code
/// included. Throws LoaderError if the library is not loaded, or is not the file at `path`.
std::vector<std::string> installFrom(const std::string &path,
                                     const std::map<std::string, std::uint64_t> &offsets);

} // namespace hlotag::capi
