# SPDX-License-Identifier: Apache-2.0
"""The legal keys and values of tags, and their readers, by the catalogue and the registered keys. Needs no JAX."""

from __future__ import annotations

import ast
import difflib
import functools
import re
import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal

from hlotag._util.arguments import check_choice, check_text, elements_of, show
from hlotag._util.forks import free_in_children
from hlotag.errors import KeyIgnoredWarning, TagError
from hlotag.tagging.catalogue import BACKENDS, FLAG, Derived, Key, Values, known_keys
from hlotag.tagging.warning import warn

_registered: dict[str, Key] = {}
_lock = free_in_children(threading.Lock())
_SIMILAR = 0.85  # difflib's ratio from which a key is taken for a misspelt one


Grad = Literal["same", "drop"] | Mapping[str, Any]
"""The type of `grad=` and `remat=`."""


def as_text(value: Any) -> str:
    """The text JAX writes for a metadata value; booleans are lower case.

    Raises TagError for an int with more digits than Python writes.
    """
    try:
        return str(value).lower() if isinstance(value, bool) else str(value)
    except ValueError as error:
        raise TagError(f"a value of {value.bit_length()} bits is too long for a tag: {error}") from None


def text_of_entry(key: Any, value: Any) -> str:
    """The text of the value that a user gives for a key. Raises TagError for what is no key, and for a value without a text."""
    if not isinstance(key, str) or not key:
        raise TagError(f"a key must be a non-empty string, got {show(key)} of type {type(key).__name__}")
    if "\0" in key:  # It ends the name of an attribute.
        raise TagError(f"key {show(key)} has a zero byte")
    if not isinstance(value, (str, bool, int, float)):
        raise TagError(
            f"key {key!r}: metadata values must be str, bool, int or float, got {type(value).__name__}; convert it with str()"
        )
    return as_text(value)


def lookup(name: str) -> Key | None:
    """Looks up a key, or its reserved family. None for a free key: any text is legal, and derived operations get it too."""
    if (found := known_keys().get(name) or _registered.get(name)) is not None:
        return found
    return next((family for prefix, family in _families() if name.startswith(prefix)), None)


@functools.cache
def _families() -> tuple[tuple[str, Key], ...]:
    """The reserved families, by prefix."""
    return tuple((name.removesuffix("*"), key) for name, key in known_keys().items() if name.endswith("*"))


def catalogue() -> tuple[Key, ...]:
    """All known keys: the catalogue, then the registered keys by name."""
    return (*known_keys().values(), *(key for _, key in sorted(_registered.items())))


def check(name: str, text: str) -> None:
    """Checks the key and value of a tag. Raises TagError if the key is reserved, or if it is known and the value is not legal."""
    key = lookup(name)
    if key is not None and key.reserved:
        owner = key.doc.removeprefix("Belongs to ").removesuffix(".")
        what = f"the prefix {key.name.removesuffix('*')!r} is" if key.name.endswith("*") else "it is"
        raise TagError(f"key {name!r}: {what} reserved for {owner}; choose another name")
    check_value(name, text)


def check_value(name: str, text: str) -> None:
    """Checks a value only. The key may be reserved, as for tags by JAX's own API.

    Warns of a key that XLA ignores and that looks like one that it reads. Raises TagError if the value is not legal for a known
    key, or if key or value is not UTF-8.
    """
    check_text("key", name, TagError)
    check_text(f"value of key {name!r}", text, TagError)
    key = lookup(name)
    if key is None and (known := meant(name)):
        warn(
            f"key {name!r}: not known to hlotag; did you mean {known!r}? If it is yours, hlotag.register_key({name!r})",
            KeyIgnoredWarning,
        )
    if problem := why_illegal(name, text):
        raise TagError(f"key {name!r}: the value {text!r} is not legal; {problem}")


def why_illegal(name: str, text: str) -> str:
    """Why a value is not legal for a key: the legal values, and what XLA does with another; empty if the value is legal."""
    key = lookup(name)
    if key is None or key.values is None or key.values.allow(text):
        return ""
    return f"legal values: {key.values}. With this one {key.otherwise or 'XLA would ignore it, or fail without naming this line'}"


