// SPDX-License-Identifier: Apache-2.0
#include "files.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <random>

namespace hlotag::pass {

namespace {

namespace fs = std::filesystem;

/// Writes `content` with fopen's `mode`; returns 0 or an error number.
int write(const fs::path &path, const char *mode, const std::string &content) {
  std::FILE *file = std::fopen(path.c_str(), mode);
  if (!file)
    return errno;
  bool written = std::fwrite(content.data(), 1, content.size(), file) == content.size();
  int error = written ? 0 : errno;
  // A full disk may show only here.
  if (std::fclose(file) != 0 && !error)
    error = errno;
  return error;
}

fs::path besides(const fs::path &path) {
  std::random_device random;
  std::string name = ".new-" + std::to_string(random()) + "-" + std::to_string(random());
  return path.parent_path() / name;
}

} // namespace

std::string writeAtomically(const std::string &path, const std::string &content) {
  std::error_code ignored;
  fs::file_status old = fs::status(path, ignored);
  bool isOpenFile = path.rfind("/dev/", 0) == 0 || path.rfind("/proc/", 0) == 0;
  if (fs::exists(old) && (isOpenFile || !fs::is_regular_file(old))) {
    int error = write(path, "wb", content);
    return error ? std::strerror(error) : "";
  }
  fs::path target =
      fs::is_symlink(path, ignored) ? fs::weakly_canonical(path, ignored) : fs::path(path);
  fs::path temporary = besides(target);
  if (int error = write(temporary, "wbx", content)) {
    fs::remove(temporary, ignored);
    return std::strerror(error);
  }
  if (fs::exists(old))
    fs::permissions(temporary, old.permissions(), ignored);
  std::error_code failure;
  fs::rename(temporary, target, failure);
  if (failure)
    fs::remove(temporary, ignored);
  return failure ? failure.message() : "";
}

} // namespace hlotag::pass
