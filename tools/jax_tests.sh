#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# JAX's own tests without hlotag, in its stage, and with a rule for every operation:
#   jax_tests.sh CHECKOUT FILE...     for example jax_tests.sh ../jax xla_metadata_test.py jet_test.py
# The checkout is of the commit of the installed jax. Prints the counts, and each test that fails in the stage only.
set -u
python=${PYTHON:-$(command -v python)}
out=$(cd "$(dirname "$0")/.." && mkdir -p build/jax_tests && cd build/jax_tests && pwd)
cd "$1/tests" || exit 2
shift
export JAX_PLATFORMS=cpu JAX_NUM_GENERATED_CASES=5 XLA_FLAGS=--xla_force_host_platform_device_count=8
printf '[[rule]]\nattrs = { everything = "yes" }\nop = "*"\n' > "$out/rules.toml"

run() { # MODE FILE [VARIABLE=VALUE...]
  env "${@:3}" "$python" -m pytest -q -p no:cacheprovider -rf --tb=line "$2" > "$out/$1-$2.log" 2>&1
  grep -oE '^FAILED [^ ]+' "$out/$1-$2.log" | sort > "$out/$1-$2.failed"
  echo "$1: $2: $(tail -1 "$out/$1-$2.log")"
}

for file in "$@"; do
  run off "$file"
  run stage "$file" HLOTAG_ENABLE=1
  run rule "$file" HLOTAG_ENABLE=1 HLOTAG_RULES="$out/rules.toml"
  for mode in stage rule; do
    comm -13 "$out/off-$file.failed" "$out/$mode-$file.failed" | sed "s/^FAILED/  only with $mode:/"
    grep -hE '^E  +[A-Za-z]*Error' "$out/$mode-$file.log" | cut -c1-120 | sort | uniq -c
  done
done
