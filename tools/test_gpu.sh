#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All that needs a GPU, and a table of what it saw. Says so where there is none, which with CI=true is a failure.
#   PYTHON=python3 test_gpu.sh    with that Python's packages, jax with CUDA and hlotag among them, for machines without a network
# Otherwise in an environment of its own, .venv/gpu.
set -eu
cd "$(dirname "$0")/.."
if [[ ! -e /dev/nvidia0 ]]; then
  echo "hlotag: there is no NVIDIA GPU here (no /dev/nvidia0): nothing was run, and nothing is known about GPUs"
  [[ ${CI:-} != true ]]
  exit
fi
export JAX_PLATFORMS=cuda,cpu
if [[ -z ${PYTHON:-} ]]; then
  bash tools/make_venv.sh "$(for v in 3.13 3.12 3.11; do bash tools/find_python.sh $v && break; done)" .venv/gpu build run test
  PYTHON=$PWD/.venv/gpu/bin/python
  "$PYTHON" -m pip install --quiet 'jax[cuda12]'
  PATH="$PWD/.venv/gpu/bin:$PATH" "$PYTHON" -m pip install --quiet --no-build-isolation --no-deps --force-reinstall .
fi
failed=0
"$PYTHON" -m pytest -q tests/test_hlo_gpu.py || failed=1
# XLA counts no flops in calls of libraries.
"$PYTHON" -m pytest -q tests/test_time_truth.py -k 'not flops and not independent_parser' || failed=1
"$PYTHON" tools/gpu_report.py || failed=1
exit $failed
