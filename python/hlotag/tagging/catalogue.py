# SPDX-License-Identifier: Apache-2.0
"""What is known about a key, and the catalogue of keys: keys.toml, as read by Python and by the build. Needs no JAX."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Derived = Literal["same", "drop"]
BACKENDS = ("cpu", "gpu", "tpu")


@dataclass(frozen=True)
class Values:
    """The legal values of a key, as text: the union of words, integers and matches.

    Attributes:
        choices: Words.
        integer_bits: The width of integers; 0 for none.
        pattern: A regular expression that matches the whole text; empty for none.
        text: The description; composed of the others by default.
        ignore_case: Whether XLA compares the words without regard to case.
    """

    choices: tuple[str, ...] = ()
    integer_bits: int = 0
    pattern: str = ""
    text: str = ""
    ignore_case: bool = False

    def __str__(self) -> str:
        """For messages and tables: `host, dense` or `an integer`."""
        if self.text:
            return self.text
        parts = [*self.choices, *(["an integer"] if self.integer_bits else []), *([self.pattern] if self.pattern else [])]
        return ", ".join(parts)

    def allow(self, text: str) -> bool:
        """Whether `text` is a legal value."""
        if text in self.choices or (self.ignore_case and text.lower() in self.choices):
            return True
        if self.pattern and re.fullmatch(self.pattern, text):
            return True
        if not self.integer_bits or not re.fullmatch("[+-]?[0-9]+", text):
            return False
        limit = 1 << (self.integer_bits - 1)
        # Check the length first: Python refuses to convert thousands of digits.
        return len(text) <= 20 and -limit <= int(text) < limit


@dataclass(frozen=True)
class Key:
    """What is known about one key.

    Attributes:
        name: The key; a reserved family ends in `*`.
        values: The legal values; None if any text is legal.
        ops: Kinds of operations on which XLA reads the key.
        consumer: The backends that read the key by XLA's source: "cpu", "gpu", "tpu", "all", or several; "registered" for a
            registered key.
        derived: What derived operations get by default: "same", or "drop" for nothing.
        doc: One or two sentences.
        reserved: Whether the key belongs to JAX, Shardy, XLA or hlotag, and tags must not use it.
        otherwise: What XLA does with an illegal value.
        taken_by: The backends whose compilers remove the key after they read it.
        seen: The backends whose compilers were seen to read the key, with a supported jax.
        late: The backends whose compilers read the key after JAX's PRE_SCHEDULER, where the HLO pass gives a lost one back.
        late_on: The opcodes that a lost key is given back to there, or "collectives"; empty for all.
        compiler: Whether compilers get the key, if that was said of a registered one.
        restored: Whether the HLO pass gives the key back where XLA's passes drop it. False for entries that a library writes for
            one operation.
        kept: Whether the key means its own operation only, so that passes hand it on to no body, call or helper.
    """

    name: str
    values: Values | None
    ops: tuple[str, ...]
    consumer: str
    derived: Derived
    doc: str
    reserved: bool = False
    otherwise: str = ""
    taken_by: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
    late_on: tuple[str, ...] = ()
    compiler: bool | None = None
    restored: bool = True
    kept: bool = False

    @property
    def readers(self) -> tuple[str, ...]:
        """The backends that were seen to read the key, or read it by XLA's source."""
        return tuple(b for b in BACKENDS if b in self.seen or b in self.consumer or self.consumer == "all")

    @property
    def unseen(self) -> tuple[str, ...]:
        """The backends that read the key by XLA's source, and were not seen to."""
        return tuple(b for b in self.readers if b not in self.seen)


FLAG = Values(("true", "false"))


def _read(file: Path) -> Iterator[Key]:
    """The keys of a file such as keys.toml, in its order."""
    import tomllib  # Slow to import.

    document = tomllib.loads(file.read_text(encoding="utf-8"))
    reserved = document.pop("reserved")
    for name, fields in document.items():
        values = fields.pop("values", None)
        yield Key(name, values and Values(**_with_tuples(values)), **_with_tuples(fields))
    for name, owner in reserved.items():
        yield Key(name, None, ("any",), "all", "drop", f"Belongs to {owner}.", reserved=True)


def _with_tuples(fields: dict[str, Any]) -> dict[str, Any]:
    return {field: tuple(value) if isinstance(value, list) else value for field, value in fields.items()}


@functools.cache
def known_keys() -> dict[str, Key]:
    """The catalogue by name, in the file's order; read on first need."""
    return {key.name: key for key in _read(Path(__file__).with_name("keys.toml"))}
