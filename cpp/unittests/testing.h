// SPDX-License-Identifier: Apache-2.0
//
// How are unit tests written? `TEST(name) { CHECK(...); }` registers itself. A failed CHECK prints
// its line, and the test goes on.
#pragma once

#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace hlotag::testing {

struct Test {
  const char *name;
  void (*body)();
};

inline std::vector<Test> &tests() {
  static std::vector<Test> all;
  return all;
}

inline int &failures() {
  static int count = 0;
  return count;
}

struct Registration {
  Registration(const char *name, void (*body)()) { tests().push_back({name, body}); }
};

inline void report(const char *file, int line, const std::string &text) {
  std::cerr << file << ":" << line << ": " << text << "\n";
  ++failures();
}

template <class A, class B>
void checkEqual(const char *file, int line, const char *text, const A &a, const B &b) {
  if (a == b)
    return;
  std::ostringstream message;
  message << "CHECK_EQ(" << text << ") failed: " << a << " vs " << b;
  report(file, line, message.str());
}

} // namespace hlotag::testing

#define TEST(name)                                                                                 \
  static void test_##name();                                                                       \
  static ::hlotag::testing::Registration registration_##name(#name, test_##name);                  \
  static void test_##name()

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition))                                                                              \
      ::hlotag::testing::report(__FILE__, __LINE__, "CHECK(" #condition ") failed");               \
  } while (false)

#define CHECK_EQ(a, b) ::hlotag::testing::checkEqual(__FILE__, __LINE__, #a ", " #b, a, b)

/// Checks that `expression` throws `Type` with `text` somewhere in its message.
#define CHECK_THROWS(expression, Type, text)                                                       \
  do {                                                                                             \
    try {                                                                                          \
      (void)(expression);                                                                          \
      ::hlotag::testing::report(__FILE__, __LINE__, #expression " did not throw");                 \
    } catch (const Type &error) {                                                                  \
      if (std::string(error.what()).find(text) == std::string::npos)                               \
        ::hlotag::testing::report(__FILE__, __LINE__,                                              \
                                  std::string(#expression " threw: ") + error.what());             \
    }                                                                                              \
  } while (false)
