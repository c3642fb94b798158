#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests hlotag for Linux on aarch64 under emulation: a cross compiler builds it, and QEMU runs it with jaxlib's wheel in a root of
# Debian's, build/aarch64.
#   test_aarch64.sh [PYTEST'S ARGUMENTS]     without any: C++ unit tests, lit tests, and a short form of pytest's
# Needs root, debootstrap, qemu-user-static, g++-aarch64-linux-gnu, and Python 3.13 or 3.12. Registers QEMU with the kernel.
set -eu
cd "$(dirname "$0")/.."
root=$PWD/build/aarch64 builder=$PWD/build/aarch64-builder site=$PWD/build/aarch64-site wheels=$PWD/build/aarch64-wheels

formats=/proc/sys/fs/binfmt_misc
[[ -e $formats/register ]] || mount -t binfmt_misc binfmt_misc $formats
[[ -e $formats/qemu-aarch64 ]] || cat /usr/lib/binfmt.d/qemu-aarch64.conf >$formats/register
if [[ ! -e $root/usr/lib/llvm-19/bin/FileCheck ]]; then
  rm -rf "$root"
  # Unpacked and not configured, which under emulation takes longer than all the rest.
  debootstrap --download-only --arch=arm64 --variant=minbase --include=python3,llvm-19-tools trixie "$root-debs" >build/debootstrap.log
  for package in "$root-debs"/var/cache/apt/archives/*.deb; do dpkg -x "$package" "$root"; done
fi

python=$(for v in 3.13 3.12; do bash tools/find_python.sh $v && break; done)
bash tools/make_venv.sh "$python" "$builder" build
rm -rf "$wheels" "$site"
PATH="$builder/bin:$PATH" CC=aarch64-linux-gnu-gcc CXX=aarch64-linux-gnu-g++ _PYTHON_HOST_PLATFORM=linux-aarch64 \
  CMAKE_ARGS="-DHLOTAG_BUILD_UNITTESTS=ON -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_STRIP=$(command -v aarch64-linux-gnu-strip)" \
  "$builder/bin/python" -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir "$wheels" -C build-dir=build/aarch64-cmake .
# For the root's Python, which is 3.13; pip matches platforms by name.
"$builder/bin/python" -m pip install --quiet --target "$site" --only-binary=:all: --python-version 3.13 --implementation cp \
  $(printf -- '--platform manylinux_2_%s_aarch64 ' 17 24 26 27 28 31 34) --platform manylinux2014_aarch64 --platform linux_aarch64 \
  "$wheels"/*.whl pytest lit flatbuffers hypothesis jsonschema markdown-it-py shtab

# lit looks for commands beside Python, where they are for the root's.
for command in lit hlotag-opt; do
  sed '1s,.*,#!/usr/bin/python3,' "$site/bin/$command" | install /dev/stdin "$root/usr/bin/$command"
done

inside() { # runs a command in the root, where this folder is /source; its mounts go when it ends
  unshare --mount bash -euc '
    mkdir -p "$1/source"
    mount --bind "$2" "$1/source"
    mount -t proc proc "$1/proc"
    mount --rbind /dev "$1/dev"
    exec chroot "$1" /usr/bin/env -i HOME=/root PATH=/usr/bin:/bin \
      PYTHONPATH=/source/build/aarch64-site JAX_PLATFORMS=cpu \
      PYTHONDONTWRITEBYTECODE=1 bash -euc "cd /source && \"\$@\"" - "${@:3}"' - "$root" "$PWD" "$@"
}

inside python3 -c 'import platform, sys; print(platform.machine(), sys.version)'
if (($# == 0)); then
  inside build/aarch64-cmake/cpp/unittests/hlotag_unittests
  inside lit -q -j "$(nproc)" lit_tests
  set -- tests/test_newer_jax.py tests/test_contract.py tests/test_stage.py
fi
inside python3 -m pytest -q -p no:cacheprovider "$@"
