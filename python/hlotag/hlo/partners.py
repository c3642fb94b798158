# SPDX-License-Identifier: Apache-2.0
"""Which devices does a device exchange values with in a collective?"""

from __future__ import annotations

from collections.abc import Mapping

from hlotag.hlo.collectives import read_collective
from hlotag.hlo.module import HloModule, Instruction
from hlotag.hlo.replica_groups import list_groups

Partners = Mapping[int, frozenset[int]]
"""By device, the devices that it exchanges values with, and itself."""


def find_partners(module: HloModule) -> dict[str, Partners]:
    """Finds the partners of each collective, by the name of the instruction that starts it, as the numbers of devices.

    Empty if the module does not say on which devices it runs, and if it has both replicas and partitions: a group then may name
    either.
    """
    assignment = [list(each.replica_device_ids) for each in module.proto.device_assignment.computation_devices]
    devices = [device for replicas in assignment for device in replicas]
    if not devices or (len(assignment) > 1 and len(assignment[0]) > 1):
        return {}
    found: dict[str, Partners] = {}
    for instruction in module.instructions():
        collective = read_collective(instruction)
        if collective and collective.start == instruction.name:
            inner = [each.root for each in instruction.called] if instruction.opcode.startswith("async-") else []
            found[instruction.name] = _partners((inner or [instruction])[0], devices)
    return found


def _partners(instruction: Instruction, devices: list[int]) -> Partners:
    found: dict[int, set[int]] = {device: {device} for device in devices}
    for group in list_groups(instruction) or [range(len(devices))]:
        members = {devices[number] for number in group}
        for device in members:
            found[device] |= members
    return {device: frozenset(members) for device, members in found.items()}
