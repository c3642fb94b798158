// SPDX-License-Identifier: Apache-2.0
#include "testing.h"

#include <cstring>
#include <exception>

/// Runs all tests, or those whose name contains the first argument.
int main(int argc, char **argv) {
  using namespace hlotag::testing;
  int failed = 0;
  int passed = 0;
  for (const Test &test : tests()) {
    if (argc > 1 && !std::strstr(test.name, argv[1]))
      continue;
    int before = failures();
    try {
      test.body();
    } catch (const std::exception &error) {
      report(test.name, 0, std::string("uncaught exception: ") + error.what());
    }
    bool ok = failures() == before;
    ok ? ++passed : ++failed;
    if (!ok)
      std::cerr << "FAILED " << test.name << "\n";
  }
  std::cout << "C++ unit tests: " << passed << " passed, " << failed << " failed\n";
  return failed == 0 && passed > 0 ? 0 : 1;
}
