#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles the C++ sources for macOS on arm64, with the compiler and the headers in PyPI's ziglang, into build/macos. Nothing is
# linked or run.
set -eu
cd "$(dirname "$0")/.."
python=$(for v in 3.13 3.12; do bash tools/find_python.sh $v && break; done)
venv=$PWD/build/macos/venv
bash tools/make_venv.sh "$python" "$venv" build
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check ziglang
"$venv/bin/python" tools/key_names.py build/macos/include/hlotag/ir/key_names.h
include=(-Ibuild/macos/include -Icpp/include -Icpp/lib -Icpp/bindings -isystem "$("$venv/bin/python" -m nanobind --include_dir)"
  -isystem "$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["include"])')")
find cpp/lib cpp/bindings cpp/unittests -name '*.cpp' -print0 | xargs -0 -P "$(nproc)" -I{} "$venv/bin/python" -m ziglang c++ \
  -target aarch64-macos.11.0 -std=c++17 -O1 -Wall -Wextra -Wno-missing-field-initializers -Werror \
  -DHLOTAG_VERSION='"0"' -DPy_LIMITED_API=0x030C0000 -DNB_DOMAIN=hlotag "${include[@]}" -c -o /dev/null {}
echo "macOS: $(find cpp/lib cpp/bindings cpp/unittests -name '*.cpp' | wc -l) files compile"
