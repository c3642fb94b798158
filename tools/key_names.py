# SPDX-License-Identifier: Apache-2.0
"""Writes the C++ header of the catalogue's keys that passes treat apart: `python key_names.py HEADER`. CMake runs it.

Needs neither JAX nor hlotag: the catalogue is read as a file.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

CATALOGUE = Path(__file__).resolve().parent.parent / "python" / "hlotag" / "tagging" / "catalogue.py"


def header(keys: Iterable[Any]) -> str:
    """The text of the header.

    Args:
        keys: Of the catalogue, each a `Key`.
    """
    keys = tuple(keys)
    reserved = [key.name for key in keys if key.reserved]
    arrays = {
        "kReservedKeys": [name for name in reserved if not name.endswith("*")],
        "kReservedPrefixes": [name.removesuffix("*") for name in reserved if name.endswith("*")],
        "kKeptKeys": [key.name for key in keys if key.kept],
        "kXlaKeys": [key.name for key in keys if not key.reserved],
    }
    texts = [f"inline constexpr std::string_view {name}[] = {{{_quoted(of)}}};\n" for name, of in arrays.items()]
    return "".join(
        ["// Made by tools/key_names.py.\n#pragma once\n\n#include <string_view>\n\nnamespace hlotag::ir {\n", *texts, "}\n"]
    )


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


if __name__ == "__main__":
    text, file = header(runpy.run_path(str(CATALOGUE))["known_keys"]().values()), Path(sys.argv[1])
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists() or file.read_text() != text:
        file.write_text(text)
