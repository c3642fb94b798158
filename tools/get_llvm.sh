#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tries to provide LLVM's FileCheck and mlir-opt, with MLIR's headers and libraries, where that costs
# nobody a question: as root, with apt-get. Without them the tests use the FileCheck clone from PyPI
# and leave mlir-opt out, so nothing here is an error.
#   get_llvm.sh          for the tests
#   get_llvm.sh clang    for the fuzzers, too: they need clang and libFuzzer
set -u
llvm=/usr/lib/llvm-22
packages=(llvm-22-tools mlir-22-tools libmlir-22-dev llvm-22-dev)
needed=(bin/FileCheck bin/mlir-opt include/mlir-c/IR.h include/llvm/Support/Error.h)
if [[ ${1:-} == clang ]]; then
  packages+=(clang-22 libclang-rt-22-dev)
  needed+=(bin/clang++ "lib/clang/22/lib/linux/libclang_rt.fuzzer-$(uname -m).a")
fi
missing=false
for file in "${needed[@]}"; do [[ -e $llvm/$file ]] || missing=true; done
[[ $missing == true ]] || exit 0
[[ $(id -u) == 0 ]] && command -v apt-get >/dev/null 2>&1 || exit 0
install() {
  DEBIAN_FRONTEND=noninteractive timeout 900 apt-get install -y --no-install-recommends "$@" >/dev/null 2>&1
}
install "${packages[@]}" || { timeout 120 apt-get update >/dev/null 2>&1; install "${packages[@]}"; }
exit 0
