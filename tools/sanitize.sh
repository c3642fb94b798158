#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests under the address and undefined-behaviour sanitizers, with the tools of an environment in PATH:
#   sanitize.sh short    C++ unit tests, and the Python tests of pipelines, files and fuzzed input
#   sanitize.sh          the unit tests, and all lit and Python tests but those that start many processes
# Python itself is not instrumented, so the sanitizers are loaded first; of the leaks at exit, of which Python and jaxlib have
# many, those count in which hlotag's code takes part.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
bash tools/unittests.sh asan

cmake --preset asan-python -DPython_EXECUTABLE="$(command -v python)" >build/configure-asan.log 2>&1 ||
  { cat build/configure-asan.log; exit 1; }
cmake --build --preset asan-python
overlay=$root/build/asan-overlay
rm -rf "$overlay"
mkdir -p "$overlay/hlotag"
for file in python/hlotag/*; do ln -s "$root/$file" "$overlay/hlotag/"; done
ln -s "$root"/python/jax_plugins "$overlay/"
ln -s "$root"/build/asan-python/cpp/bindings/_core*.so "$overlay/hlotag/"

run() { # run COMMAND...: with the instrumented extension
  PYTHONPATH=$overlay${PYTHONPATH:+:$PYTHONPATH} HLOTAG_CACHE_DIR=$root/build/asan-cache \
    LD_PRELOAD="$(c++ -print-file-name=libasan.so) $(c++ -print-file-name=libubsan.so) $(c++ -print-file-name=libstdc++.so)" \
    "$@"
}

tests=(tests/test_pipeline.py tests/test_files.py tests/test_fuzz.py tests/test_python_passes.py)
[[ ${1:-} == short ]] || tests+=(tests/test_stage.py tests/test_tags.py tests/test_contract.py tests/test_calls.py tests/test_outline.py
  tests/test_keys.py tests/test_failure.py tests/test_hostile.py)
# Leaks are looked for below, in one process: at the end of each of many the report would take longer than the tests.
ASAN_OPTIONS=detect_leaks=0 run python -m pytest -q -p no:cacheprovider "${tests[@]}"

leaks=$(ASAN_OPTIONS=detect_leaks=1 LSAN_OPTIONS=exitcode=0 run python - 2>&1 <<'PYTHON'
import hlotag

text = 'func.func @f(%x: tensor<f32>) -> tensor<f32> { %0 = stablehlo.sine %x : tensor<f32>\nreturn %0 : tensor<f32> }'
for _ in range(3):
    for info in hlotag.list_passes():
        hlotag.run_passes(text, info.name)
    try:
        hlotag.run_passes(text, "hlotag-attach{rules=[}")
    except hlotag.HlotagError:
        pass
PYTHON
)
# A report is a paragraph.
if ours=$(awk -v RS= '/leak of/ && /hlotag::|asan-python/' <<<"$leaks") && [[ -n $ours ]]; then
  echo "$ours" | head -60
  echo "hlotag: these leaks are ours" >&2
  exit 1
fi
echo "no leaks of ours"
