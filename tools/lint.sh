#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Format, style, types and clang-tidy; `lint.sh --fix` formats instead of complaining.
# Run with the tools of the extra "dev" in PATH.
set -u
cd "$(dirname "$0")/.."
mapfile -t cpp < <(find cpp fuzz -name '*.h' -o -name '*.cpp' | sort)
mapfile -t python < <(for d in python tests lit_tests benchmarks examples fuzz tools; do [[ -d $d ]] && echo "$d"; done)

if [[ ${1:-} == --fix ]]; then
  clang-format -i "${cpp[@]}"
  ruff format --quiet "${python[@]}"
  ruff check --fix "${python[@]}"
  exit
fi

status=0
clang-format --dry-run --Werror "${cpp[@]}" || status=1
ruff format --check --quiet "${python[@]}" || { ruff format --diff --quiet "${python[@]}" | head -40; status=1; }
ruff check --quiet "${python[@]}" || status=1
# Compiled as the library is, with nanobind's headers besides.
mkdir -p build
cmake --preset dev >build/configure.log || { cat build/configure.log; status=1; }
nanobind=$(python -m nanobind --include_dir)
headers=$(python -c 'import sysconfig; print(sysconfig.get_path("include"))')
tidy=$(find cpp/lib cpp/bindings -name '*.cpp' -print0 | xargs -0 -P "$(nproc)" -n 4 clang-tidy --quiet -p build/dev \
  --extra-arg={-isystem"$nanobind",-isystem"$headers",-Icpp/include} 2>/dev/null) || { echo "$tidy"; status=1; }
pyright --pythonpath "$(command -v python)" || status=1
missing=$(grep -L 'SPDX-License-Identifier: Apache-2.0' "${cpp[@]}" $(find "${python[@]}" -name '*.py' -o -name '*.sh'))
[[ -z $missing ]] || { echo "no SPDX line: $missing"; status=1; }
exit $status
