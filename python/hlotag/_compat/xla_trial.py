# SPDX-License-Identifier: Apache-2.0
"""Reads or compiles a program that may end the process. A child process runs this as a script, without importing JAX.

It uses the same functions of jaxlib as `runtime.py`. Whatever is wrong with the program and does not end the process is an error
that its parent finds as well.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
from contextlib import suppress
from typing import Any

_STACK = 6 << 20
"""Less than the stack of a thread of the parent, which has used some of it."""


def read(program: str | bytes) -> None:
    """Reads HLO text, a serialized HloModuleProto or MLIR bytecode, as `hlotag.xla` does."""
    from jaxlib import _hlo, _jax  # pyright: ignore[reportAttributeAccessIssue]

    from hlotag.host.modules import BYTECODE_MAGIC, new_context, parse_module

    is_text = isinstance(program, str)
    data: bytes = _hlo.hlo_module_from_text(program).as_serialized_hlo_module_proto() if is_text else program
    if not data.startswith(BYTECODE_MAGIC):
        _hlo.XlaComputation(data).program_shape()
        data = _jax.mlir.hlo_to_stablehlo(data)
    with new_context():
        parse_module(data).operation.verify()


def compile(bytecode: bytes, options: bytes, on_cpu: bool) -> None:
    """Compiles for as many devices of a CPU as the options say; for other platforms only makes HLO of the program."""
    import numpy as np
    from jaxlib import _jax, xla_client  # pyright: ignore[reportAttributeAccessIssue]

    if not on_cpu:
        _jax.mlir.mlir_module_to_xla_computation(bytecode, use_tuple_args=False, return_tuple=True)
        return
    parsed = _jax.CompileOptions.ParseFromString(options)
    shape = parsed.num_replicas, parsed.num_partitions
    client = xla_client.make_cpu_client(num_devices=shape[0] * shape[1])
    ids = [device.id for device in client.devices()]
    parsed.device_assignment = _jax.DeviceAssignment.create(np.array(ids, np.int32).reshape(shape))
    parsed.executable_build_options.debug_options.xla_enable_dumping = False
    client.compile_and_load(bytecode, _jax.DeviceList(tuple(client.devices())), parsed, [])


def main() -> None:
    """Does what standard input says; ends the process with 0 if it gets that far."""
    job: dict[str, Any] = pickle.load(sys.stdin.buffer)
    sys.path[:] = job.pop("path")
    task = {"read": read, "compile": compile}[job.pop("task")]

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
