# SPDX-License-Identifier: Apache-2.0
"""How does XLA read and compile a program without JAX? The same functions as in `runtime.py`, by jaxlib alone."""

from __future__ import annotations


def to_stablehlo(program: str | bytes) -> bytes:
    """Converts HLO text or a serialized HloModuleProto to bytecode."""
    from jaxlib import _hlo, _jax  # pyright: ignore[reportAttributeAccessIssue]

    is_text = isinstance(program, str)
    data: bytes = _hlo.hlo_module_from_text(program).as_serialized_hlo_module_proto() if is_text else program
    _hlo.XlaComputation(data).program_shape()
    return _jax.mlir.hlo_to_stablehlo(data)


def compile(bytecode: bytes, options: bytes, on_cpu: bool) -> None:
    """Compiles for the number of CPU devices in the options. For other platforms, only converts the program to HLO."""
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
