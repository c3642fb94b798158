# SPDX-License-Identifier: Apache-2.0
"""Which devices does a collective put into one group?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hlotag.hlo import opcodes
from hlotag.hlo.module import Instruction


def list_groups(instruction: Instruction) -> Sequence[Sequence[int]]:
    """The groups of an instruction in any of the forms of `HloInstructionProto`; empty for one group of all."""
    proto = instruction.proto
    if opcodes.base(instruction.opcode) == "collective-permute":
        return [(pair.source, pair.target) for pair in proto.source_target_pairs]
    listed = list(proto.replica_groups) or list(proto.collective_device_list.replica_groups)
    if listed:
        return [tuple(group.replica_ids) for group in listed]
    for iota in (proto.iota_groups, proto.collective_device_list.iota):
        if iota.num_devices_per_group:
            return _of_iota(iota)
    return _of_mesh(proto.mesh_groups) if proto.mesh_groups.axes else []


def _of_iota(iota: Any) -> Sequence[Sequence[int]]:
    """Numbers in order, of a shape that is transposed, then cut into groups."""
    count = iota.num_replica_groups * iota.num_devices_per_group
    shape = list(iota.reshape_dims) or [count]
    order = list(iota.transpose_perm) or list(range(len(shape)))
    return np.arange(count).reshape(shape).transpose(order).reshape(-1, iota.num_devices_per_group).tolist()


def _of_mesh(groups: Any) -> Sequence[Sequence[int]]:
    """The devices along some axes of a mesh; a part of an axis is an axis of its own."""
    shape: list[int] = []
    chosen: dict[int, int] = {}  # By the order in which a group names axes, the axis of the shape.
    for number, axis in enumerate(groups.mesh.axes):
        parts = sorted(
            (ref.sub_axis.pre_size or 1, ref.sub_axis.size or axis.size, place)
            for place, ref in enumerate(groups.axes)
            if ref.mesh_axis_index == number
        )
        done = 1
        for before, size, place in parts:
            shape += [before // done, size]
            chosen[place] = len(shape) - 1
            done = before * size
        shape.append(axis.size // done)
    devices = np.array(list(groups.mesh.device_ids) or range(math.prod(shape))).reshape(shape)
    last = [chosen[place] for place in sorted(chosen)]
    others = [n for n in range(len(shape)) if n not in last]
    return devices.transpose(others + last).reshape(-1, math.prod(shape[n] for n in last)).tolist()
