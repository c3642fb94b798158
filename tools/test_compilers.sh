#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests hlotag inside XLA's compilers for GPU and TPU, which need no hardware, in .venv/compilers-<version of Python>:
#   test_compilers.sh [VERSION ...]
# Their packages take 2 GB for each version. With CI=true it is a failure if they or a Python cannot be had.
set -u
cd "$(dirname "$0")/.."
# Tests leave the user's own cache alone.

failed=()
missing=()
mkdir -p build/logs
# Ctrl-C does not reach what runs in the background.
trap 'trap - INT TERM; kill 0' INT TERM

test_platform() { # test_platform PLATFORM TEST...: runs tests of the current version, and prints their output at the end
  local platform=$1 log=build/logs/compilers-$version-$1.log result=0
  shift
  HLOTAG_COMPILERS=$platform "$venv/bin/python" -m pytest -q "$@" &>"$log" || result=$?
  printf '\n=== Python %s: XLA for %s\n' "$version" "$platform"
  cat "$log"
  return $result
}

(($#)) || set -- 3.11 3.12
for version in "$@"; do
  venv=.venv/compilers-$version
  if ! python=$(bash tools/find_python.sh "$version"); then
    missing+=("Python $version: not found")
  elif ! bash tools/make_venv.sh "$python" "$venv" build run compilers; then
    missing+=("Python $version: no packages of XLA's compilers")
  elif ! PATH="$PWD/$venv/bin:$PATH" "$venv/bin/python" -m pip install --quiet --no-build-isolation --no-deps --force-reinstall .; then
    failed+=("Python $version: install")
  else
    tests=(tests/compilers)
    # The older jax: what the compilers read, what becomes of tags, and that nothing else changes. Numbers are the newer one's.
    [[ $version != 3.11 ]] || tests=(tests/compilers/test_{audit,effects,hlo_pass,inserted,keys,train_step}.py)
    # Side by side, on two cores, these take less time than one after the other.
    test_platform gpu "${tests[@]}" &
    gpu=$!
    test_platform tpu "${tests[@]}" &
    tpu=$!
    test_platform cpu tests/compilers/test_keys.py || failed+=("Python $version: XLA for cpu")  # All other tests have CPU's compiler.
    wait $gpu || failed+=("Python $version: XLA for gpu")
    wait $tpu || failed+=("Python $version: XLA for tpu")
  fi
done

for name in "${missing[@]:+${missing[@]}}"; do echo "skipped  $name"; done
for name in "${failed[@]:+${failed[@]}}"; do echo "FAILED   $name"; done
[[ ${#failed[@]} == 0 && (${CI:-} != true || ${#missing[@]} == 0) ]]
