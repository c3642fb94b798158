// SPDX-License-Identifier: Apache-2.0
//
// The readers of ELF and Mach-O files: any bytes are read or refused.
#include "check.h"

#include "hlotag/capi/loader.h"

#include <cstddef>
#include <cstdint>
#include <sys/mman.h>
#include <unistd.h>

using namespace hlotag;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  int file = memfd_create("fuzz", MFD_CLOEXEC);
  fuzz::require(file >= 0 && write(file, data, size) == ssize_t(size), "a file can be made");
  std::string path = "/proc/self/fd/" + std::to_string(file);
  try {
    capi::readSymbols(path, {"mlirIdentifierGet", "mlirOperationGetName", "f", ""});
  } catch (const capi::LoaderError &) { // the other of the two answers
  }
  try {
    capi::buildId(path);
  } catch (const capi::LoaderError &) {
  }
  close(file);
  return 0;
}
