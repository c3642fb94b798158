# SPDX-License-Identifier: Apache-2.0
"""Does reading or compiling a program abort the process? A child process runs this script, without importing JAX.

Exceptions are ignored: the parent gets them again when it reads or compiles the program itself.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
from contextlib import suppress
from typing import Any

_STACK = 6 << 20
"""Less than the parent's stack (8 MiB), part of which is in use."""


def read(program: str | bytes) -> None:
    """Reads HLO text, a serialized HloModuleProto or MLIR bytecode, as `hlotag.xla` does."""
    from hlotag._compat.xla_alone import to_stablehlo
    from hlotag.host.modules import BYTECODE_MAGIC, new_context, parse_module

    is_bytecode = isinstance(program, bytes) and program.startswith(BYTECODE_MAGIC)
    with new_context():
        parse_module(program if is_bytecode else to_stablehlo(program)).operation.verify()


def main() -> None:
    """Runs the task from standard input; exits with status 0 if the process survives."""
    job: dict[str, Any] = pickle.load(sys.stdin.buffer)
    sys.path[:] = job.pop("path")
    from hlotag._compat import xla_alone

    task = {"read": read, "compile": xla_alone.compile}[job.pop("task")]

    def attempt() -> None:
        with suppress(Exception):
            task(**job)

    threading.stack_size(_STACK)
    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    os._exit(0)


if __name__ == "__main__":
    main()
