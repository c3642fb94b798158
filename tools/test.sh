#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The quick checks, on the newest supported Python found (or PYTHON_VERSION=3.11): the tests that are not marked slow, the
# passes' lit tests, and the demo.
set -u
cd "$(dirname "$0")/.."
source tools/steps.sh

newest=
for version in ${PYTHON_VERSION:-3.13 3.12 3.11}; do
  if bash tools/find_python.sh "$version" >/dev/null; then newest=$version; break; fi
done
if [[ -z $newest ]]; then
  echo "hlotag: needs Python 3.11, 3.12 or 3.13, and none was found" >&2
  exit 1
fi
bin=.venv/$newest/bin
step "Python $newest: install" make --no-print-directory ".venv/$newest/.installed" || { summary; exit 1; }
step "Python $newest: pytest, but for slow tests" "$bin/python" -m pytest -q -n auto --maxprocesses=8 -m "not slow"
step "Python $newest: lit" "$bin/lit" -q lit_tests
step "demo" "$bin/python" examples/train_step.py
summary
