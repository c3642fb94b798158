# SPDX-License-Identifier: Apache-2.0
"""Do the functions of an unknown jaxlib work? A child process tries them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

from hlotag.host.library import Host, incompatible
from hlotag.host.probe import SUCCESS

_TIMEOUT_S = 120

# `-I` ignores PYTHON* variables and the current directory. The child gets this process's module path, so it imports the same
# jaxlib and hlotag.
_CODE = "import json, sys; job = json.load(sys.stdin); sys.path[:] = job['path']; from hlotag.host.probe import main; main(job)"


def run(host: Host, offsets: dict[str, int]) -> None:
    """Tries the functions in a child process, where a crash does no harm.

    Args:
        host: The library of the functions.
        offsets: The offsets of the functions.

    Raises:
        IncompatibleJaxlibError: The trial crashed, hung, gave a wrong result, or could not run.
    """
    if not sys.executable:
        reason = "it has not been tried on this machine, and there is no Python interpreter to try it: run `hlotag passes` once"
        raise incompatible(host, reason)
    job = json.dumps({"path": [os.path.abspath(entry) for entry in sys.path], "library": host.library, "offsets": offsets})
    try:
        child = subprocess.run(
            [sys.executable, "-I", "-c", _CODE],
            input=job,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise incompatible(host, f"a trial of its MLIR in a child process did not finish within {_TIMEOUT_S} s") from error
    except OSError as error:
        raise incompatible(host, f"a trial in a child process could not be started: {error}") from error
    problem = _problem(child)
    if problem is not None:
        raise incompatible(host, f"a trial of its MLIR in a child process {problem}")


def _problem(child: subprocess.CompletedProcess[str]) -> str | None:
    if child.returncode == 0 and child.stdout.strip().endswith(SUCCESS):
        return None
    output = "".join(f"\n    {line}" for line in (child.stdout + child.stderr).strip().splitlines()[-8:])
    if child.returncode >= 0:
        return f"failed (exit status {child.returncode}){output and ':' + output}"
    try:
        name = signal.Signals(-child.returncode).name
    except ValueError:
        name = f"signal {-child.returncode}"
    return f"crashed ({name}){output and ':' + output}"
