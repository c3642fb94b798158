#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a virtual environment with all that hlotag needs except hlotag itself:
#   make_venv.sh PYTHON DIRECTORY GROUP...
# where a group is "build", "run", or an extra of pyproject.toml. Versions are held to
# tools/constraints-<python version>.txt. Run again, it brings the environment up to date.
set -euo pipefail
python=$1
directory=$2
shift 2
tools=$(cd "$(dirname "$0")" && pwd)

if [[ ! -x $directory/bin/python ]]; then
  if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    echo "hlotag: $python cannot make virtual environments: its modules 'venv' and 'ensurepip' are missing." >&2
    echo "        On Debian and Ubuntu: apt-get install $("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')" >&2
    exit 1
  fi
  "$python" -m venv "$directory"
fi

venv_python=$directory/bin/python
version=$("$venv_python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
constraints=$tools/constraints-$version.txt
options=(--quiet --disable-pip-version-check)
[[ -f $constraints ]] && options+=(--constraint "$constraints")
mapfile -t requirements < <("$venv_python" "$tools/requirements.py" "$@")
"$venv_python" -m pip install "${options[@]}" "${requirements[@]}"
