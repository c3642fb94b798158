# SPDX-License-Identifier: Apache-2.0
"""A terminal to run commands in."""

import contextlib
import os
import pty
import subprocess
import sys


def run_in_terminal(code: str, **environment: str) -> tuple[int, str]:
    """Runs Python code with a terminal as its output; gives the exit status, and all that came to the terminal."""
    leader, follower = pty.openpty()
    inherited = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "TERM")}
    variables = inherited | {"TERM": "xterm-256color", "COLUMNS": "90"} | environment
    process = subprocess.Popen([sys.executable, "-c", code], stdout=follower, stderr=follower, env=variables)
    os.close(follower)
    output = b""
    with contextlib.suppress(OSError):  # how Linux says that the other end is closed
        while chunk := os.read(leader, 65536):
            output += chunk
    os.close(leader)
    return process.wait(), output.decode().replace("\r\n", "\n")
