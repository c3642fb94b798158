# SPDX-License-Identifier: Apache-2.0
"""Does XLA survive a program? XLA aborts on many malformed programs, so a child process tries each program first.

Memory and a file in the user's cache directory record the programs that passed.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from hlotag._compat.bindings import extension_path
from hlotag._util import files
from hlotag.host import cache

_SCRIPT = Path(__file__).with_name("_trial_child.py")
_REMEMBERED = 5_000
_LINES_SHOWN = 3

_passed: set[str] = set()


def why_not(task: str, **payload: Any) -> str:
    """Runs a task in a child process.

    Args:
        task: A function of `_trial_child.py`, "read" or "compile".
        **payload: The arguments of the function.

    Returns:
        XLA's message if the process aborted; empty if it did not, or if there is no interpreter for a child.
    """
    verdict = hashlib.sha256(pickle.dumps((task, payload, _jaxlib(), os.environ.get("XLA_FLAGS")))).hexdigest()
    if verdict in _passed or verdict in _remembered() or not sys.executable:
        return ""
    job = {"task": task, "path": [os.path.abspath(entry) for entry in sys.path], **payload}
    command = [sys.executable, "-I", str(_SCRIPT)]
    try:
        child = subprocess.run(command, input=pickle.dumps(job), capture_output=True, check=False)
    except OSError:
        return ""
    if child.returncode < 0:
        return _last_words(child.stderr.decode(errors="replace")) or signal.Signals(-child.returncode).name
    if child.returncode == 0:
        _remember(verdict)
    return ""


def _jaxlib() -> tuple[str, int, int]:
    """Identifies the build of jaxlib."""
    path = extension_path()
    status = os.stat(path)
    return path, status.st_size, status.st_mtime_ns


def _last_words(stderr: str) -> str:
    """The last messages before the stack trace, without XLA's log prefix."""
    messages, _, _ = stderr.partition("*** Check failure stack trace")
    lines = [
        line for line in messages.splitlines() if line.strip() and not re.match(r"[IW]\d{4} |\s+@ |\*\*\*|Fatal Python", line)
    ]
    return "\n".join(re.sub(r"^[EF]\d{4} [^]]*\] ", "", line) for line in lines[-_LINES_SHOWN:])


def _file() -> str | None:
    directory = cache.cache_directory()
    return directory and os.path.join(directory, "xla-trials")


def _remembered() -> list[str]:
    """The programs that passed in other processes, oldest first."""
    with suppress(OSError, ValueError):
        if path := _file():
            return cache.read_own_file(path).decode().split()
    return []


def _remember(verdict: str) -> None:
    _passed.add(verdict)
    with suppress(OSError):
        if path := _file():
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            files.replace(path, "\n".join([*_remembered()[1 - _REMEMBERED :], verdict]).encode())
