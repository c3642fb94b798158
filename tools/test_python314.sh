#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests with Python 3.14 in a root of Debian's, build/python3.14, for machines that lack this Python:
#   test_python314.sh [PYTEST'S ARGUMENTS]     without any, the tests that are not marked slow
# Needs root, debootstrap, and Python 3.12 or 3.13: their wheel is the one for 3.14.
set -eu
cd "$(dirname "$0")/.."
root=$PWD/build/python3.14 builder=$PWD/build/python3.14-builder wheels=build/python3.14-wheels
(($#)) || set -- -m "not slow"

inside() { # runs a command in the root, where this folder is /source; its mounts go when it ends
  unshare --mount bash -euc '
    mkdir -p "$1/source"
    mount --bind "$2" "$1/source"
    mount -t proc proc "$1/proc"
    mount --rbind /dev "$1/dev"
    exec chroot "$1" /usr/bin/env -i HOME=/root PATH=/venv/bin:/usr/bin:/bin JAX_PLATFORMS=cpu \
      PYTHONDONTWRITEBYTECODE=1 bash -euc "cd /source && \"\$@\"" - "${@:3}"' - "$root" "$PWD" "$@"
}

if [[ ! -e $root/usr/bin/python3.14 ]]; then
  rm -rf "$root"
  debootstrap --variant=minbase --include=python3.14,python3.14-venv,ca-certificates,g++,make,llvm-22-tools sid "$root" >build/debootstrap.log
fi
cp /etc/resolv.conf /etc/hosts "$root/etc/"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"

python=$(for v in 3.13 3.12; do bash tools/find_python.sh $v && break; done)
bash tools/make_venv.sh "$python" "$builder" build
rm -rf $wheels
PATH="$builder/bin:$PATH" "$builder/bin/python" -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir $wheels .
"$python" tools/requirements.py run test >build/python3.14.txt
inside python3.14 -m venv /venv
inside pip install --quiet --disable-pip-version-check -r build/python3.14.txt
inside pip install --quiet --disable-pip-version-check --no-deps --force-reinstall $wheels/*.whl
# The free-threaded build, cp314t, has no stable ABI: pip must not take this wheel for it.
takes() {
  inside pip download --quiet --disable-pip-version-check --no-index --no-deps --find-links $wheels --dest /tmp/taken \
    --only-binary=:all: --python-version 3.14 --implementation cp --abi "$1" --platform linux_x86_64 hlotag
}
takes cp314
if takes cp314t 2>/dev/null; then
  echo "hlotag: pip takes the wheel for the free-threaded build" >&2
  exit 1
fi
inside python -m pytest -q -p no:cacheprovider -n auto --maxprocesses=8 "$@"
inside lit -q lit_tests
