// SPDX-License-Identifier: Apache-2.0
//
// How does a plugin declare its passes? One of its source files has, after the pass classes:
//
//     HLOTAG_PASS_PLUGIN("my-passes", "1.0", MyPass, MyOtherPass)
//
// A plugin is compiled together with the sources in hlotag/src, the classes that passes use. Only
// the C functions and structs of abi.h cross between plugin and hlotag.
#pragma once

#include "hlotag/pass/pass.h"
#include "hlotag/plugin/abi.h"

#include <vector>

namespace hlotag::plugin {

using Factory = std::unique_ptr<pass::Pass> (*)();

template <class Pass> std::unique_ptr<pass::Pass> create() { return std::make_unique<Pass>(); }

/// Registers the pass of each factory with the host. The factories must outlive the plugin's
/// passes.
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
