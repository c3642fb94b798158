# SPDX-License-Identifier: Apache-2.0
"""Rules in TOML files and in pipelines.

A stage applies rules while JAX traces. The pass `hlotag-attach` applies them to modules that come without a program.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hlotag._util.arguments import path_of, show
from hlotag.errors import TagError
from hlotag.passes.syntax import Element
from hlotag.tagging.rules import PATTERNS, Rule, check_fields
from hlotag.tagging.warning import reading

_ATTACH = "hlotag-attach"


def check_rules(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """The elements of an argument `rules`. Raises TagError if it is no list, or an element is not a `Rule`."""
    if not isinstance(rules, Iterable):
        raise TagError(f"rules must be a list of hlotag.Rule objects, got {type(rules).__name__}")
    rules = tuple(rules)
    for rule in rules:
        if not isinstance(rule, Rule):
            raise TagError(f"rules must be hlotag.Rule objects, got {type(rule).__name__}; hlotag.load_rules reads a file")
    return rules


def attach(rules: Iterable[Rule]) -> str:
    """The pass that applies rules to a module, as the text of a pipeline. Raises TagError if an element is not a `Rule`."""
    return str(_attach(check_rules(rules)))


def _attach(rules: tuple[Rule, ...], later: str = "") -> Element:
    """The pass with rules, before those of an array attribute."""
    for index, rule in enumerate(rules):
        if rule.inserted:
            raise TagError(f"{rule.name(index)} is for collectives that XLA inserts, so it works in a stage only: {rule.text}")
    texts = [*(rule.as_attribute() for rule in rules), *filter(None, [later.strip().removeprefix("[").removesuffix("]")])]
    return Element(_ATTACH, {"rules": f"[{', '.join(texts)}]"})


def load_rules(path: str | os.PathLike[str]) -> tuple[Rule, ...]:
    r"""Reads rules from a TOML file: a list of tables `[[rule]]` whose keys are the fields of `Rule`.

    Args:
        path: The file.

    Returns:
        The rules, in the file's order.

    Raises:
        TagError: `path` is not a path, the file is not TOML, or a table is not a rule; the message names the file and the table.
        OSError: The file cannot be read.

    Examples:
        >>> from pathlib import Path
        >>> _ = Path("rules.toml").write_text('[[rule]]\nop = "sine"\nattrs = {layer = "1"}')
        >>> hlotag.load_rules("rules.toml")[0].op
        'sine'
    """
    path = path_of("the file of rules", path, TagError)
    text, tables = _read_tables(path)
    lines = _lines_of(text, len(tables))
    rules = []
    for number, (table, line) in enumerate(zip(tables, lines, strict=True), 1):
        at = f"{path}:{line}" if line else str(path)
        try:
            with reading(str(path), line):
                rule = Rule(**_fields(table))
        except TagError as error:
            place, quoted = _quote_line(text, _line_of_error(text, line, str(error)) if line else 0)
            raise TagError(f"{path}{place}: rule {number}: {error}{quoted}") from error
        # MLIR's text is UTF-8; the path need not be.
        object.__setattr__(rule, "_at", at.encode(errors="backslashreplace").decode())
        rules.append(rule)
    return tuple(rules)


def read_tables(path: str | os.PathLike[str]) -> list[Any]:
    """The tables `[[rule]]` of a TOML file. Raises what `load_rules` raises, but for a table that is not a rule."""
    return _read_tables(path_of("the file of rules", path, TagError))[1]


def _read_tables(path: Path) -> tuple[str, list[Any]]:
    """The text of a TOML file, and its tables `[[rule]]`."""
    import tomllib  # Slow to import, and rarely needed.

    data = path.read_bytes()
    try:
        text = data.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TagError(f"{path}:{line}: not a TOML file: {error}") from error
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        found = re.search(r"\(at line (\d+), column \d+\)", str(error))
        place, quoted = _quote_line(text, int(found[1]) if found else 0)
        raise TagError(f"{path}{place}: not a TOML file: {error}{quoted}") from error
    unknown = sorted(set(document) - {"rule"})
    if unknown or not isinstance(document.get("rule", []), list):
        raise TagError(f"{path}: expected a list of tables [[rule]], found {', '.join(unknown) or 'rule as a single value'}")
    return text, document.get("rule", [])


def with_rules_of_file(element: Element) -> Element:
    """Replaces the option `rules-file` of a `hlotag-attach` by the file's rules, before those of its option `rules`.

    Raises what `load_rules` raises.
    """
    options = element.options or {}
    if element.name != _ATTACH or "rules-file" not in options:
        return element
    return _attach(load_rules(str(options["rules-file"])), str(options.get("rules", "")))


def _fields(table: Any) -> dict[str, Any]:
    """The fields of a rule in a file."""
    known = (*PATTERNS, "phase", "attrs", "grad", "remat", "unless", "inserted")
    if not isinstance(table, dict):
        raise TagError(f"a rule must be a table, got {show(table)}")
    check_fields("", table, known)
    return {"attrs": {}, **table}


def _quote_line(text: str, line: int) -> tuple[str, str]:
    """`:12`, and the text of that line below a message; nothing for line 0."""
    lines = text.split("\n")
    return (f":{line}", f"\n    {lines[line - 1].strip()}") if 1 <= line <= len(lines) else ("", "")


def _line_of_error(text: str, first: int, message: str) -> int:
    """The line of the field, or else of the key or value, that a message about a table quotes; the table's if it quotes none."""
    lines = text.split("\n")[first:]
    end = next((n for n, line in enumerate(lines) if re.match(r"\s*\[\[", line)), len(lines))
    words = [re.escape(word) for word in re.findall(r"'([^']+)'", message)]
    for pattern in (rf"\s*[\"']?(?:{word})[\"']?\s*=" for word in words):
        if found := [n for n, line in enumerate(lines[:end]) if re.match(pattern, line)]:
            return first + 1 + found[0]
    found = [n for word in words for n, line in enumerate(lines[:end]) if re.search(word, line)]
    return first + 1 + found[0] if found else first


def _lines_of(text: str, count: int) -> list[int]:
    """The line of each table, which `tomllib` does not give; 0 if unknown."""
    found = [number for number, line in enumerate(text.split("\n"), 1) if re.match(r"\s*\[\[\s*rule\s*\]\]", line)]
    # A header may be within a string, and rules may be an array. Then no line is better than a wrong one.
    return found if len(found) == count else [0] * count
