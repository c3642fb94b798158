# SPDX-License-Identifier: Apache-2.0
"""XLA's compilers for GPU and TPU, which compile here without the hardware: by JAX's compile-only topologies."""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any
from unittest import mock

import jax
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import hlo_programs
import hlotag
from hlotag.hlo.module import Instruction

ONE, FOUR = 0, 1  # Devices, as places in KINDS.
TARGETS = Path(__file__).parents[2] / "docs" / "targets"
_FLOATS = (10, 11, 12, 16)  # F16, F32, F64 and BF16 in xla/xla_data.proto


@dataclass(frozen=True)
class Compiler:
    """A compiler and what it compiles for."""

    name: str  # of the hardware
    devices: tuple[Any, ...]  # that do not exist

    def shapes(self, arguments: Any) -> Any:
        """Arrays as they are given to `jax.jit(...).lower`: a copy on each of the devices."""
        sharding = NamedSharding(Mesh(np.array(self.devices), ("i",)), P())
        return jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=sharding), arguments)

    def lower(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """`jax.jit(function, **options).lower(*arguments)` for the devices, which `jax.devices()` gives meanwhile."""
        with mock.patch.object(jax, "devices", return_value=list(self.devices)):
            return jax.jit(function, **options).lower(*self.shapes(arguments))


def cpu(count: int) -> Compiler:
    """One or four devices of this machine."""
    return Compiler(f"{count} cpu", tuple(jax.devices()[:count]))


def gpu(kind: str, count: int = 1) -> Compiler:
    """One or more GPUs; for a kind there is a file in `targets/`."""
    target = (TARGETS / f"{kind}.txtpb").read_text()
    topology = topologies.get_topology_desc(platform="cuda", target_config=target, topology=f"1x1x{count}")
    return Compiler(f"{count} {kind}", tuple(topology.devices))


def tpu(kind: str, count: int = 4) -> Compiler:
    """One or four chips of a TPU."""
    devices = topologies.get_topology_desc(f"{kind}:2x2", "tpu").devices
    return Compiler(f"{count} {kind}", tuple(devices[:count]))


def is_here(platform: str) -> bool:
    """Whether the packages of a platform's compiler are installed."""
    return importlib.util.find_spec({"cpu": "jaxlib", "gpu": "jax_cuda12_plugin", "tpu": "libtpu"}[platform]) is not None


def block(**attrs: str) -> Any:
    """A block with a tag; without one, nothing."""
    return hlotag.tagged(attrs)


def mapped(function: Callable[..., Any], places: tuple[Any, ...], out: Any) -> Callable[..., Any]:
    """A function under shard_map, on the devices that it is compiled for."""

    def run(*arguments: Any) -> Any:
        mesh = Mesh(np.array(jax.devices()), ("i",))
        return jax.shard_map(function, mesh=mesh, in_specs=places, out_specs=out, check_vma=False)(*arguments)

    return run


def wrongly_signed(instructions: list[Instruction]) -> list[tuple[Instruction, str]]:
    """The heavy instructions whose tag `t` is of no operation that they may have become, each with its signature."""
    parts = {prod(i.dimensions) for i in instructions if i.opcode == "slice"}

    def is_right(instruction: Instruction, expected: str) -> bool:
        found, opcode = instruction.attributes.get("t", ""), instruction.opcode
        kind, sizes = (found.partition(":")[0], found.partition(":")[2].partition("->"))
        is_result = sizes[2] == expected.rpartition("->")[2]
        # Programs have no reduction of bits: TPU's compiler packs a mask, or checks bounds of a scatter.
        if opcode == "reduce" and not instruction.op_name and instruction.proto.shape.element_type not in _FLOATS:
            return found.startswith("operation ") or kind == "scatter"
        if opcode == "all-reduce" and kind == "reduce-scatter":
            return expected == f"all-reduce:{sizes[0]}"
        if opcode == "all-reduce" and "," in found:  # XLA joins the tags of collectives that it combines, or concatenates.
            is_sum = sum(int(one.rpartition(":")[2]) for one in found.split(",")) == prod(instruction.dimensions)
            return is_sum or hlo_programs.has_signature(instruction, expected)
        became = {"dot": ("convolution", "reduce"), "fft": ("convolution",)}.get(kind, ())
        # Of a dot that GPU's compiler made of several, slices are the results of these.
        is_combined = opcode == kind == "dot" and sizes[2].isdecimal() and int(sizes[2]) in parts
        is_piece = opcode in became and (is_result or kind == "fft")
        return is_combined or is_piece or hlo_programs.has_signature(instruction, expected)

    heavy = [(i, s) for i in instructions if (s := hlo_programs.signature_of_instruction(i)) is not None]
    return [(i, s) for i, s in heavy if not is_right(i, s)]


# By platform and name; one device, and four.
KINDS: dict[str, dict[str, Callable[[], Compiler]]] = {
    "cpu": {"CPU": lambda: cpu(1), "4 CPU": lambda: cpu(4)},
    "gpu": {"H100": lambda: gpu("h100"), "4 H100": lambda: gpu("h100", 4)},
    "tpu": {"TPU v5e": lambda: tpu("v5e", 1), "4 TPU v5e": lambda: tpu("v5e")},
}
FURTHER: dict[str, dict[str, Callable[[], Compiler]]] = {
    "gpu": {"A100": lambda: gpu("a100"), "B200": lambda: gpu("b200")},
    "tpu": {"TPU v6e": lambda: tpu("v6e", 1)},
}
