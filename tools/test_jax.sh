#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A short form of the tests with one release of JAX, or with each release from the oldest supported one on:
#   test_jax.sh VERSION...     for example 0.11.1
#   test_jax.sh all            also writes the table in docs/compatibility.md
# Prints a table: release, Python, result, minutes. Fails if a release does.
set -u
cd "$(dirname "$0")/.."
short=(tests/test_contract.py tests/test_stage.py tests/test_tags.py tests/test_tags_of_nothing.py tests/test_binds.py
  tests/test_rules.py tests/test_hlo_pass.py tests/test_mlir.py tests/test_newer_jax.py)
export PYTHON=${PYTHON:-$(for v in 3.13 3.12 3.11; do bash tools/find_python.sh $v && break; done)}
oldest=0.10.2
versions=("$@")
if [[ $* == all ]]; then
  mapfile -t versions < <("$PYTHON" -m pip index versions jax --disable-pip-version-check 2>/dev/null \
    | sed -n 's/^Available versions: //p' | tr -d ' ' | tr ',' '\n' | sort -V | sed -n "/^${oldest//./\\.}$/,\$p")
fi
[[ ${#versions[@]} -gt 0 ]] || { echo "usage: test_jax.sh VERSION...|all; no release was found" >&2; exit 2; }

mkdir -p build
table=build/jax-releases.md
printf '\n| jax | Python | result | minutes |\n|---|---|---|---|\n' > $table
failed=0
for version in "${versions[@]}"; do
  log=build/test-jax-$version.log
  start=$SECONDS
  bash tools/try_jax.sh "$version" "${short[@]}" 2>&1 | tee "$log"
  if [[ ${PIPESTATUS[0]} == 0 ]]; then said=ok; else said=FAILED failed=1; fi
  counts=$(grep -oE '([0-9]+ [a-z]+, )*[0-9]+ [a-z]+ in [0-9.]+s' "$log" | tail -1 | sed -E 's/ in .*|, [0-9]+ warnings?//g')
  python=$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  minutes=$(((SECONDS - start) / 6))
  echo "| $version | $python | $said${counts:+: $counts} | $((minutes / 10)).$((minutes % 10)) |" >> $table
done
echo >> $table
cat $table
if [[ $* == all ]]; then
  # Between the two marks.
  sed -i -e "/<!-- jax releases -->/,/<!-- end -->/{//!d}" -e "/<!-- jax releases -->/r $table" docs/compatibility.md
fi
exit $failed
