# SPDX-License-Identifier: Apache-2.0
"""The result of an audit: operations, instructions, and what became of each tag."""

from __future__ import annotations

import enum
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from hlotag._text import count
from hlotag._util.groups import group
from hlotag.tagging import keys

# The `by` of a tag that XLA's first module lacks.
CONVERSION = "conversion to HLO"


class TagState(enum.StrEnum):
    """What became of a tag.

    Attributes:
        meaning: The definition of the state in one sentence.
    """

    meaning: str

    def __new__(cls, value: str, meaning: str) -> TagState:
        """A state and its meaning."""
        state = str.__new__(cls, value)
        state._value_, state.meaning = value, meaning
        return state

    LOST = "lost", "An instruction computes the operation without the tag."
    UNKNOWN = "unknown", "The modules do not say which instructions the operation became."
    ELIMINATED = "eliminated", "No instruction computes the operation, and the tag went with it."
    CONSUMED = "consumed", "The compiler read the tag, then took it away."
    RESTORED = "restored", "XLA dropped the tag, and hlotag wrote it again."
    KEPT = "kept", "An instruction computes the operation and has the tag."


RANK = {state: rank for rank, state in enumerate(TagState)}
"""The order of states in the report, lost tags first."""


# "recomputed" is the forward pass that `jax.checkpoint` repeats in the backward pass. "other" is what a program with a gradient
# does outside of it, such as an optimizer, and what several phases share.
PHASES = ("forward", "backward", "recomputed", "other")


def default_phase(phases: Iterable[str]) -> str:
    """The phase of operations that JAX differentiates neither forward nor backward: "other" in a program with a backward pass.

    Empty texts among the program's `phases` stand for such operations.
    """
    return "other" if not {"backward", "recomputed"}.isdisjoint(phases) else "forward"


class Op(NamedTuple):
    """An operation of the module that XLA compiles; an instruction of XLA's first module if the audit has only HLO.

    Attributes:
        id: The index of the operation in the module, by which tags and other operations refer to it.
        name: `stablehlo.dot_general`, or an HLO opcode.
        scope: The path of named scopes without transformations: `layer_0/attention`.
        function: The function or computation that contains the operation.
        phase: One of `PHASES`.
        file: The user's file; empty if unknown.
        line: The line in the file, from 1; 0 if unknown.
        operands: The operations that define its operands.
        instructions: The names of its instructions in the last module.
        type: Element type and shape of its result, `f32[8,128]`; empty in an audit of HLO alone.
        flops: Those of its instructions on one device; in a loop's body, those of one iteration. 0 if it has no instructions.
        bytes: Those that its instructions write, or read from places that other values choose.
        fusions: The fusions that its instructions are in.
        derived_from: The forward operations of the line and scope of a backward operation, which it may be derived from; of an
            inserted collective, the operations that take the gathered value, or make the summed one.
        inserted: Whether XLA's partitioner inserted it: a collective that the program does not have.
        serves: Of a collective without a line of the program, the operations that take the gathered value, or make the summed
            one. XLA's partitioner inserts such collectives, and JAX's autodiff for the replicated arguments of a `shard_map`.
    """

    id: int
    name: str
    scope: str = ""
    function: str = ""
    phase: str = "forward"
    file: str = ""
    line: int = 0
    operands: tuple[int, ...] = ()
    instructions: tuple[str, ...] = ()
    type: str = ""
    flops: int = 0
    bytes: int = 0
    fusions: tuple[str, ...] = ()
    derived_from: tuple[int, ...] = ()
    inserted: bool = False
    serves: tuple[int, ...] = ()

    @property
    def title(self) -> str:
        """The name without its dialect, and the type: `dot_general f32[8,128]`."""
        return f"{self.name.rpartition('.')[2]} {self.type}".strip()

    @property
    def source(self) -> str:
        """`file:line`, the file without its directory; empty if unknown."""
        return f"{os.path.basename(self.file)}:{self.line}" if self.file else ""


