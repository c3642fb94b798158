# SPDX-License-Identifier: Apache-2.0
"""What the recipes have in common: compile a step without and with its tags, here or ahead of time, and print what differs.

python examples/effects/scheduling_group.py                    # for the devices that JAX finds
python examples/effects/scheduling_group.py --compiler h100    # for H100: pip install 'jax[cuda12]', no GPU needed
python examples/effects/scheduling_group.py --compiler v5e     # for TPU v5e: pip install 'jax[tpu]', no TPU needed
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import jax
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import hlotag

H100 = Path(__file__).parents[2] / "docs" / "targets" / "h100.txtpb"
COMPILERS = {
    "here": lambda count: jax.devices()[:count],
    "h100": lambda count: (
        topologies.get_topology_desc(platform="cuda", target_config=H100.read_text(), topology=f"1x1x{count}").devices
    ),
    "v5e": lambda count: topologies.get_topology_desc("v5e:2x2", "tpu").devices[:count],
}
_BEGINS = re.compile(r"%(?:all-|reduce-|async-collective|call)\S*start\S* = ")
_ENDS = re.compile(r"%(?:all-|reduce-|async-collective|call)\S*done\S* = ")
_COMPUTES = re.compile(r"%(?!\S*dynamic)\S+ = .* (?:fusion|dot|convolution|custom-call|call-start)\(")


def mesh_of(compiler: str, count: int) -> Mesh:
    """The devices to compile for, in one row."""
    return Mesh(np.array(COMPILERS[compiler](count)), ("i",))


def figures(step, mesh: Mesh, *shapes) -> dict[str, object]:
    """Compiles a step and says what its schedule and memory are, and what hlotag's audit says of its keys.

    Args:
        step: A function.
        mesh: The devices.
        *shapes: (shape, dtype, partition) of each argument.

    Returns:
        By name, figures of the compiled module.
    """
    arguments = [jax.ShapeDtypeStruct(shape, kind, sharding=NamedSharding(mesh, place)) for shape, kind, place in shapes]
    with hlotag.stage():
        lowered = jax.jit(step).lower(*arguments)
        compiled, audit = lowered.compile(), hlotag.audit(lowered)
    entry = compiled.as_text().partition("\nENTRY")[2].splitlines()
    memory = compiled.memory_analysis()
    return {
        "fusions": sum(" fusion(" in line for line in entry),
        "overlapped": overlapped(entry),
        "temporary MB": round(memory.temp_size_in_bytes / 1e6, 1),
        "host MB": round(memory.host_temp_size_in_bytes / 1e6, 1),
        "effects": [str(effect) for effect in audit.effects],
    }


def overlapped(entry: list[str]) -> int:
    """How many asynchronous operations have something that computes between their halves."""
    count, begun = 0, False
    for line in entry:
        if _ENDS.search(line):
            begun = False
        elif begun and _COMPUTES.search(line):
            count, begun = count + 1, False
        elif _BEGINS.search(line):
            begun = '"is_sync":true' not in line
    return count


def run(recipe, count: int) -> None:
    """Prints the figures of each variant of a recipe.

    Args:
        recipe: From a mesh to (step, *shapes) by name.
        count: Of devices.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--compiler", choices=COMPILERS, default="here")
    mesh = mesh_of(parser.parse_args().compiler, count)
    for name, (step, *shapes) in recipe(mesh).items():
        print(name)
        for what, value in figures(step, mesh, *shapes).items():
            for line in value if isinstance(value, list) else [value]:
                print(f"  {what:13} {line}")


def spread(shape, kind=np.float32):
    """An argument that is split over the devices by its first dimension."""
    return shape, kind, P("i")


def whole(shape, kind=np.float32):
    """An argument that each device has a copy of."""
    return shape, kind, P()
