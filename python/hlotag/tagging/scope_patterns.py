# SPDX-License-Identifier: Apache-2.0
"""Patterns of a rule: `*` is any text, `?` one character, and `{n}` text of one element of a path, to be used in values."""

from __future__ import annotations

import functools
import re

from hlotag.errors import TagError

# Characters that have a meaning in other globs.
_UNSUPPORTED = re.compile(r"[\[\]!{}]")
_CAPTURE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")

Bindings = tuple[tuple[str, str], ...]
"""The text that each `{name}` stands for."""


def check_pattern(field: str, pattern: str) -> None:
    """Raises TagError if a pattern has a character of other globs, a name twice, or a name in braces in the field `op`."""
    text = pattern if field == "op" else _CAPTURE.sub("", pattern)
    if found := _UNSUPPORTED.search(text):
        raise TagError(
            f"rule field {field!r}: {found[0]!r} in {pattern!r} has no meaning here; patterns have * for any text and ? for one "
            "character" + ("" if field == "op" else ", and {n} for the text of a value")
        )
    names = captures_in(pattern)
    if len(set(names)) < len(names):
        raise TagError(f"rule field {field!r}: a name in braces occurs twice in {pattern!r}")


def captures_in(pattern: str) -> tuple[str, ...]:
    """The names in braces."""
    return tuple(_CAPTURE.findall(pattern))


@functools.lru_cache(maxsize=1024)
def _regex(pattern: str) -> re.Pattern[str]:
    tokens = re.split(f"({_CAPTURE.pattern.replace('(', '(?:', 1)}|[*?])", pattern)
    special = {"*": ".*", "?": "."}
    names = (
        f"(?P<{token[1:-1]}>[^/]+)" if _CAPTURE.fullmatch(token) else special.get(token, re.escape(token)) for token in tokens
    )
    return re.compile("".join(names), re.DOTALL)


def bind(pattern: str, text: str) -> Bindings | None:
    """The texts of the names in a pattern that stands for a whole text; None if it does not."""
    found = _regex(pattern).fullmatch(text)
    return None if found is None else tuple(found.groupdict().items())


def matches(pattern: str, text: str) -> bool:
    """Whether a pattern stands for a whole text."""
    return bind(pattern, text) is not None


def matches_op(pattern: str, name: str) -> bool:
    """Whether a pattern stands for an operation, with or without its dialect."""
    return matches(pattern, name) or matches(pattern, name.partition(".")[2])


def bind_source(pattern: str, file: str, line: int, column: int) -> Bindings | None:
    """As `bind`, for `file`, `file:line` or `file:line:column`; without a directory, for the end of any path."""
    while pattern.startswith("**/"):
        pattern = pattern[3:]
    for text in (file, f"{file}:{line}", f"{file}:{line}:{column}"):
        for found in (bind(pattern, text), bind(f"*/{pattern}", f"/{text}")):
            if found is not None:
                return found
    return None


def substitute(text: str, bindings: Bindings) -> str:
    """Replaces the names in braces by their text."""
    for name, value in bindings:
        text = text.replace(f"{{{name}}}", value)
    return text
