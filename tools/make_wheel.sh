#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes dist/: a source distribution, and from it, without a network, a manylinux wheel with the environment's Python (3.11: for
# 3.11; later: for 3.12 and up). Each wheel is under 1 MB and is tried in a fresh environment with no compiler in PATH.
#   make_wheel.sh VENV ...     environments with the groups "build", "run" and "wheel" of pyproject.toml
set -euo pipefail
cd "$(dirname "$0")/.."
rm -rf dist build/wheel
mkdir -p dist build/wheel
for venv in "$@"; do
  python=$PWD/$venv/bin/python
  export PATH="$PWD/$venv/bin:$PATH"
  [[ -e $(echo dist/*.tar.gz) ]] || "$python" -m build --quiet --sdist --no-isolation --outdir dist .
  raw=$(mktemp -d build/wheel/raw-XXXX)
  # From the sdist and not from the tree, so that what it lacks is noticed.
  "$python" -m pip wheel --quiet --no-index --no-build-isolation --no-deps --wheel-dir "$raw" dist/*.tar.gz
  "$python" -m auditwheel repair --strip --wheel-dir "$raw/repaired" "$raw"/*.whl
  wheel=$(echo "$raw"/repaired/*.whl)
  size=$(stat -c %s "$wheel")
  ((size < 1000000)) || { echo "hlotag: $wheel has $size bytes; it must be under 1 MB" >&2; exit 1; }
  [[ $wheel == *manylinux* ]] || { echo "hlotag: $wheel is no manylinux wheel" >&2; exit 1; }
  fresh=build/wheel/fresh-$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  "$python" -m venv "$fresh"
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  "$fresh/bin/python" -m pip install --quiet --disable-pip-version-check --constraint "tools/constraints-$version.txt" "$wheel"
  # An empty PATH: no compiler, no cmake, nothing of the tree.
  (cd / && env -i PATH=/nonexistent HOME="$(mktemp -d)" "$OLDPWD/$fresh/bin/python" -I "$OLDPWD/tools/smoke_test.py")
  cp "$wheel" dist/
  echo "$(basename "$wheel"): $size bytes"
done
