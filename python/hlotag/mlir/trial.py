# SPDX-License-Identifier: Apache-2.0
"""The trial of an unknown jaxlib's functions, in a child process."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys

from hlotag.errors import IncompatibleJaxlibError
from hlotag.mlir.cache import cache_directory
from hlotag.mlir.library import Library, incompatible
from hlotag.mlir.probe import SUCCESS

_TIMEOUT_S = 120

_STARTED = "hlotag trial: started"
# `-I` ignores PYTHON* variables and the current directory. The child gets this process's module path, so it imports the same
# jaxlib and hlotag.
_CODE = "import json, sys; job = json.load(sys.stdin); sys.path[:] = job['path']; from hlotag.mlir.probe import main; main(job)"
_PYTHON = re.compile(r"python[\d.]*[a-z]*")


def interpreter() -> str | None:
    """Finds a Python interpreter of this version, by name: a program that embeds Python must not be started again.

    That is `sys.executable`, or the interpreter of this process's prefix; None if neither is one.
    """
    name = f"python{sys.version_info.major}.{sys.version_info.minor}{getattr(sys, 'abiflags', '')}"
    of_prefix = (os.path.join(prefix, "bin", name) for prefix in (sys.prefix, sys.base_prefix))
    for path in (sys.executable or "", *of_prefix):
        if _PYTHON.fullmatch(os.path.basename(path)) and os.access(path, os.X_OK):
            return path
    return None


def run(library: Library, offsets: dict[str, int]) -> None:
    """Tries the functions in a child process, where a crash does no harm.

    Raises IncompatibleJaxlibError if the trial crashed, hung, gave a wrong result, or could not run.
    """
    python = interpreter()
    if python is None:
        raise _make_untried_error(library, f"this process has no Python interpreter: sys.executable is {sys.executable!r}")
    job = json.dumps({"path": [os.path.abspath(entry) for entry in sys.path], "library": library.path, "offsets": offsets})
    try:
        child = subprocess.run(
            [python, "-I", "-c", f"print({_STARTED!r}, flush=True); {_CODE}"],
            input=job,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise incompatible(library, f"a trial of its MLIR in a child process did not finish within {_TIMEOUT_S} s") from error
    except OSError as error:
        raise _make_untried_error(library, f"{python} could not be started: {error}") from error
    if _STARTED not in child.stdout:
        raise _make_untried_error(library, f"{python} did not run Python code")
    problem = _problem(child)
    if problem is not None:
        raise incompatible(library, f"a trial of its MLIR in a child process {problem}")


def _make_untried_error(library: Library, reason: str) -> IncompatibleJaxlibError:
    """Makes the error for a trial that could not begin, which says nothing about jaxlib."""
    message = (
        "hlotag has not tried this jaxlib yet, and cannot try it from this process.\n"
        f"  found: jaxlib {library}\n  reason: {reason}\n"
        "  what to do: once, run `python -c 'import hlotag; hlotag.enable()'` with this program's packages and as its user; the "
        f"result is kept in {cache_directory() or 'the folder HLOTAG_CACHE_DIR, which must be set'}"
    )
    return IncompatibleJaxlibError(message, reason=reason)


def _problem(child: subprocess.CompletedProcess[str]) -> str | None:
    if child.returncode == 0 and child.stdout.strip().endswith(SUCCESS):
        return None
    said = child.stdout.replace(_STARTED, "") + child.stderr
    output = "".join(f"\n    {line}" for line in said.strip().splitlines()[-8:])
    if child.returncode >= 0:
        return f"failed (exit status {child.returncode}){output and ':' + output}"
    try:
        name = signal.Signals(-child.returncode).name
    except ValueError:
        name = f"signal {-child.returncode}"
    return f"crashed ({name}){output and ':' + output}"
