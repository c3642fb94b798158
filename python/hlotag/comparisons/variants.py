# SPDX-License-Identifier: Apache-2.0
"""What is a variant of a program? Another function, rules, options of the compiler, or what was found out about one before."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hlotag._util.arguments import show
from hlotag.audits.audit import Audit
from hlotag.errors import ArgumentError
from hlotag.passes.rules import check_rules, load_rules
from hlotag.profiles.profile import Profile
from hlotag.tagging.rules import Rule

# Limit of variants of a grid.
_MOST = 64
# The value of an entry that a choice of a grid does not have.
_LEFT_OUT = "none"


@dataclass(frozen=True)
class Variant:
    """What a variant changes.

    Attributes:
        fun: The function; None for that of `compare`.
        args: Its arguments; None for those of `compare`.
        kwargs: Its keyword arguments; None for those of `compare`.
        rules: Rules in addition to those of the active stage, or the path of their file.
        options: XLA's options, by name, as for `jax.stages.Lowered.compile(compiler_options=...)`.

    Examples:
        >>> hlotag.comparisons.Variant(options={"xla_cpu_enable_fast_math": True}).options
        {'xla_cpu_enable_fast_math': True}
    """

    fun: Callable[..., Any] | None = None
    args: Sequence[Any] | None = None
    kwargs: Mapping[str, Any] | None = None
    rules: Iterable[Rule] | str | os.PathLike[str] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def read_rules(self) -> tuple[Rule, ...]:
        """The rules. Raises what `load_rules` raises."""
        if isinstance(self.rules, (str, os.PathLike)):
            return load_rules(self.rules)
        return check_rules(self.rules)


def make_variant(name: str, given: Any) -> Variant | Audit | Profile:
    """Makes a variant of what `compare` was given for it. Raises ArgumentError for anything else."""
    match given:
        case Variant() | Audit() | Profile():
            return given
        case None:
            return Variant()
        case Rule():
            return Variant(rules=(given,))
        case str() | os.PathLike() | list() | tuple():
            return Variant(rules=given)
        case _ if callable(given):
            return Variant(fun=given)
    raise ArgumentError(
        f"variant {name!r}: expected None, rules, the path of their file, a function, a hlotag.comparisons.Variant, an Audit "
        f"or a Profile, got {show(given)}"
    )


def grid(rules: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> dict[str, Variant]:
    """Makes a variant for each choice of values of rules.

    Args:
        rules: The fields of a `Rule`, or of several. A list is a choice: of a pattern, `{"scope": ["layer_0", "layer_1"]}`, or of
            a value in `attrs`. The value "none" in `attrs` leaves out the key.

    Returns:
        The variants by name, `FUSE_LIMIT=4, scope=layer_0`, in the order of the lists; all choices together, at most 64.

    Raises:
        ArgumentError: There are more variants, or no list.
        TagError: The fields are not those of a rule.

    Examples:
        >>> list(hlotag.comparisons.grid({"attrs": {"FUSE_LIMIT": ["none", "4", "8"]}, "scope": "mlp"}))
        ['FUSE_LIMIT=none', 'FUSE_LIMIT=4', 'FUSE_LIMIT=8']
    """
    found = choices_of([rules] if isinstance(rules, Mapping) else rules)
    return {name: Variant(rules=tuple(Rule(**fields) for fields in chosen)) for name, chosen in found.items()}


def choices_of(rules: Sequence[Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """By the name of each choice of `grid`, the fields of its rules. Raises ArgumentError as `grid`."""
    choices: dict[tuple[int, str, str], list[Any]] = {}
    for number, rule in enumerate(rules):
        entries = rule.get("attrs", {})
        choices |= {(number, "attrs", key): value for key, value in entries.items() if isinstance(value, list)}
        choices |= {(number, "", name): value for name, value in rule.items() if isinstance(value, list) and name != "unless"}
    count = math.prod(map(len, choices.values()))
    if not choices or not 0 < count <= _MOST:
        has = f"{count} variants" if choices else "no list"
        raise ArgumentError(f"a grid has lists, and a variant for each choice, {_MOST} at most; this one has {has}")
    found = {}
    for values in itertools.product(*choices.values()):
        chosen = dict(zip(choices, values, strict=True))
        name = ", ".join(f"{name}={value}" for (_, _, name), value in chosen.items())
        made = [_choose(rule, number, chosen) for number, rule in enumerate(rules)]
        found[name] = [fields for fields in made if fields["attrs"]]
    return found


def _choose(rule: Mapping[str, Any], number: int, chosen: Mapping[tuple[int, str, str], Any]) -> dict[str, Any]:
    """The fields of a rule with the chosen values."""
    own = {(place, name): value for (n, place, name), value in chosen.items() if n == number}
    fields = {name: own.get(("", name), value) for name, value in rule.items()}
    entries = {key: own.get(("attrs", key), value) for key, value in rule.get("attrs", {}).items()}
    return fields | {"attrs": {key: value for key, value in entries.items() if value != _LEFT_OUT}}
