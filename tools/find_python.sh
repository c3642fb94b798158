#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the path of a working Python of the given version (find_python.sh 3.12), from PATH or
# pyenv; fails without output if there is none.
set -u
version=$1

shopt -s nullglob
candidates=("python$version" python3 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$version"*/bin/python3)
for candidate in "${candidates[@]}"; do
  # Asked, not believed: a pyenv shim exists for versions that it then refuses to run.
  found=$("$candidate" -c 'import sys; print("%d.%d" % sys.version_info[:2], sys.executable)' 2>/dev/null) || continue
  [[ $found == "$version "* ]] || continue
  echo "${found#* }"
  exit 0
done
exit 1
