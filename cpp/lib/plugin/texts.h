// SPDX-License-Identifier: Apache-2.0
//
// How do values of options cross between hlotag and a plugin?
#pragma once

#include "hlotag/pass/option.h"
#include "hlotag/plugin/abi.h"

namespace hlotag::plugin {

/// Owns the texts of a value. Moving keeps the pointers.
class Texts {
public:
  explicit Texts(const pass::OptionValue &value) : texts_(pass::toTexts(value)) {
    for (const std::string &text : texts_)
      pointers_.push_back(text.c_str());
    pointers_.push_back(nullptr);
  }
  HlotagTexts raw() const { return pointers_.data(); }

private:
  std::vector<std::string> texts_;
  std::vector<const char *> pointers_;
};

inline std::vector<std::string> copyTexts(HlotagTexts texts) {
  std::vector<std::string> copied;
  for (; *texts; ++texts)
    copied.emplace_back(*texts);
  return copied;
}

} // namespace hlotag::plugin