def meant(name: str) -> str:
    """XLA's key of nearly the same name as an unknown key, which is probably a misspelling of it; "" if there is none."""
    return "" if name in _registered else _alike(name)


# Keys of JAX's own functions that no compiler reads: that of `jax.experimental.scheduling_groups`.
_OF_JAX = ("scheduling_group",)


@functools.lru_cache(maxsize=4096)
def _alike(name: str) -> str:
    free = {key.name.lower(): key.name for key in known_keys().values() if not key.reserved}
    near = () if lookup(name) or name in _OF_JAX else difflib.get_close_matches(name.lower(), free, 1, _SIMILAR)
    return free[near[0]] if near else ""


def backend_of(platform: str) -> str:
    """The one of `BACKENDS` that JAX or XLA call `platform`; "" if there is none."""
    return "gpu" if platform.lower() in ("cuda", "gpu", "rocm") else platform if platform in BACKENDS else ""


def derive(attrs: Mapping[str, str], grad: Grad | None) -> dict[str, str | None]:
    """What the operations have that an argument such as `grad=` is for; None for a key that is taken away.

    Without the argument, each key has its own policy.
    """
    if isinstance(grad, Mapping):
        return dict.fromkeys(attrs) | dict(grad)
    dropped: Collection[str] = attrs if grad == "drop" else ()
    if grad is None:
        dropped = [name for name in attrs if (key := lookup(name)) is not None and key.derived == "drop"]
    return {key: None if key in dropped else text for key, text in attrs.items()}


def register_key(
    name: str,
    *,
    values: Collection[str] | type[bool] | type[int] | re.Pattern[str] | None = None,
    derived: Derived = "same",
    ops: Collection[str] = ("any",),
    doc: str = "",
    compiler: bool | None = None,
) -> Key:
    """Adds a key of your own to the catalogue, for this process.

    Register keys before the stage is made (`hlotag.enable`, `hlotag.stage`): programs traced before keep their tags, and JAX may
    use them again in a stage that does not know the key.

    Args:
        name: The key.
        values: The legal values: words, `bool`, `int`, or a regular expression that matches the whole text; None allows any text.
        derived: The default of `grad=` for this key: "same" or "drop".
        ops: Kinds of operations that the key is for. This is documentation; it does not select.
        doc: What the key does.
        compiler: Whether XLA sees the key. Of a key that it does not see, hlotag writes the tags after XLA's passes, so that
            they cannot change what is compiled. None shows the keys of the catalogue and those that begin with `_` or `xla`.

    Returns:
        The new entry, or the equal existing one.

    Raises:
        TagError: The name is reserved or known with another meaning, or an argument is invalid.

    Examples:
        >>> key = hlotag.register_key("my_priority", values=int, derived="drop")
        >>> key.derived
        'drop'
        >>> hlotag.tag(1.0, {"my_priority": "high"})
        Traceback (most recent call last):
        hlotag.errors.TagError: key 'my_priority': the value 'high' is not legal; ...
    """
    key = _check_key(name, values, derived=derived, ops=ops, doc=doc, compiler=compiler)
    with _lock:
        known = lookup(name)
        if known is not None and known.reserved:
            raise TagError(f"key {name!r} is reserved and cannot be registered: {known.doc}")
        if known is not None and known != key:
            raise TagError(f"key {name!r} is known with another meaning, choose another name: {known}")
        _registered[name] = key
    return key


def _check_key(name: Any, values: Any, *, derived: Any, ops: Any, doc: Any, compiler: Any) -> Key:
    if not isinstance(name, str) or not name:
        raise TagError(f"a key must be a non-empty string, got {show(name)}")
    check_text("key", name, TagError)
    check_choice(f"key {name!r}: derived", derived, ("same", "drop"), TagError)
    if compiler is not None and not isinstance(compiler, bool):
        raise TagError(f"key {name!r}: compiler must be True, False or None, got {show(compiler)}")
    if not isinstance(doc, str):
        raise TagError(f"key {name!r}: doc must be a string, got {show(doc)}")
    kinds = (ops,) if isinstance(ops, str) else tuple(elements_of(f"key {name!r}: ops", ops))
    if not all(isinstance(kind, str) for kind in kinds):
        raise TagError(f"key {name!r}: ops must be strings, got {show(ops)}")
    return Key(name, _values(name, values), kinds, "registered", derived, doc, compiler=compiler)


