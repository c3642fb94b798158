#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the plugin for mlir-opt and runs the passes' lit tests under both drivers, which must agree; `mlir_opt.sh build` only builds.
set -eu
cd "$(dirname "$0")/.."
mkdir -p build
cmake --preset dev -DHLOTAG_BUILD_MLIR_PLUGIN=ON >build/configure.log 2>&1 || { cat build/configure.log; exit 1; }
cmake --build --preset dev --target hlotag_mlir_opt
[[ ${1:-} == build ]] && exit
exec lit -q --param mlir_opt_plugin=build/dev/cpp/plugin/libhlotag_mlir_opt.so lit_tests/passes
