#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds and runs the C++ unit tests with a preset of CMakePresets.json (dev or asan).
set -eu
cd "$(dirname "$0")/.."
mkdir -p build
cmake --preset "$1" -DPython_EXECUTABLE="$(command -v python)" >build/configure.log 2>&1 || { cat build/configure.log; exit 1; }
cmake --build --preset "$1"
"build/$1/cpp/unittests/hlotag_unittests"
