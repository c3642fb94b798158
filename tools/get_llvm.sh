#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tries to provide LLVM's FileCheck and mlir-opt, with MLIR's headers and libraries, where that costs
# nobody a question: as root, with apt-get. Without them the tests use the FileCheck clone from PyPI
# and leave mlir-opt out, so nothing here is an error.
set -u
llvm=/usr/lib/llvm-22
[[ -x $llvm/bin/FileCheck && -x $llvm/bin/mlir-opt && -f $llvm/include/mlir-c/IR.h && -f $llvm/include/llvm/Support/Error.h ]] && exit 0
[[ $(id -u) == 0 ]] && command -v apt-get >/dev/null 2>&1 || exit 0
install() {
  DEBIAN_FRONTEND=noninteractive timeout 900 apt-get install -y --no-install-recommends "$@" >/dev/null 2>&1
}
packages=(llvm-22-tools mlir-22-tools libmlir-22-dev llvm-22-dev)
install "${packages[@]}" || { timeout 120 apt-get update >/dev/null 2>&1; install "${packages[@]}"; }
exit 0
