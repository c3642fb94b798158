# SPDX-License-Identifier: Apache-2.0
"""The result of an audit: operations, their tags, and each tag's state at every stage."""

from __future__ import annotations

import enum
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from hlotag.errors import Diagnostic
    from hlotag.tagging.tags import Dropped


class TagState(enum.StrEnum):
    """What became of a tag at a stage. The first three say how it came to its operation, the others where it went."""

    ATTACHED = "attached"
    COMPLETED = "completed"
    PROPAGATED = "propagated"
    KEPT = "kept"
    DUPLICATED = "duplicated"
    MERGED = "merged"
    RESTORED = "restored"
    USED = "used"
    MOVED = "moved"
    CSED = "cse"
    FOLDED = "folded"
    DEAD = "dead"
    LOST = "lost"
    UNKNOWN = "unknown"

    @property
    def label(self) -> str:
        """The state in words."""
        return _LABELS.get(self, self.value)

    @property
    def meaning(self) -> str:
        """One sentence for a reader who sees the state for the first time."""
        return _MEANINGS[self]

    @property
    def needs_attention(self) -> bool:
        """Whether the tag is not where it belongs, and the operation gives no reason for that."""
        return self in (TagState.LOST, TagState.MOVED)


_LABELS = {TagState.CSED: "CSE'd", TagState.FOLDED: "folded away"}
_MEANINGS = {
    TagState.ATTACHED: "The program, a rule or a library put the tag on this operation.",
    TagState.COMPLETED: "The operation is part of what a tagged one lowers to.",
    TagState.PROPAGATED: "The tag came from another operation: a call, a region, or the operation this one is derived from.",
    TagState.KEPT: "The operation is there, and so is its tag.",
    TagState.DUPLICATED: "The operation became several instructions, and each has the tag.",
    TagState.MERGED: "The operation shares an instruction with others, and the tag is on it.",
    TagState.RESTORED: "XLA dropped the tag, and hlotag's HLO stage put it back.",
    TagState.USED: "XLA read the tag, and took it away.",
    TagState.MOVED: "The tag is on an instruction of another operation.",
    TagState.CSED: "The operation was equal to another one, which stayed with its own tags.",
    TagState.FOLDED: "The operation was computed at compile time or simplified away.",
    TagState.DEAD: "Nothing that the program returns needs the operation.",
    TagState.LOST: "The operation is there, and its tag is not.",
    TagState.UNKNOWN: "The dump does not say which instructions the operation became.",
}

HOW_IT_CAME = (TagState.ATTACHED, TagState.COMPLETED, TagState.PROPAGATED)
WHERE_IT_WENT = tuple(state for state in TagState if state not in HOW_IT_CAME)

# In the order of the report.
_ATTENTION = (
    TagState.LOST,
    TagState.MOVED,
    TagState.UNKNOWN,
    TagState.CSED,
    TagState.FOLDED,
    TagState.DEAD,
    TagState.USED,
    TagState.MERGED,
    TagState.DUPLICATED,
    TagState.RESTORED,
    TagState.KEPT,
    TagState.PROPAGATED,
    TagState.COMPLETED,
    TagState.ATTACHED,
)
RANK = {state: rank for rank, state in enumerate(_ATTENTION)}


class Stage(enum.StrEnum):
    """Where an audit looks."""

    LOWERED = "StableHLO"
    UNOPTIMIZED = "HLO"
    OPTIMIZED = "optimized HLO"


class Op(NamedTuple):
    """An operation of the module that XLA is given; where only HLO is at hand, an instruction of the first module.

    Attributes:
        id: Its place in the module, from 0, by which tags and other operations refer to it.
        name: What it is: `stablehlo.dot_general`, or an HLO opcode.
        scope: The path of named scopes, transformations unwrapped: `layer_0/attention`.
        function: The function, or computation, that holds it.
        phase: "forward" or "backward".
        file: The user's file; empty if it is not known.
        line: The line in it, from 1; 0 if it is not known.
        operands: The operations that made its operands.
        instructions: What it is in the last module: names of instructions.
        type: Element type and shape of its result, `f32[8,128]`; empty if it was not computed.
        flops: Floating-point operations of a product; elements of what computes element by element; in a loop's body,
            of one iteration.
        bytes: The size of its operands and results.
        fusions: The fusions that its instructions are in.
        derived_from: Of a backward operation, the forward operation that it is derived from; several if it may be any of these.
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

    @property
    def source(self) -> str:
        """`file:line`, the file without its directory; empty if it is not known."""
        return f"{os.path.basename(self.file)}:{self.line}" if self.file else ""


class Step(NamedTuple):
    """A tag at one stage.

    Attributes:
        stage: Where.
        state: What became of it there.
        by: The pass of hlotag's or XLA's that did it; empty if that is not known, or nothing changed.
        detail: The rule, the tag it came from, or what happened, for people.
        confidence: Between 0 and 1, for tags that were inferred; None for exact ones.
        instructions: The instructions that bear the tag.
    """

    stage: Stage
    state: TagState
    by: str = ""
    detail: str = ""
    confidence: float | None = None
    instructions: tuple[str, ...] = ()


# The tags of an operation: keys and values, and each one's way so far.
Ways = dict[tuple[str, str], list[Step]]


class Tag(NamedTuple):
    """A key and value on an operation, and its way through the stages.

    Attributes:
        key: The key.
        value: The value, as text.
        op: The operation that it belongs to.
        steps: What became of it, one for each stage that it reached.
    """

    key: str
    value: str
    op: Op
    steps: tuple[Step, ...]

    @property
    def state(self) -> TagState:
        """What became of it in the end."""
        return self.steps[-1].state

    @property
    def origin(self) -> TagState | None:
        """How it came to the operation; None where that is not known, as in a dump of XLA's."""
        first = self.steps[0].state
        return first if first in HOW_IT_CAME else None

    def __str__(self) -> str:
        """One line."""
        place = f" ({self.op.source})" if self.op.source else ""
        return f"{self.key}={self.value} on {self.op.name}{place}: {self.state.label}"


