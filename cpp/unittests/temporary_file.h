// SPDX-License-Identifier: Apache-2.0
//
// How does a test write a file?
#pragma once

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <unistd.h>

/// A file that lives as long as the object.
class TemporaryFile {
public:
  explicit TemporaryFile(const std::string &content) {
    char name[] = "/tmp/hlotag_loader_test_XXXXXX";
    int fd = ::mkstemp(name);
    ::close(fd);
    path = name;
    std::ofstream(path, std::ios::binary) << content;
  }
  ~TemporaryFile() { std::remove(path.c_str()); }
  TemporaryFile(const TemporaryFile &) = delete;

  std::string path;
};
