#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tries a version of JAX other than those that the tests run with, e.g. one that hlotag does not claim to support yet:
#   try_jax.sh VERSION [PYTEST'S ARGUMENTS]     for example 0.13.0 or 0.13.0rc1
#   try_jax.sh newest [PYTEST'S ARGUMENTS]      the newest release
#   try_jax.sh nightly [PYTEST'S ARGUMENTS]     the newest development build
# In an environment of its own, build/try-jax-PYTHON: builds hlotag, looks whether the C functions are there and behave, and runs
# the tests. What fails is what a new supported version needs.
set -eu
cd "$(dirname "$0")/.."
wanted=${1:?usage: try_jax.sh VERSION|newest|nightly}
python=${PYTHON:-$(for v in 3.13 3.12 3.11; do bash tools/find_python.sh $v && break; done)}
venv=$PWD/build/try-jax-$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
tools/make_venv.sh "$python" "$venv" build test
pip=("$venv/bin/python" -m pip install --quiet --disable-pip-version-check)
if [[ $wanted == nightly ]]; then
  "${pip[@]}" --upgrade --pre jax jaxlib --extra-index-url https://us-python.pkg.dev/ml-oss-artifacts-published/jax/simple/
elif [[ $wanted == newest ]]; then
  "${pip[@]}" --upgrade jax jaxlib
else
  "${pip[@]}" "jax==$wanted" "jaxlib==$wanted"
fi
# Its dependencies but for jax, of which they say which versions are supported.
mapfile -t others < <("$venv/bin/python" tools/requirements.py run | grep -v '^jax')
"${pip[@]}" "${others[@]}"
PATH="$venv/bin:$PATH" "${pip[@]}" --no-build-isolation --no-deps --force-reinstall .
export JAX_PLATFORMS=cpu
"$venv/bin/python" tools/describe_jaxlib.py
"$venv/bin/python" -m pytest -q -n auto --maxprocesses=8 "${@:2}"
"$venv/bin/lit" -q lit_tests
