// SPDX-License-Identifier: Apache-2.0
//
// What can a caller choose about the run of a pipeline?
#pragma once

#include "hlotag/pass/pass.h"

#include <string>
#include <vector>

namespace hlotag::pass {

struct RunOptions {
  /// Verify what the passes changed: after each sequence of our passes (after each pass when
  /// modules or times are printed), and after each foreign pass.
  bool verify = true;
  /// Passes before or after which the module is printed to stderr; "all" means each.
  std::vector<std::string> printBefore;
  std::vector<std::string> printAfter;
  /// Print the module after each pass that changed it.
  bool printAfterChange = false;
  /// Print the module as a failing pass left it.
  bool printAfterFailure = false;
  /// Record the origin of each entry that our passes add, in `hlotag.origins`.
  bool debugOrigins = false;
  /// Fail if the type of the function `main` changes, as JAX calls it by that type.
  bool keepEntry = false;
  /// What messages and origins call the text that the module was read from.
  std::string source = "-";
  /// Says why a value is illegal for a key, or nothing; null if all are legal.
  ValueCheck whyIllegal;
  /// Print a table of wall times to stderr.
  bool timing = false;

  // How modules are printed.
  bool printModuleScope = false; ///< name the operation in the header, as MLIR does
  bool printDebugInfo = false;
  bool printLocalScope = false;
  bool printGeneric = false;

  bool prints() const {
    return !printBefore.empty() || !printAfter.empty() || printAfterChange || printAfterFailure;
  }
};

} // namespace hlotag::pass
