#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tries to provide a headless Chromium for the tests of pages: as root, with apt-get. Without one
# they are skipped, with CI=true they fail.
set -u
command -v chromium >/dev/null 2>&1 && command -v chromedriver >/dev/null 2>&1 && exit 0
[[ $(id -u) == 0 ]] && command -v apt-get >/dev/null 2>&1 || exit 0
install=(timeout 300 apt-get install -y --no-install-recommends chromium chromium-driver fonts-dejavu-core)
export DEBIAN_FRONTEND=noninteractive
"${install[@]}" >/dev/null 2>&1 || { timeout 120 apt-get update >/dev/null 2>&1 && "${install[@]}" >/dev/null 2>&1; }
exit 0
