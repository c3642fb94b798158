# SPDX-License-Identifier: Apache-2.0
"""The syntax of a pipeline, which is MLIR's: `hlotag-strip{keys=a,b},func.func(cse)`."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from hlotag.errors import ArgumentError

Value = bool | int | float | str | list[str]

_ANCHOR = "builtin.module"
_OUR_PREFIX = "hlotag-"
_NAME = re.compile(r"[^\s,{}()]*")
_SPACE = re.compile(r"\s*")
# In double quotes, a backslash escapes a quote or a backslash.
_QUOTED = re.compile(r'"(?:[^"\\]|\\["\\]|\\(?!["\\]))*"|\'[^\']*\'')
_ESCAPE = re.compile(r'\\(["\\])')
_SPECIAL = re.compile(r"[\s\"'{}(),=]")
_INTEGER = re.compile(r"-?[0-9]+")
_MARGIN = 60  # characters of a long pipeline that an error shows on each side


@dataclass(frozen=True)
class Element:
    """One element of a pipeline.

    Attributes:
        name: The name in messages and flags: `hlotag-strip`, `canonicalize`, `func.func`.
        options: The options of a pass of hlotag or a registered one that are not at their default; None for an element of MLIR's.
        foreign: The text of an element of MLIR's.
    """

    name: str
    options: Mapping[str, Value] | None
    foreign: str = ""

    def __str__(self) -> str:
        """The canonical text."""
        if self.options is None:
            return self.foreign
        options = " ".join(f"{name}={write(value)}" for name, value in self.options.items())
        return f"{self.name}{{{options}}}" if options else self.name


@dataclass(frozen=True)
class Option:
    """What the parser knows about an option: its type, as `PassOption` has it, and its default."""

    type: str
    default: Value


@functools.lru_cache(maxsize=256)
def parse(text: str) -> tuple[Element, ...]:
    """Reads a pipeline, with or without `builtin.module(...)` around it.

    A name is hlotag's if it begins with `hlotag-` or is registered; MLIR reads all others. Raises ArgumentError, with the place,
    if the text is malformed, or names an unknown pass or option of hlotag.
    """
    return _Parser(text).parse()


_registered: dict[str, dict[str, Any]] = {}


def all_passes() -> list[dict[str, Any]]:
    """Describes each pass that is not MLIR's, as `_core.list_passes` does, sorted by name."""
    from hlotag import _core

    return sorted([*_core.list_passes(), *_registered.values()], key=lambda entry: entry["argument"])


@functools.cache
def known_passes() -> dict[str, dict[str, Option]]:
    """The options of each pass that is not MLIR's, by name."""
    return {
        entry["argument"]: {option["name"]: Option(option["type"], option["default"]) for option in entry["options"]}
        for entry in all_passes()
    }


def register(entry: dict[str, Any]) -> None:
    """Adds a pass in Python, or replaces the one of its name."""
    _registered[entry["argument"]] = entry
    forget()


def forget() -> None:
    """Call after the passes changed."""
    known_passes.cache_clear()
    parse.cache_clear()


def join(elements: Sequence[Element]) -> str:
    """Writes a pipeline in its canonical form, of which `parse` makes equal elements."""
    text = ",".join(map(str, elements))
    # Alone, `builtin.module(...)` would be read as the anchor and disappear.
    return f"{_ANCHOR}({text})" if len(elements) == 1 and elements[0].name == _ANCHOR else text


def nearest(word: str, limit: int = 3) -> list[str]:
    """The passes that are spelled like `word`, nearest first."""
    return difflib.get_close_matches(word, list(known_passes()), n=limit, cutoff=0.8)


