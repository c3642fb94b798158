#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs tests under the address and undefined-behaviour sanitizers, with the tools of an environment in PATH:
#   sanitize.sh short    C++ unit tests, lit tests of passes and of HLO, and the Python tests of pipelines, files and fuzzed input
#   sanitize.sh          the unit tests, and all lit and Python tests but those that start many processes
# Python itself is not instrumented, so the sanitizers are loaded first; of the leaks at exit, of which Python and jaxlib have
# many, those count in which hlotag's code takes part.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
bash tools/unittests.sh asan

site=$root/build/asan/site
rm -rf "$site"
cmake --install build/asan --prefix "$site" >/dev/null
for file in python/hlotag/*; do ln -s "$root/$file" "$site/hlotag/"; done
ln -s "$root/python/jax_plugins" "$site/"

run() { # run COMMAND...: with the instrumented extension
  PYTHONPATH=$site${PYTHONPATH:+:$PYTHONPATH} \
    LD_PRELOAD="$(c++ -print-file-name=libasan.so) $(c++ -print-file-name=libubsan.so) $(c++ -print-file-name=libstdc++.so)" \
    "$@"
}

used=$(run env ASAN_OPTIONS=detect_leaks=0 python -c "import importlib.util; print(importlib.util.find_spec('hlotag._core').origin)")
if [[ $used != "$site"/* ]]; then
  echo "hlotag: $used would run, without sanitizers; install hlotag without --editable" >&2
  exit 1
fi

lit=(lit_tests/passes lit_tests/hlo)
tests=(tests/test_pipeline.py tests/test_fuzz.py tests/test_python_passes.py)
if [[ ${1:-} != short ]]; then
  lit=(lit_tests)
  tests+=(tests/test_files.py tests/test_stage.py tests/test_tags.py tests/test_tags_of_nothing.py tests/test_contract.py tests/test_calls.py
    tests/test_keys.py tests/test_failure.py tests/test_hostile.py)
fi
# Leaks are looked for below, in one process: at the end of each of many the report would take longer than the tests.
export ASAN_OPTIONS=detect_leaks=0
run python -c 'from lit.main import main; main()' --quiet --succinct -j2 "${lit[@]}"
run python -m pytest -q -p no:cacheprovider -n 2 "${tests[@]}"
# What the lit tests of passes run, and errors of each kind.
leaks=$(ASAN_OPTIONS=detect_leaks=1 LSAN_OPTIONS=exitcode=0 run python - 2>&1 <<'PYTHON'
import ctypes
import re
import shlex
from pathlib import Path

import hlotag
from hlotag.cli import opt_main

hlotag.register_pass(lambda module: str(module), name="test-pass")
assert "sine" in hlotag.run_passes('func.func @f(%x: tensor<f32>) -> tensor<f32> { %0 = stablehlo.sine %x {mhlo.frontend_attributes'
    ' = {k = "v"}} : tensor<f32>\nreturn %0 : tensor<f32> }', "hlotag-strip,test-pass,cse")
for path in sorted(Path("lit_tests/passes").glob("*.mlir")):
    for run in re.findall(r"RUN: (?:not )?hlotag-opt %s ([^|>]*)", path.read_text()):
        opt_main([str(path), *shlex.split(run), "-o", "/dev/null"])
    for wrong in ("hlotag-attach{rules=[}", "hlotag-strip{", "no-such-pass"):
        assert opt_main([str(path), "--split-input-file", f"--pass-pipeline={wrong}", "-o", "/dev/null"]) == 1
for _ in range(100):  # So that a report without leaks of ours says something.
    ctypes.CDLL(None).malloc(31415)
PYTHON
)
if ! grep -qE "leak of 3[01][0-9]{5} byte" <<<"$leaks" || grep -q "Too many leaks" <<<"$leaks"; then
  head -20 <<<"$leaks"
  echo "hlotag: leaks were not looked for" >&2
  exit 1
fi
# A report is a paragraph.
if ours=$(awk -v RS= '/leak of/ && /hlotag::|site\/hlotag\//' <<<"$leaks") && [[ -n $ours ]]; then
  echo "$ours" | head -60
  echo "hlotag: these leaks are ours" >&2
  exit 1
fi
echo "no leaks of ours"
