# SPDX-License-Identifier: Apache-2.0
"""Rules: which operations get entries because of their kind, scope, source or function, without an edit of the program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from hlotag._core import names_in, why_no_pattern
from hlotag._util.arguments import check_choice, check_flag, check_text, did_you_mean, show
from hlotag.errors import TagError
from hlotag.tagging import keys

PATTERNS = ("op", "scope", "source", "function", "caller")
_PHASES = ("forward", "backward", "both")
# What a rule for inserted collectives has no use for.
_OF_THE_PROGRAM = ("function", "caller", "grad", "remat")
Entries = Mapping[str, str | None]
Bindings = tuple[tuple[str, str], ...]
"""The text that each name in braces stands for."""


@dataclass(frozen=True, repr=False)
class Rule:
    """Tags the operations that match all of its patterns; `*` matches any text, `?` one character.

    Attributes:
        attrs: Keys and values to attach; strings, bools, ints or floats. A name in braces stands for text of a pattern.
        op: The operation, or the one that it derives from, with or without its dialect: "dot_general", "stablehlo.*". Operations
            in the body of a reduction, a sort or a scatter are part of it and match nothing.
        scope: Successive elements of the path of named scopes: "decoder/layer_*/attention". Here and in the next fields, a name
            in braces matches text without a slash, which `attrs` can use: `Rule({"n": "{n}"}, scope="layer_{n}/attention")`.
            A name that no pattern has is then an error.
        source: The line of user code that the operation is from, file and line: "model.py:42"; a pattern without a directory
            matches the end of the path. The line of a call or a loop is not that of the operations in it.
        function: The name of a jitted function; "main" for the outermost one.
        caller: As `source`, for any line of user code on the way to the operation: its own, and those of its callers.
        phase: "forward", "backward" or "both".
        grad: What operations derived by autodiff get: "same", "drop", or a mapping of their own. By default, each key has
            its own policy as for `hlotag.tag`, unless the phase says which operations are meant.
        remat: What operations that `jax.checkpoint` recomputes get; by default what `grad` says.
        unless: Patterns that exclude: a mapping of these fields, which excludes what matches all of them, or a list of such
            mappings.
        inserted: Whether the rule is for collectives that XLA's partitioner inserts, and not for operations of the program. `op`
            is then HLO's opcode, "all-gather", without "-start"; scope, source and phase are those of the operation that takes
            the gathered value or makes the summed one. They get the tags before the compiler schedules them.

    Raises:
        TagError: No pattern is given, a field has a wrong type or value, a key is reserved, or a value is not legal for its key.

    Examples:
        >>> rule = hlotag.Rule({"block": "attention {n}"}, scope="layer_{n}/attention", unless={"scope": "layer_7"})
        >>> layer = jax.named_scope("layer_0/attention")(jnp.dot)
        >>> with hlotag.stage(rules=[rule]):
        ...     program = jax.jit(layer).lower(jnp.ones(4), jnp.ones(4))
        >>> 'block = "attention 0"' in program.as_text()
        True
    """

    attrs: Mapping[str, Any]
    op: str | None = None
    scope: str | None = None
    source: str | None = None
    function: str | None = None
    caller: str | None = None
    phase: str = "both"
    grad: keys.Grad | None = None
    remat: keys.Grad | None = None
    unless: Mapping[str, str] | Sequence[Mapping[str, str]] = ()
    inserted: bool = False
    # Compared: equal values may have different texts.
    _text: str = field(init=False)
    # The file and line of the rule, for messages.
    _at: str = field(init=False, compare=False, default="")

    def __post_init__(self) -> None:
        patterns = self.patterns()
        for name, pattern in patterns.items():
            _check_pattern(f"rule field {name!r}", name, pattern)
        if not patterns:
            raise TagError(f"{self!r}: a rule needs at least one of {', '.join(PATTERNS)}")
        if twice := sorted(name for name in set(self.captures()) if self.captures().count(name) > 1):
            raise TagError(f"{self!r}: the name {twice[0]!r} in braces occurs in two patterns")
        check_choice("rule field 'phase'", self.phase, _PHASES, TagError)
        if not isinstance(self.attrs, Mapping):
            raise TagError(f"rule field 'attrs' must be a mapping of keys to values, got {show(self.attrs)}")
        if not self.attrs:
            raise TagError("a rule needs attrs: the keys and values to attach")
        check_flag("rule field 'inserted'", self.inserted, TagError)
        if self.inserted:
            self._check_inserted(patterns)
        forward, derived, rematted = self.entries()
        texts = [f"{name} = {_quote(pattern)}" for name, pattern in patterns.items()]
        texts += [f'phase = "{self.phase}"', f"attrs = {_dictionary(self.texts())}"]
        if derived != (forward or derived) and not self.inserted:
            texts.append(f"grad = {_dictionary(derived)}")
        if rematted != derived and not self.inserted:
            texts.append(f"remat = {_dictionary(rematted)}")
        if clauses := self.clauses():
            texts.append(f"unless = [{', '.join(_clause(clause) for clause in clauses)}]")
        if self.inserted:
            texts.append("inserted = true")
        object.__setattr__(self, "_text", "{" + ", ".join(texts) + "}")

    def _check_inserted(self, patterns: Mapping[str, str]) -> None:
        defaults = {each.name: each.default for each in fields(self)}
        for name in _OF_THE_PROGRAM:
            if getattr(self, name) != defaults[name] or any(name in clause for clause in self.clauses()):
                raise TagError(
                    f"rule field {name!r} has no meaning for collectives that XLA inserts; use op, scope, source and phase"
                )
        for pattern in (patterns.get("op", ""), *(clause.get("op", "") for clause in self.clauses())):
            if "_" in pattern or "." in pattern:
                raise TagError(
                    f"rule field 'op': {pattern!r} is for operations; an inserted collective has an opcode, 'all-gather'"
                )

    def patterns(self) -> dict[str, str]:
        """The patterns that are given, by field."""
        return {name: pattern for name in PATTERNS if (pattern := getattr(self, name)) is not None}

    def texts(self) -> dict[str, str]:
        """The entries of `attrs` as text."""
        return _check_entries(self.attrs, self.captures())

    def captures(self) -> tuple[str, ...]:
        """The names in braces of the patterns."""
        return tuple(name for field in PATTERNS[1:] for name in names_in(getattr(self, field) or ""))

    def clauses(self) -> tuple[dict[str, str], ...]:
        """The patterns of `unless`: an operation that matches all of a clause is excluded."""
        given = (self.unless,) if isinstance(self.unless, Mapping) else self.unless
        if isinstance(given, str) or not isinstance(given, Sequence) or not all(isinstance(each, Mapping) for each in given):
            raise TagError(f"rule field 'unless' must be a mapping of patterns or a list of mappings, got {show(self.unless)}")
        for clause in given:
            check_fields("rule field 'unless': ", clause, PATTERNS)
            for name, pattern in clause.items():
                _check_pattern(f"rule field 'unless': field {name!r}", name, pattern)
                if names_in(pattern):
                    raise TagError(f"rule field 'unless': a name in braces has no meaning in {pattern!r}; write *")
        return tuple(dict(clause) for clause in given if clause)

    def entries(self) -> tuple[Entries, Entries, Entries]:
        """The entries for forward operations, for derived and for recomputed ones. None: the rule takes the key away."""
        attrs = self.texts()
        derived: Entries = attrs if self.phase == "backward" else self._entries_of("grad", attrs)
        rematted = derived if self.remat is None else self._entries_of("remat", attrs)
        return {} if self.phase == "backward" else attrs, derived, rematted

    def _entries_of(self, name: str, attrs: Mapping[str, str]) -> Entries:
        """What an argument like `grad` says."""
        given = getattr(self, name)
        if given is None and self.phase == "forward":
            return {}
        if isinstance(given, Mapping):
            given = _check_entries(given, self.captures())
        elif given is not None:
            check_choice(f"rule field {name!r}", given, ("same", "drop"), TagError, besides="a mapping of keys to values")
        return keys.derive(attrs, given)

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        """The call that makes an equal rule."""
        given = [f"{f.name}={value!r}" for f in fields(self)[1:11] if (value := getattr(self, f.name)) != f.default]
        return f"Rule({', '.join([repr(self.attrs), *given])})"

    def name(self, index: int) -> str:
        """The rule in messages, by its index in the list of rules: `rule 2 (rules.toml:12)`."""
        return f"rule {index + 1}" + (f" ({self._at})" if self._at else "")

    def place(self) -> tuple[str | None, int]:
        """The file and line of the rule; None if it is in no file."""
        file, _, line = self._at.rpartition(":")
        return (file, int(line)) if file and line.isdecimal() else (self._at or None, 0)

    @property
    def text(self) -> str:
        """The fields of the rule, as MLIR's text."""
        return self._text

    def as_attribute(self) -> str:
        """The rule as an MLIR dictionary attribute, which is how `hlotag-attach` takes it."""
        return f"{{at = {_quote(self._at)}, {self._text[1:]}" if self._at else self._text


