# SPDX-License-Identifier: Apache-2.0
"""The syntax of a pipeline, which is MLIR's: `hlotag-strip{keys=a,b},func.func(cse)`."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hlotag._util.arguments import did_you_mean, show
from hlotag.errors import ArgumentError

Value = bool | int | float | str | list[str]

_ANCHOR = "builtin.module"
_ANCHORED = re.compile(rf"\s*{re.escape(_ANCHOR)}\s*\((.*)\)\s*", re.DOTALL)
_NAME = re.compile(r"[^\s,=\"'{}()\[\]]*")
# A string in quotes, or a character. In double quotes, a backslash escapes a quote or a backslash.
_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'|.', re.DOTALL)
_ESCAPE = re.compile(r'\\(["\\])')
_SPECIAL = re.compile(r"[\s\"'{}()\[\],=]")
_BOOLS = {"true": True, "1": True, "false": False, "0": False}


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
class PassOption:
    """An option of a pass.

    Attributes:
        name: The name in a pipeline.
        type: "bool", "int", "float", "string", "list of strings", or the legal values: "all|attached".
        default: The default value, as pipelines write it.
        description: One line.
    """

    name: str
    type: str
    default: str
    description: str


@dataclass(frozen=True)
class PassInfo:
    """A pass that pipelines can name.

    Attributes:
        name: The name in a pipeline, for example `hlotag-strip`.
        summary: One line.
        description: Markdown, with the IR before and after.
        options: The options in declaration order.
    """

    name: str
    summary: str
    description: str
    options: tuple[PassOption, ...]


@functools.lru_cache(maxsize=256)
def parse(text: str) -> tuple[Element, ...]:
    """Reads a pipeline, with or without `builtin.module(...)` around it.

    A name is hlotag's if it begins with `hlotag-` or is registered; MLIR reads all others. Raises ArgumentError if the text is
    malformed, or names an unknown pass or option of hlotag.
    """
    try:
        parts = _split(text, ",")
        if len(parts) == 1 and (anchored := _ANCHORED.fullmatch(text)):
            parts = _split(anchored[1], ",")
        return tuple(map(_element, parts)) if "".join(parts).strip() or len(parts) > 1 else ()
    except ArgumentError as error:
        raise ArgumentError(f"{error}, in the pipeline {show(text)}") from None


_registered: dict[str, PassInfo] = {}
# Passes of former releases, by name: the pass that does their work.
_RENAMED = {
    "hlotag-propagate-calls": "hlotag-propagate",
    "hlotag-propagate-regions": "hlotag-propagate",
    "hlotag-verify": "hlotag-finalize",
}


@functools.cache
def known_passes() -> dict[str, PassInfo]:
    """The passes that are not MLIR's, sorted by name. The descriptions of hlotag's own are in files."""
    from hlotag import _core

    found = dict(_registered)
    for entry in _core.list_passes():
        options = tuple(PassOption(**option | {"default": write(option["default"])}) for option in entry["options"])
        found[entry["argument"]] = PassInfo(entry["argument"], entry["summary"], "", options)
    return dict(sorted(found.items()))


def register(info: PassInfo) -> None:
    """Adds a pass in Python, or replaces the one of its name."""
    _registered[info.name] = info
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


def write(value: Value) -> str:
    """The text of an option's value in a pipeline."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, list):
        items = [quote(item) for item in value]
        # Braces distinguish quotes of items from quotes around the list.
        return ",".join(items) if items and items == value else f"{{{','.join(items)}}}"
    return str(value)


def quote(text: str) -> str:
    """Writes a string of an option, in quotes if necessary, as `mlir-opt` reads it too."""
    if text and not _SPECIAL.search(text):
        return text
    if '"' not in text and "\\" not in text:
        return f'"{text}"'
    # `mlir-opt` knows no escapes.
    escaped = re.sub(r'(["\\])', r"\\\1", text)
    return f"'{text}'" if "'" not in text else f'"{escaped}"'


def _split(text: str, separator: str = "") -> list[str]:
    """Splits text at a separator, by default at spaces, that is neither in brackets nor in quotes."""
    parts, open_ = [""], ""
    for piece in _PIECE.findall(text):
        if piece in ("{", "(", "["):
            open_ += piece
        elif piece in ("}", ")", "]"):
            if open_[-1:] + piece not in ("{}", "()", "[]"):
                raise ArgumentError(f"{piece!r} closes nothing")
            open_ = open_[:-1]
        elif piece in ("'", '"'):
            raise ArgumentError("a quote is not closed")
        if not open_ and (piece == separator or (not separator and piece.isspace())):
            parts.append("")
        else:
            parts[-1] += piece
    if open_:
        raise ArgumentError(f"{open_[-1]!r} is not closed")
    return parts


def _element(text: str) -> Element:
    text = text.strip()
    name = _NAME.match(text)[0]  # type: ignore[index]  (it may be empty)
    if not name:
        raise ArgumentError(f"expected the name of a pass, found {text!r}")
    if not name.startswith("hlotag-") and name not in known_passes():
        return Element(name, None, text)
    if name in _RENAMED:
        raise ArgumentError(f"the pass {name!r} is now {_RENAMED[name]!r}: write that once")
    if (info := known_passes().get(name)) is None:
        meant = did_you_mean(name, known_passes(), 0.8)
        raise ArgumentError(f"unknown pass {name!r}" + (meant or f"; the passes: {', '.join(known_passes())}"))
    rest = text[len(name) :].strip()
    if rest and not (rest.startswith("{") and rest.endswith("}")):
        raise ArgumentError(f"expected ',' or options in '{{...}}' after {name}, found {rest!r}")
    given = dict(_option(info, each) for each in _split(rest[1:-1]) if each)
    options = {option.name: _read(option.default, option.type) for option in info.options}
    return Element(name, {key: given[key] for key in options if key in given and given[key] != options[key]})


def _option(owner: PassInfo, text: str) -> tuple[str, Value]:
    key, equals, value = text.partition("=")
    option = next((option for option in owner.options if option.name == key), None)
    if option is None:
        listed = ", ".join(f"{each.name} ({each.type})" for each in owner.options)
        raise ArgumentError(f"unknown option {key!r} of {owner.name}; its options: {listed or 'none'}")
    read = _read(value if equals else "true", option.type)
    if read is None or not (equals or option.type == "bool"):  # A bare name switches a bool on.
        raise ArgumentError(f"the option {key!r} of {owner.name} needs a value of type {option.type}, found {text!r}")
    return key, read


def _read(text: str, type_: str) -> Value | None:
    """Reads the text after `=`, quotes included; None if it is of another type."""
    if type_ == "list of strings":
        # As in MLIR, quotes around the whole list are for the tokenizer only.
        items = [item.strip() for item in _split(_unquote(text), ",")]
        return [_unquote(item) for item in items] if all(items) else [] if items == [""] else None
    word = _unquote(text)
    if type_ == "bool":
        return _BOOLS.get(word)
    if type_ in ("int", "float"):
        try:
            return int(word) if type_ == "int" else float(word)
        except ValueError:
            return None
    return word if "|" not in type_ or word in type_.split("|") else None


def _unquote(text: str) -> str:
    """Text without the quotes or braces around it."""
    if text[:1] in ("'", '"') and _PIECE.fullmatch(text):
        return _ESCAPE.sub(r"\1", text[1:-1]) if text[0] == '"' else text[1:-1]
    return text[1:-1] if text[:1] == "{" and text[-1:] == "}" else text