def write(value: Value) -> str:
    """The text of an option's value in a pipeline."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else str(value)
    items = [quote(item) for item in value]
    # Braces distinguish quotes of items from quotes around the list.
    return ",".join(items) if items and items == value else f"{{{','.join(items)}}}"


def quote(text: str) -> str:
    """Writes a string of an option, in quotes if necessary."""
    if text and not _SPECIAL.search(text):
        return text
    # MLIR's own parser knows no escapes.
    if '"' in text and "'" not in text:
        return f"'{text}'"
    # Escape a backslash only where the parser would read an escape.
    escaped = re.sub(r'\\(?=["\\]|\Z)', r"\\\\", text)
    return '"' + re.sub(r'"', r"\"", escaped) + '"'


def _read(text: str, type_: str) -> Value | None:
    """Reads the text after `=`, quotes included; None if it is of another type."""
    text = text.strip()
    if type_ == "list of strings":
        return _read_list(text)
    word = _unquote(text)
    if type_ == "bool":
        return {"true": True, "1": True, "false": False, "0": False}.get(word)
    if type_ == "int":
        return number if _INTEGER.fullmatch(word) and -(1 << 63) <= (number := int(word)) < 1 << 63 else None
    if type_ == "float":
        try:
            return float(word) if word.isascii() and "_" not in word else None
        except ValueError:
            return None
    return word if "|" not in type_ or word in type_.split("|") else None


def _unquote(text: str) -> str:
    if _QUOTED.fullmatch(text):
        return _ESCAPE.sub(r"\1", text[1:-1]) if text[0] == '"' else text[1:-1]
    return text[1:-1] if text[:1] == "{" and text[-1:] == "}" and len(text) > 1 else text


def _read_list(text: str) -> list[str] | None:
    # As in MLIR, quotes around the whole list are for the tokenizer only.
    text = _unquote(text).strip()
    parts, start, depth, at = [], 0, 0, 0
    while at < len(text):
        if quoted := _QUOTED.match(text, at):
            at = quoted.end()
            continue
        depth += (text[at] == "{") - (text[at] == "}")
        if text[at] == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
        at += 1
    parts.append(text[start:].strip())
    if not text:
        return []
    return [_unquote(part) for part in parts] if all(parts) else None


class _Parser:
    """Reads one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.end = len(text.rstrip())

    def parse(self) -> tuple[Element, ...]:
        self._skip_space()
        self._take_anchor()
        elements = [self._element()] if self.at < self.end else []
        while self.at < self.end:
            if self.text[self.at] != ",":
                self._fail(f"expected ',' or the end of the pipeline, found {self.text[self.at]!r}", self.at)
            self.at += 1
            elements.append(self._element())
        return tuple(elements)

    def _fail(self, reason: str, offset: int) -> NoReturn:
        start = self.text.rfind("\n", 0, offset) + 1
        line = self.text[start:].split("\n", 1)[0]
        skip = max(offset - start - _MARGIN, 0)
        raise ArgumentError(
            f"at offset {offset}: {reason}\n  {line[skip : skip + 2 * _MARGIN]}\n  {' ' * (offset - start - skip)}^"
        )

    def _skip_space(self) -> None:
        self.at = _match(_SPACE, self.text, self.at)

    def _take_anchor(self) -> None:
        """Skips `builtin.module(` if its parenthesis closes at the end of the text."""
        if self.text.startswith(_ANCHOR, self.at):
            open_ = _match(_SPACE, self.text, self.at + len(_ANCHOR))
            if self.text[open_ : open_ + 1] == "(" and self._skip_brackets(open_) == self.end:
                self.at, self.end = open_ + 1, len(self.text[: self.end - 1].rstrip())
                self._skip_space()

    def _element(self) -> Element:
        self._skip_space()
        start = self.at
        self.at = _match(_NAME, self.text, start)
        name = self.text[start : self.at]
        if not name:
            self._fail("expected the name of a pass", start)
        stop = self.at
        self._skip_space()
        if _is_ours(name):
            element = Element(name, self._options_of(name, start))
            self._skip_space()
            return element
        while self.at < self.end and self.text[self.at] in "{(":
            open_, self.at = self.at, self._skip_brackets(self.at)
            if self.text[open_] == "(":
                self._refuse_nested(open_ + 1, self.at - 1)
            stop = self.at
            self._skip_space()
        return Element(name, None, self.text[start:stop])

    def _options_of(self, name: str, start: int) -> dict[str, Value]:
        options = known_passes().get(name)
        if options is None:
            near = " or ".join(nearest(name))
            self._fail(
                f"unknown pass {name!r}" + (f"; did you mean {near}?" if near else f"; the passes: {_list_passes()}"), start
            )
        if self.at < self.end and self.text[self.at] == "(":
            self._fail(f"{name!r} is a pass; options are written in '{{...}}'", self.at)
        given: dict[str, Value] = {}
        if self.at < self.end and self.text[self.at] == "{":
            open_, self.at = self.at, self._skip_brackets(self.at)
            listed = ", ".join(f"{key} ({option.type})" for key, option in options.items())
            where = f" of {name}; " + (f"its options: {listed}" if listed else "it has no options")
            self._read_options(options, given, open_ + 1, self.at - 1, where)
        return {key: given[key] for key in options if key in given and given[key] != options[key].default}

    def _read_options(self, known: dict[str, Option], given: dict[str, Value], at: int, end: int, where: str) -> None:
        while (at := _match(_SPACE, self.text, at)) < end:
            start = at
            while at < end and self.text[at] != "=" and not self.text[at].isspace():
                at += 1
            key = self.text[start:at]
            if not key:
                self._fail("expected the name of an option", start)
            if key not in known:
                self._fail(f"unknown option {key!r}{where}", start)
            type_ = known[key].type
            text, place = "true", start  # A bare name switches a bool on.
            if at < end and self.text[at] == "=":
                place, at = at + 1, self._end_of_value(at + 1, end)
                text = self.text[place:at]
            elif type_ != "bool":
                self._fail(f"option {key!r} needs a value of type {type_}{where}", start)
            value = _read(text, type_)
            if value is None:
                self._fail(f"{text!r} is not a value of type {type_} for the option {key!r}{where}", place)
            given[key] = value

    def _end_of_value(self, at: int, end: int) -> int:
        while at < end and not self.text[at].isspace():
            at = self._skip_quoted(at) if self.text[at] in "\"'" else self._skip_brackets(at) if self.text[at] == "{" else at + 1
        return at

    def _refuse_nested(self, at: int, end: int) -> None:
        """Refuses a pass of hlotag's that is nested in `func.func(...)` or the like: these passes work on modules."""
        while at < end:
            if self.text[at] == "{":
                at = self._skip_brackets(at)
            elif name := _NAME.match(self.text, at, end)[0]:  # type: ignore[index]
                if _is_ours(name):
                    text = "hlotag's passes, and those registered with it, run on the top-level builtin.module"
                    self._fail(f"{text}, not nested in another operation", at)
                at += len(name)
            else:
                at += 1

    def _skip_brackets(self, open_: int) -> int:
        """The index after the bracket that closes the one at `open_`. In options, parentheses are ordinary characters."""
        brackets: list[int] = []
        at = open_
        while at < len(self.text):
            char = self.text[at]
            in_options = bool(brackets) and self.text[brackets[-1]] == "{"
            if in_options and char in "\"'":
                at = self._skip_quoted(at)
                continue
            if char == "{" or (char == "(" and not in_options):
                brackets.append(at)
            elif char == "}" or (char == ")" and not in_options):
                if self.text[brackets[-1]] + char not in ("{}", "()"):
                    self._fail(f"{char!r} closes nothing", at)
                brackets.pop()
                if not brackets:
                    return at + 1
            at += 1
        self._fail(f"{self.text[brackets[-1]]!r} is not closed", brackets[-1])

    def _skip_quoted(self, at: int) -> int:
        quoted = _QUOTED.match(self.text, at)
        if quoted is None:
            self._fail("the quote is not closed", at)
        return quoted.end()


def _match(pattern: re.Pattern[str], text: str, at: int) -> int:
    """The end of a match, which may be empty."""
    found = pattern.match(text, at)
    return found.end() if found else at


def _is_ours(name: str) -> bool:
    return name.startswith(_OUR_PREFIX) or name in known_passes()


def _list_passes() -> str:
    return ", ".join(known_passes())
