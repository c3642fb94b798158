// SPDX-License-Identifier: Apache-2.0
//
// How does the loader report a library that it cannot use?
#pragma once

#include <stdexcept>

namespace hlotag::capi {

/// A library cannot be read or used. what() names the file and the reason.
class LoaderError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

} // namespace hlotag::capi
