# SPDX-License-Identifier: Apache-2.0
"""The tags that the compiler gets before it schedules: lost ones that it reads later, and those of inserted collectives."""

from __future__ import annotations

from hlotag.hlo import opcodes
from hlotag.hlo.inserted import InsertedRules
from hlotag.hlo.module import Computation, HloModule, Instruction
from hlotag.hlo.origins import Origins
from hlotag.hlo.restore import Rules, restore
from hlotag.tagging import keys

GROUP = "_scheduling_group_id"
# All members of a group need it, or the scheduler ends the process.
_OF_GROUP = "keep_original_sequence_order_in_group"

Added = dict[Instruction, dict[str, str]]


class Late:
    """The tags that a compilation gets before the scheduler.

    Args:
        origins: The numbered operations.
        rules: Decide about the keys that the compiler reads later; None if the program has none of them.
        inserted: The rules for collectives that XLA inserts.

    Attributes:
        gaps: The groups that got no member, because XLA would refuse the group for a gap.
    """

    def __init__(self, origins: Origins, rules: Rules | None, inserted: InsertedRules) -> None:
        self._origins = origins
        self._rules = rules
        self._inserted = inserted
        self.gaps: set[str] = set()

    def add_tags(self, data: bytes) -> bytes | None:
        """Adds tags to a serialized module; None if it needs no tag. Removes none, and leaves the numbers in names.

        Raises ParseError if the bytes are not a valid HLO module, TagError if a rule makes a value that is not legal.
        """
        back = data
        if self._rules is not None:
            back = restore(data, self._origins.program, self._rules, keeps_numbers=True)
        if back == data and not self._inserted:
            return None
        module = HloModule(data)
        added = self._given_back(module, HloModule(back)) if back != data else {}
        for instruction, entries in self._inserted.entries_in(module, self._origins).items():
            added.setdefault(instruction, {}).update(entries)
        for computation in module.computations.values():
            self._leave_groups(computation, added)
        changed = {i: {**i.attributes, **entries} for i, entries in added.items()}
        changed = {i: entries for i, entries in changed.items() if entries != i.attributes}
        return module.with_attributes(changed) if changed else None

    def _given_back(self, module: HloModule, back: HloModule) -> Added:
        """The entries that instructions lack. Instructions in fusions are not scheduled."""
        assert self._rules is not None
        lacking: Added = {}
        for before, after in zip(module.instructions(), back.instructions(), strict=True):
            if before.computation.id not in module.fusions:
                added = {k: v for k, v in after.attributes.items() if k in self._rules.keys and k not in before.attributes}
                is_collective = opcodes.collective_of(before) != ""
                own = {k: v for k, v in added.items() if keys.is_given_back(k, before.opcode, is_collective=is_collective)}
                if own:
                    lacking[before] = own
        return lacking

    def _leave_groups(self, computation: Computation, added: Added) -> None:
        """Takes back new members of groups that XLA would refuse for a gap, or that have nothing to overlap with."""
        groups: dict[str, list[Instruction]] = {}
        for instruction in computation.instructions:
            value = added.get(instruction, {}).get(GROUP) or instruction.attributes.get(GROUP, "noop")
            if value != "noop":
                groups.setdefault(value.partition(":")[0], []).append(instruction)
        for group, members in groups.items():
            new = [member for member in members if GROUP in added.get(member, {})]
            if not new:
                continue
            # XLA took the values without a group away, and its scheduler ends the process at one.
            overlaps = group != "" and any(_is_asynchronous(member) for member in members)
            is_gap = overlaps and _has_gap(members)
            if is_gap:
                self.gaps.add(group)
            if is_gap or not overlaps:
                for member in new:
                    for key in (GROUP, _OF_GROUP):
                        added[member].pop(key, None)


def _has_gap(members: list[Instruction]) -> bool:
    """Whether a member depends on another one through an instruction that is no member. Members are in the module's order."""
    own = {member.id for member in members}
    between: set[int] = set()  # Not members, but dependent on one.
    instructions = members[0].computation.instructions
    for instruction in instructions[instructions.index(members[0]) : instructions.index(members[-1]) + 1]:
        depends = not between.isdisjoint(instruction.operand_ids)
        if instruction.id in own:
            if depends:
                return True
        elif depends or not own.isdisjoint(instruction.operand_ids):
            between.add(instruction.id)
    return False


def _is_asynchronous(instruction: Instruction) -> bool:
    return instruction.opcode.endswith("-start") or opcodes.collective_of(instruction) != ""
