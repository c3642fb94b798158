#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs with apt-get, as root, what `make test-all` and `make fuzz` want beside a C++ compiler and Python. CI calls it. No other
# target installs anything outside of the repository.
#   get_packages.sh          Chromium, for tests of pages; LLVM's FileCheck and mlir-opt with MLIR's headers, for lit tests
#   get_packages.sh clang    clang and libFuzzer too
set -eu
packages=(chromium chromium-driver fonts-dejavu-core llvm-22-tools mlir-22-tools libmlir-22-dev llvm-22-dev)
[[ ${1:-} != clang ]] || packages+=(clang-22 libclang-rt-22-dev)
missing=()
for package in "${packages[@]}"; do
  [[ $(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0
export DEBIAN_FRONTEND=noninteractive
install=(timeout 1200 apt-get install -y --no-install-recommends "${missing[@]}")
"${install[@]}" >/dev/null 2>&1 || { apt-get update >/dev/null && "${install[@]}"; }
