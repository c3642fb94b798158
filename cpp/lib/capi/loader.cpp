// SPDX-License-Identifier: Apache-2.0
#include "hlotag/capi/loader.h"

#include "capi/library_file.h"
#include "hlotag/capi/table.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <set>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __linux__
#include <link.h>
#endif
#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

namespace hlotag::capi {

namespace {

[[noreturn]] void fail(const std::string &path, const std::string &reason) {
  throw LoaderError(path + ": " + reason);
}

/// Maps a whole file for reading. Only the pages of the symbol and string tables are loaded.
class Mapping {
public:
  explicit Mapping(const std::string &path) {
    int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0)
      fail(path, std::string("cannot be opened: ") + std::strerror(errno));
    struct stat info;
    bool isRegular = ::fstat(file, &info) == 0 && S_ISREG(info.st_mode);
    size = isRegular ? static_cast<std::uint64_t>(info.st_size) : 0;
    void *address = size ? ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0) : nullptr;
    int error = errno;
    ::close(file);
    if (size == 0)
      fail(path, isRegular ? "is empty" : "is not a regular file");
    if (address == MAP_FAILED)
      fail(path, std::string("cannot be mapped: ") + std::strerror(error));
    data = static_cast<const unsigned char *>(address);
  }
  ~Mapping() { ::munmap(const_cast<unsigned char *>(data), size); }
  Mapping(const Mapping &) = delete;
  Mapping &operator=(const Mapping &) = delete;

  const unsigned char *data = nullptr;
  std::uint64_t size = 0;
};

/// A library's file while it is mapped.
class OpenLibrary {
public:
  explicit OpenLibrary(const std::string &path) : mapping(path) {
    Bytes bytes(path, mapping.data, mapping.size);
#ifdef __linux__
    file = isMachO(bytes) ? readMachO(std::move(bytes)) : readElf(std::move(bytes));
#else
    if (!isMachO(bytes))
      bytes.fail("is not a 64-bit Mach-O file");
    file = readMachO(std::move(bytes));
#endif
  }
  const LibraryFile *operator->() const { return file.get(); }

private:
  Mapping mapping;
  std::unique_ptr<LibraryFile> file;
};

std::vector<LoadedLibrary::Range> executableRanges(const std::vector<Segment> &segments) {
  std::vector<LoadedLibrary::Range> ranges;
  for (const Segment &segment : segments)
    if (segment.isExecutable && segment.size <= UINT64_MAX - segment.address)
      ranges.push_back({segment.address, segment.address + segment.size});
  return ranges;
}

/// Compares inodes: the dynamic linker's path may contain links and "..".
bool isSameFile(const char *path, const struct stat &wanted) {
  struct stat status;
  return path && ::stat(path, &status) == 0 && status.st_dev == wanted.st_dev &&
         status.st_ino == wanted.st_ino;
}

#if defined(__linux__)

struct Search {
  const struct stat *wanted;
  std::optional<LoadedLibrary> result;
};

int visitLibrary(dl_phdr_info *info, std::size_t, void *data) {
  auto *search = static_cast<Search *>(data);
  if (!isSameFile(info->dlpi_name, *search->wanted))
    return 0;
  std::vector<Segment> segments;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) &part = info->dlpi_phdr[i];
    if (part.p_type == PT_LOAD)
      segments.push_back({part.p_vaddr, part.p_memsz, 0, 0, (part.p_flags & PF_X) != 0});
  }
  search->result = LoadedLibrary{info->dlpi_addr, executableRanges(segments)};
  return 1;
}

std::optional<LoadedLibrary> findLoaded(const struct stat &wanted) {
  Search search{&wanted, std::nullopt};
  ::dl_iterate_phdr(visitLibrary, &search);
  return std::move(search.result);
}

#elif defined(__APPLE__)

std::optional<LoadedLibrary> findLoaded(const struct stat &wanted) {
  for (std::uint32_t i = 0; i < _dyld_image_count(); ++i) {
    const char *path = _dyld_get_image_name(i);
    if (!isSameFile(path, wanted))
      continue;
    const auto *header = reinterpret_cast<const mach_header_64 *>(_dyld_get_image_header(i));
    Bytes loaded(path, reinterpret_cast<const unsigned char *>(header),
                 sizeof(*header) + header->sizeofcmds);
    return LoadedLibrary{static_cast<std::uintptr_t>(_dyld_get_image_vmaddr_slide(i)),
                         executableRanges(readMachO(std::move(loaded))->segments())};
  }
  return std::nullopt;
}

#endif

} // namespace

std::map<std::string, std::uint64_t> readSymbols(const std::string &path,
                                                 const std::vector<std::string_view> &names) {
  OpenLibrary library(path);
  LoadedLibrary layout;
  layout.executable = executableRanges(library->segments());
  std::map<std::string_view, std::set<std::uint64_t>> found;
  for (std::string_view name : names)
    found[name];
  bool isFull = library->visitFunctions([&](std::string_view text, std::uint64_t address) {
    auto wanted = found.find(text.substr(0, text.find('\0')));
    if (wanted != found.end() && layout.isExecutable(address))
      wanted->second.insert(address);
  });
  std::map<std::string, std::uint64_t> offsets;
  for (const auto &[name, addresses] : found)
    if (addresses.size() == 1)
      offsets.emplace(name, *addresses.begin());
  if (offsets.empty() && !isFull)
    fail(path, noSymbolTable);
  return offsets;
}

std::string buildId(const std::string &path) { return OpenLibrary(path)->buildId(); }

void checkLoadedFrom(const std::string &path, const LoadedLibrary &library,
                     const std::map<std::string, std::uint64_t> &offsets) {
  constexpr std::uint64_t compared = 32; // bytes of each function
  OpenLibrary file(path);
  std::vector<Segment> segments = file->segments();
  for (const auto &[name, offset] : offsets) {
    auto holds = [offset = offset](const Segment &segment) {
      return offset >= segment.address && offset - segment.address < segment.fileSize;
    };
    auto segment = std::find_if(segments.begin(), segments.end(), holds);
    bool isSame = segment != segments.end() && library.isExecutable(offset);
    if (isSame) {
      std::uint64_t at = offset - segment->address;
      std::uint64_t size = std::min(compared, segment->fileSize - at);
      const unsigned char *code = file->bytes.at(segment->offset + at, size, "code");
      isSame = std::memcmp(code, reinterpret_cast<const void *>(library.base + offset), size) == 0;
    }
    if (!isSame)
      fail(path, "is not the file that this process has loaded (" + name +
                     " differs): it was replaced since; restart the process");
  }
}

std::optional<LoadedLibrary> findLoaded(const std::string &path) {
  struct stat wanted;
  if (::stat(path.c_str(), &wanted) != 0)
    return std::nullopt;
  return findLoaded(wanted);
}

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

} // namespace hlotag::capi