class Stray(NamedTuple):
    """A tag on an instruction that stands for operations without it.

    Attributes:
        key: The key.
        value: The value.
        instruction: The instruction of the last module that bears it.
        opcode: What that instruction is.
        op: The operation that the tag was taken from, if there is one that misses it.
    """

    key: str
    value: str
    instruction: str
    opcode: str
    op: Op | None = None


class Effect(NamedTuple):
    """Whether the compiler did what a key and value ask for.

    Attributes:
        key: The key.
        value: The value.
        obeyed: Whether it happened; None where this compiler does not read the key, or its module does not show it.
        evidence: What shows it: instructions, their places, their memory.
        reason: Why it did not happen, most likely, or cannot be told; empty if it happened.
    """

    key: str
    value: str
    obeyed: bool | None
    evidence: str
    reason: str = ""

    def __str__(self) -> str:
        """One line."""
        verdict = {True: "obeyed", False: "not obeyed", None: "not judged"}[self.obeyed]
        return f"{self.key}={self.value}: " + "; ".join(filter(None, (verdict, self.evidence, self.reason)))


@dataclass
class Findings:
    """Where every tag of a program went.

    Attributes:
        name: The module's name.
        platform: What it was compiled for; empty if it was not.
        ops: The operations of the module that XLA is given.
        tags: Every tag on every operation, in the order of the operations.
        strays: Tags on instructions that they do not belong to.
        dropped: Tags of the program that no operation could take.
        effects: By key and value, whether the compiler obeyed.
        stages: The stages that could be looked at.
        notes: What limits this audit, in words.
        instruction_count: How many instructions the last module has, those inside fusions included.
        reports: What hlotag's passes warned of or remarked on, such as a rule that matched nothing.
        hlo_stage: Whether hlotag's HLO stage took part; None where that is not known.
        source_root: The folder whose files views may quote lines of, `/` for a program of this process. None for a module or a
            dump, which may name any file, until somebody sets it (`dataclasses.replace`).
    """

    name: str
    ops: Sequence[Op]
    tags: Sequence[Tag]
    strays: Sequence[Stray] = ()
    dropped: Sequence[Dropped] = ()
    effects: Sequence[Effect] = ()
    platform: str = ""
    stages: Sequence[Stage] = ()
    notes: Sequence[str] = ()
    instruction_count: int = 0
    reports: Sequence[Diagnostic] = ()
    hlo_stage: bool | None = None
    source_root: str | None = None

    @cached_property
    def lost(self) -> list[Tag]:
        """The tags that are gone although their operation is still there."""
        return self.in_state(TagState.LOST)

    @cached_property
    def counts(self) -> Counter[TagState]:
        """How many tags ended in each state."""
        return Counter(tag.state for tag in self.tags)

    def in_state(self, *states: TagState) -> list[Tag]:
        """The tags that ended in one of these states.

        Args:
            *states: Which.

        Returns:
            The tags, in the order of their operations.
        """
        return [tag for tag in self.tags if tag.state in states]


@dataclass(frozen=True)
class Group:
    """The tags with one key and value.

    Attributes:
        key: The key.
        value: The value.
        tags: The tags.
    """

    key: str
    value: str
    tags: tuple[Tag, ...]

    @cached_property
    def states(self) -> Counter[TagState]:
        """How many ended in each state."""
        return Counter(tag.state for tag in self.tags)

    @cached_property
    def phases(self) -> Counter[str]:
        """How many are in each phase."""
        return Counter(tag.op.phase for tag in self.tags)


def groups(tags: Iterable[Tag]) -> list[Group]:
    """Sorts tags by key and value.

    Args:
        tags: Of one audit.

    Returns:
        One group for each key and value; those that need attention first.
    """
    found: dict[tuple[str, str], list[Tag]] = {}
    for tag in tags:
        found.setdefault((tag.key, tag.value), []).append(tag)
    result = [Group(key, value, tuple(members)) for (key, value), members in found.items()]
    return sorted(result, key=lambda g: (-g.states[TagState.LOST], -g.states[TagState.MOVED], g.key, g.value))
