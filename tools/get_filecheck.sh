#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tries to provide LLVM's own FileCheck where that costs nobody a question: as root, with apt-get.
# The tests also run with the FileCheck clone from PyPI, so nothing here is an error.
set -u
for tool in FileCheck FileCheck-22 /usr/lib/llvm-*/bin/FileCheck; do
  command -v "$tool" >/dev/null 2>&1 && exit 0
done
[[ $(id -u) == 0 ]] && command -v apt-get >/dev/null 2>&1 || exit 0
DEBIAN_FRONTEND=noninteractive timeout 120 apt-get install -y --no-install-recommends llvm-22-tools >/dev/null 2>&1
exit 0