def bind_names(rule: str, entries: Entries, bindings: Bindings) -> dict[str, str | None]:
    """Entries with the texts of the names in braces.

    Raises TagError if a value is not legal for its key, with the name of the rule.
    """
    made: dict[str, str | None] = {}
    for key, text in entries.items():
        new = text
        for name, value in bindings:
            new = None if new is None else new.replace(f"{{{name}}}", value)
        made[key] = new
        if new is not None and new != text:
            try:
                keys.check(key, new)
            except TagError as error:
                named = ", ".join(f"{name} is {value!r}" for name, value in bindings)
                raise TagError(f"{rule}, where {named}: {error}") from None
    return made


def check_fields(where: str, given: Iterable[str], known: Sequence[str]) -> None:
    """Raises TagError for a name that is no field."""
    for name in given:
        if name not in known:
            raise TagError(f"{where}unknown field {name!r}; fields are {', '.join(known)}{did_you_mean(name, known)}")


def _check_pattern(where: str, name: str, pattern: Any) -> None:
    if not isinstance(pattern, str) or not pattern:
        raise TagError(f"{where} must be a non-empty string, got {show(pattern)}")
    check_text(where, pattern, TagError)
    if why := why_no_pattern(pattern, binds_names=name != "op"):
        raise TagError(f"rule field {name!r}: {why}")