def _values(name: str, values: Any) -> Values | None:
    if values is None:
        return None
    if values is bool:
        return FLAG
    if values is int:
        return Values(integer_bits=64)
    if isinstance(values, re.Pattern) and isinstance(values.pattern, str):
        # Flags are kept within the text, so that equal registrations compare equal.
        flags = "".join(c for c, f in (("i", re.I), ("m", re.M), ("s", re.S), ("x", re.X), ("a", re.A)) if values.flags & f)
        return Values(pattern=f"(?{flags}:{values.pattern})" if flags else values.pattern, text=f"/{values.pattern}/{flags}")
    if not isinstance(values, str) and isinstance(values, Collection):
        words = sorted(values) if isinstance(values, (set, frozenset)) else list(values)
        if words and all(isinstance(word, str) for word in words):
            return Values(tuple(words))
    raise TagError(f"key {name!r}: values must be words, bool, int, a regular expression or None, got {show(values)}")


def _is(name: str, question: Callable[[Key], bool]) -> bool:
    """Whether something is true of a key of the catalogue."""
    key = known_keys().get(name)
    return key is not None and question(key)


def is_of_one_place(name: str) -> bool:
    """Whether a key of the catalogue names one place in a schedule, a stream or a memory."""
    return _is(name, lambda key: key.derived == "drop")


def is_taken(name: str, platform: str = "") -> bool:
    """Whether a compiler removes a key once it has read it: that for the platform, by default any."""
    return _is(name, lambda key: backend_of(platform) in key.taken_by if platform else bool(key.taken_by))


def is_read(name: str, platform: str) -> bool:
    """Whether the compiler for a platform is known to read a key."""
    return _is(name, lambda key: backend_of(platform) in key.readers)


def is_read_late(name: str, platform: str) -> bool:
    """Whether the compiler for a platform reads a key after its optimizations."""
    return _is(name, lambda key: backend_of(platform) in key.late)


def is_given_back(name: str, opcode: str, *, is_collective: bool) -> bool:
    """Whether an instruction gets a lost key back before the compiler schedules."""
    opcodes = (opcode, "collectives") if is_collective else (opcode,)
    return _is(name, lambda key: not key.late_on or not set(opcodes).isdisjoint(key.late_on))


def is_kept(name: str) -> bool:
    """Whether a key means its own operation only: a call, and not what is in it."""
    return _is(name, lambda key: key.kept)


def is_left(name: str) -> bool:
    """Whether the HLO pass leaves a key to XLA, because a library writes it for one operation."""
    known = lookup(name)
    return known is not None and not known.restored


def is_of_xla(name: str) -> bool:
    """Whether a key is in the catalogue, or its name looks like one of XLA's."""
    return name in known_keys() or name.startswith(("_", "xla")) or any(name.startswith(prefix) for prefix, _ in _families())


def fingerprint() -> str:
    """The registered keys that differ from unknown keys: part of a stage's identity in JAX's caches.

    Policies affect traced and compiled programs, which JAX caches: a function traced before `register_key(..., derived="drop")`
    must be traced again. Legal values do not affect programs. The stage's version covers the catalogue.
    """
    keys = (key for key in _registered.copy().values() if key.derived == "drop" or key.compiler is not None)
    return ",".join(sorted(repr((key.name, key.derived, key.compiler)) for key in keys))


def find_dropped_in(fingerprint: str) -> frozenset[str]:
    """The keys in a fingerprint that derived operations do not get by default."""
    return frozenset(name for name, derived, _ in ast.literal_eval(f"[{fingerprint}]") if derived == "drop")


def is_hidden(name: str, fingerprint: str) -> bool:
    """Whether XLA does not see a key, by the `fingerprint` of the stage: no compiler reads it, or it is registered so."""
    shown = _choices_in(fingerprint).get(name)
    return not (is_of_xla(name) if shown is None else shown)


@functools.lru_cache(maxsize=64)
def _choices_in(fingerprint: str) -> dict[str, bool | None]:
    return {name: compiler for name, _, compiler in ast.literal_eval(f"[{fingerprint}]")}
