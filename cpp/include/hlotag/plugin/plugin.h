// SPDX-License-Identifier: Apache-2.0
//
// A plugin with passes in C++. In one of its source files, with the classes of its passes:
//
//     HLOTAG_PASS_PLUGIN("my-passes", "1.0", MyPass, MyOtherPass)
//
// It is compiled together with the sources in hlotag/src, which are the classes that passes are
// made of; only the C functions of abi.h cross between it and hlotag.
#pragma once

#include "hlotag/pass/pass.h"
#include "hlotag/plugin/abi.h"

#include <vector>

namespace hlotag::plugin {

using Factory = std::unique_ptr<pass::Pass> (*)();

template <class Pass> std::unique_ptr<pass::Pass> create() { return std::make_unique<Pass>(); }

/// Tells the host about a pass of each factory. The factories live as long as the plugin.
void registerPasses(const HlotagHost &host, const std::vector<Factory> &factories);

template <class... Passes> void registerAll(const HlotagHost *host) {
  static const std::vector<Factory> factories{&create<Passes>...};
  registerPasses(*host, factories);
}

} // namespace hlotag::plugin

#define HLOTAG_PASS_PLUGIN(name, version, ...)                                                     \
  extern "C" __attribute__((visibility("default"))) const HlotagPlugin *hlotagGetPassPlugin() {    \
    static const HlotagPlugin plugin{HLOTAG_PLUGIN_ABI, name, version,                             \
                                     &hlotag::plugin::registerAll<__VA_ARGS__>};                   \
    return &plugin;                                                                                \
  }