def _check_entries(attrs: Mapping[str, Any], captures: tuple[str, ...]) -> dict[str, str]:
    """Entries as text. A value with a name in braces is checked when the name has a text.

    Raises TagError for a name in braces that no pattern has. In a rule without such names in patterns, braces are text, as in a
    sharding, `{replicated}`.
    """
    texts: dict[str, str] = {}
    for key, value in attrs.items():
        texts[key] = text = keys.text_of_entry(key, value)
        if captures and (unbound := [name for name in names_in(text) if name not in captures]):
            bound = ", ".join(f"{{{name}}}" for name in captures)
            raise TagError(f"{key}={text!r}: no pattern of the rule has the name {{{unbound[0]}}}; its patterns have {bound}")
        if not any(f"{{{name}}}" in text for name in captures):
            keys.check(key, text)
    return texts


def _clause(clause: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{name} = {_quote(pattern)}" for name, pattern in sorted(clause.items())) + "}"


def _dictionary(entries: Mapping[str, str | None]) -> str:
    return "{" + ", ".join(f"{_quote(key)} = {_quote(text)}" for key, text in sorted(entries.items()) if text is not None) + "}"


def _quote(text: str) -> str:
    """`text` as an MLIR string literal that stays valid within the quotes of a pipeline option."""
    plain = set(b" !#$%&()*+,-./:;<=>?@[]^_`{|}~")
    return '"' + "".join(chr(b) if b < 128 and (chr(b).isalnum() or b in plain) else f"\\{b:02X}" for b in text.encode()) + '"'
