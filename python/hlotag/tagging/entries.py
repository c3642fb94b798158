# SPDX-License-Identifier: Apache-2.0
"""What does an entry in an equation's context say, and to which operations?"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from types import EllipsisType
from typing import Any

from hlotag.tagging.keys import as_text
from hlotag.tagging.phases import Phase

# What operations of one phase have of a key. None: the key is taken away. `...`: the entry says nothing, and another one may.
Text = str | EllipsisType | None
Entries = dict[str, str | None]


@dataclass(frozen=True)
class Phased:
    """A value that depends on the phase of an operation. It equals no value of a user's.

    Attributes:
        forward: For the operations of the program.
        derived: For operations that autodiff derives.
        rematted: For operations that `jax.checkpoint` recomputes.
    """

    forward: Text
    derived: Text
    rematted: Text

    def of(self, phase: Phase) -> Text:
        """For operations of a phase."""
        if phase is Phase.DERIVED:
            return self.derived
        return self.rematted if phase is Phase.REMATTED else self.forward


@dataclass(frozen=True)
class Inherited(Phased):
    """The value of an equation that a backward rule evaluates, and that was traced outside of it.

    Attributes:
        was: The value outside of the rule, which equations within this one have.
    """

    was: Phased


class ValueTag(enum.Enum):
    """How far a value tag of hlotag's is: the value of its entry `VALUE`. JAX's value tag has none."""

    CHECKED = "checked"
    """Its entries are legal."""
    APPLIED = "applied"
    """The equations behind the value have its entries."""


VALUE = "hlotag.value"
# The value of a key that was removed within a block: enclosing tags must not restore it.
UNSET = Phased(None, None, None)


def make_value(forward: Text, derived: Text, rematted: Text) -> str | Phased:
    """The value of a key with a text for each phase: the text if they have one."""
    return forward if isinstance(forward, str) and forward == derived == rematted else Phased(forward, derived, rematted)


def merge_values(outer: Any, inner: str | Phased) -> Any:
    """The value of a key in a context that has `outer`, or None, with another tag."""
    if outer is None or not isinstance(inner, Phased):
        return inner
    was = outer if isinstance(outer, Phased) else Phased(*[as_text(outer)] * 3)
    pairs = (was.forward, inner.forward), (was.derived, inner.derived), (was.rematted, inner.rematted)
    return make_value(*(old if new is ... else new for old, new in pairs))


def settle(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata that operations derived from those with `metadata` have, as their own."""
    return {
        key: make_value(value.derived, value.derived, value.rematted) if isinstance(value, Phased) else value
        for key, value in metadata.items()
    }


def inherit(metadata: dict[str, Any], outside: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of an equation in a backward rule; its values that equal those `outside` are of derived operations."""
    # Those that an outer rule has changed stay: they know the value that equations within have.
    same = {key: value for key, value in outside.items() if type(value) is Phased and metadata.get(key) == value}
    return metadata | {key: Inherited(value.derived, value.derived, value.rematted, value) for key, value in same.items()}


def inherit_within(metadata: Mapping[str, Any], around: Mapping[str, Any]) -> Mapping[str, Any]:
    """The metadata of an equation within one with the metadata `around`."""
    same = {key: value for key, value in around.items() if isinstance(value, Inherited) and metadata.get(key) == value.was}
    return {**metadata, **same} if same else metadata


def entries_in(metadata: Mapping[str, Any], phase: Phase) -> Entries:
    """The entries of a context for operations of a phase."""
    texts = {key: value.of(phase) if isinstance(value, Phased) else as_text(value) for key, value in metadata.items()}
    return {key: text for key, text in texts.items() if text is not ...}


def forward_texts(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """The entries as JAX attaches them where hlotag has no part in lowering; the same object if nothing changes."""
    if not any(isinstance(value, (Phased, ValueTag)) for value in metadata.values()):
        return metadata
    texts = {key: value.forward if isinstance(value, Phased) else value for key, value in metadata.items() if key != VALUE}
    return {key: text for key, text in texts.items() if text is not None and text is not ...}
