#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Format, style and types; `lint.sh --fix` formats instead of complaining.
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
pyright --pythonpath "$(command -v python)" || status=1
missing=$(grep -L 'SPDX-License-Identifier: Apache-2.0' "${cpp[@]}" $(find "${python[@]}" -name '*.py' -o -name '*.sh'))
[[ -z $missing ]] || { echo "no SPDX line: $missing"; status=1; }
exit $status
