// SPDX-License-Identifier: Apache-2.0
//
// How do unit tests say what a join finds?
#pragma once

#include "hlotag/hlo/join.h"

#include "hlo_text.h"
#include "testing.h"

namespace hlotag::testing {

/// The instructions that have operations: `dot 0, add 1 2`.
inline std::string joined(const std::string &program, const HloText &text,
                          std::string_view without = {}) {
  hlo::Program of = programOf(program);
  hlo::Module module(text.data);
  std::vector<hlo::Numbers> ids = hlo::join(module, of, hlo::readNames(module, of), without);
  std::string found;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i].empty())
      continue;
    found += (found.empty() ? "" : ", ") + text.names[i];
    for (int64_t number : ids[i])
      found += " " + std::to_string(number);
  }
  return found;
}

/// Checks what a join finds, and what it finds without one of the rules.
inline void checkRule(const char *file, int line, std::string_view rule, const std::string &program,
                      const std::string &module, const std::string &with,
                      const std::string &without) {
  HloText text(module);
  checkEqual(file, line, "with the rule", joined(program, text), with);
  checkEqual(file, line, "without it", joined(program, text, rule), without);
}

} // namespace hlotag::testing

#define CHECK_RULE(...) ::hlotag::testing::checkRule(__FILE__, __LINE__, __VA_ARGS__)