class Instruction(NamedTuple):
    """An instruction of the last module that computes or moves something of the program, or that XLA added and runs.

    Attributes:
        name: The name.
        opcode: The opcode.
        fusion: The name of the fusion that it is in; empty if it is in none.
        ops: The ids of the operations that it computes: first its own, then those that XLA merged into it.
        parts: The ids of the operations that it computes a piece of.
        carries: The ids of the operations whose result it moves.
        scope: Its named scopes, those of inlined calls included.
        phase: One of `PHASES`. An operation of a function has one for all callers, its instructions each their own.
        flops: Its flops in one execution on one device, as XLA counts them, and 1 for a transcendental function.
        bytes: Those that it writes, or reads from places that other values choose. 0 for a value that stays within a fusion.
        effort: Flops and bytes on one scale, by which time is divided.
        runs: How often it runs in a run of the program in which each conditional takes its largest branch: 0 in other branches. A
            loop of unknown trips counts once.
        caller: The loop, call or branch that runs its computation; empty for none, and for several.
        collective: The opcode of the collective that it is or ends, "all-gather"; empty for other instructions.
        start: Of a collective, the instruction that starts it: itself, unless it ends an asynchronous pair.
        group: Of a collective, how many devices exchange values; 0 for all.
        shares: Of a combined collective, the bytes of each operand, in the order of its operations.
        most_runs: How often it runs, whichever branches are taken.
        under: The branches and the loops of unknown trips around it, outermost first.
        scopes: By owner, the named scopes of the operation under the calls that the instruction was inlined from. Empty if
            all owners have `scope` and `phase`.
        phases: As `scopes`, the phases.
    """

    name: str
    opcode: str
    fusion: str = ""
    ops: tuple[int, ...] = ()
    parts: tuple[int, ...] = ()
    carries: tuple[int, ...] = ()
    scope: str = ""
    phase: str = ""
    flops: int = 0
    bytes: int = 0
    effort: int = 0
    runs: int = 1
    caller: str = ""
    collective: str = ""
    start: str = ""
    group: int = 0
    shares: tuple[int, ...] = ()
    most_runs: int = 1
    under: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    phases: tuple[str, ...] = ()

    @property
    def owners(self) -> tuple[int, ...]:
        """The operations that its work belongs to."""
        return self.ops or self.parts or self.carries[:1]

    @property
    def weights(self) -> tuple[int, ...]:
        """How the owners divide its work: a combined collective's by their bytes, others equally."""
        count = len(self.owners)
        return self.shares if len(self.shares) == count and any(self.shares) else (1,) * count

    def divide(self, amount: int) -> list[int]:
        """Divides an amount of work among the owners. The first ones have what is left over."""
        whole, weights = sum(self.weights), self.weights
        found, behind = [], 0
        for weight in reversed(weights):
            found.append(amount * (behind + weight) // whole - amount * behind // whole)
            behind += weight
        return found[::-1]

    @property
    def places(self) -> list[tuple[str, str]]:
        """By owner, its scope and phase in this instruction."""
        if self.scopes:
            return list(zip(self.scopes, self.phases, strict=True))
        return [(self.scope, self.phase)] * len(self.owners)

    @property
    def kernel(self) -> str:
        """The name of what it runs in: its fusion, or itself."""
        return self.fusion or self.name


class Origin(NamedTuple):
    """How an operation got a tag.

    Attributes:
        how: "attached" by the program, a rule or a library; "propagated" from another operation.
        by: The pass of hlotag's.
        detail: The rule, or the source of the tag, in words.
        confidence: Between 0 and 1 for an inferred tag; None for an exact one.
    """

    how: str = "attached"
    by: str = ""
    detail: str = ""
    confidence: float | None = None


# The tags of one operation: by key and value, how the operation got it.
OpTags = dict[tuple[str, str], Origin | None]


class Tag(NamedTuple):
    """A key and value on an operation, and what became of them.

    Attributes:
        key: The key.
        value: The value, as text.
        op: The operation that it belongs to.
        state: What became of it.
        instructions: The instructions that compute the operation: of a kept or restored tag, those that have it; of a lost one,
            those that lack it.
        shared: The ids of the other operations that these instructions compute.
        by: XLA's pass that removed the tag, or the operation's last instruction. Empty if unknown, or if nothing was removed.
        why: What a lost tag's instructions have instead; why XLA removed the operation of an eliminated tag. Empty if unknown.
        carrier: The instruction that has a lost tag instead, and only moves the operation's result; empty for none.
        origin: How the operation got the tag; None if unknown, as in a dump of XLA's.
    """

    key: str
    value: str
    op: Op
    state: TagState
    instructions: tuple[str, ...] = ()
    shared: tuple[int, ...] = ()
    by: str = ""
    why: str = ""
    carrier: str = ""
    origin: Origin | None = None

    @property
    def needs_attention(self) -> bool:
        """Whether the tag is lost. Entries that a library writes for one operation are XLA's to keep or to lose."""
        return self.state is TagState.LOST and not keys.is_left(self.key)

    @property
    def details(self) -> str:
        """What else is known of the state: `2 instructions, shared with 1 operation`, `equal to another, by cse`."""
        if self.state in (TagState.KEPT, TagState.RESTORED):
            number = f"{len(self.instructions)} instructions" if len(self.instructions) > 1 else ""
            shared = f"shared with {count(len(self.shared), 'operation')}" if self.shared else ""
            return ", ".join(filter(None, (number, shared, self.by and f"dropped by {self.by}")))
        carrier = f"{self.carrier} has the tag" if self.carrier else ""
        return ", ".join(filter(None, (self.why, carrier, self.by and f"by {self.by}")))

    def __str__(self) -> str:
        """One line."""
        place = f" ({self.op.source})" if self.op.source else ""
        return f"{self.key}={self.value} on {self.op.name}{place}: {self.state}"


class Verdict(enum.StrEnum):
    """What a key and value changed, against the program without the tags.

    - CHANGED: the compiler did what the key asks for; without the tags it does something else.
    - SAME: the compiler does the same without the tags.
    - REFUSED: the tags changed what the compiler does, and it is not what the key asks for.
    - UNREAD: this compiler does not read the key, or does not get it.
    - OPEN: the compiled module does not show the effect, or there is nothing to compare it with.
    """

    CHANGED = "changed"
    SAME = "no-difference"
    REFUSED = "refused"
    UNREAD = "not-read"
    OPEN = "not-judged"

    @property
    def label(self) -> str:
        """The verdict in words."""
        return "not read here" if self == Verdict.UNREAD else self.value.replace("-", " ")


class Effect(NamedTuple):
    """What a key and value changed.

    Attributes:
        key: The key.
        value: The value.
        verdict: The verdict.
        what: What the key is about: "schedule", "stream", "memory space", "thread", "fusion", "kept call", ...
        evidence: The instructions that show the effect.
        without: What the program without the tags has instead; empty if that is the same, or not known.
        reason: Why the compiler did not do it, or why there is no verdict; also what to know about the effect.
    """

    key: str
    value: str
    verdict: Verdict
    what: str = ""
    evidence: str = ""
    without: str = ""
    reason: str = ""

    @property
    def details(self) -> str:
        """What shows the effect, and why."""
        return "; ".join(filter(None, (self.evidence, self.without and f"without the tags: {self.without}", self.reason)))

    def __str__(self) -> str:
        """One line."""
        what = f" ({self.what})" if self.what and self.verdict != Verdict.UNREAD else ""
        return f"{self.key}={self.value}: " + "; ".join(filter(None, (f"{self.verdict.label}{what}", self.details)))


def sum_work(instructions: Iterable[Instruction]) -> dict[int, list[int]]:
    """Divides the work of instructions among their operations.

    Returns for each operation whether an instruction computes it, and flops, bytes and effort.
    """
    found: dict[int, list[int]] = {}
    for each in instructions:
        amounts = each.flops, each.bytes, each.effort
        work = zip(*map(each.divide, amounts), strict=True) if len(each.owners) > 1 else (amounts,)
        for number, parts in zip(each.owners, work, strict=False):  # An instruction of XLA's has no owners.
            sums = found.setdefault(number, [0, 0, 0, 0])
            sums[0] |= bool(each.ops)
            for place, amount in enumerate(parts, start=1):
                sums[place] += amount
    return found


@dataclass(frozen=True)
class EntryTags:
    """The tags with one key and value."""

    key: str
    value: str
    tags: tuple[Tag, ...]

    @cached_property
    def states(self) -> Counter[TagState]:
        """How many tags ended in each state."""
        return Counter(tag.state for tag in self.tags)

    @cached_property
    def phases(self) -> Counter[str]:
        """How many tags are in each phase."""
        return Counter(tag.op.phase for tag in self.tags)


def phases_in(entries: Sequence[EntryTags]) -> list[str]:
    """The phases of the tags, in the order of `PHASES`. "forward" and "backward" are always there."""
    return [phase for phase in PHASES if phase in PHASES[:2] or any(entry.phases[phase] for entry in entries)]


def by_entry(tags: Iterable[Tag]) -> list[EntryTags]:
    """Groups the tags of one audit by key and value, those with most lost tags first."""
    found = group(((tag.key, tag.value), tag) for tag in tags)
    result = [EntryTags(key, value, tuple(members)) for (key, value), members in found.items()]
    return sorted(result, key=lambda g: (-g.states[TagState.LOST], g.key, g.value))
