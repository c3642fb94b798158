# SPDX-License-Identifier: Apache-2.0
"""The rooms of `cpp/lib` and `cpp/include/hlotag`: each file includes only its own room and the rooms below it.

All C++ files fit their sizes too."""

import graphlib
import pathlib
import re
from collections.abc import Iterator

CPP = pathlib.Path(__file__).parent.parent / "cpp"
# From the bottom to the top, as docs/architecture.md draws them.
ROOMS = ["capi", "ir", "analysis", "pass", "transforms", "passes", "hlo", "plugin"]
# Headers that CMake makes.
MADE = {"hlotag/ir/key_names.h"}
# Below another room, and yet out of its reach.
FORBIDDEN = {("hlo", room) for room in ("pass", "transforms", "passes")} | {("plugin", "passes"), ("plugin", "hlo")}


def _room(file: pathlib.Path) -> str:
    """The folder of `lib` or `include/hlotag` that a file is in; for other files their own path, which is in no room."""
    for base in (CPP / "lib", CPP / "include" / "hlotag"):
        if base in file.parents:
            return file.relative_to(base).parts[0]
    return str(file.relative_to(CPP))


def _included(file: pathlib.Path) -> list[pathlib.Path]:
    """The project's own headers that a file includes."""
    names = [name for name in re.findall(r'^#include "(.+)"$', file.read_text(), re.MULTILINE) if name not in MADE]
    candidates = [[base / name for base in (CPP / "include", CPP / "lib", file.parent)] for name in names]
    return [next(path for path in paths if path.exists()) for paths in candidates]


def _edges() -> Iterator[tuple[pathlib.Path, pathlib.Path]]:
    """Each file of a room, with each header that it includes."""
    for base in (CPP / "lib", CPP / "include"):
        for file in base.rglob("*"):
            if file.suffix in {".cpp", ".h"}:
                yield from ((file, header) for header in _included(file))


def test_includes_point_down():
    edges = list(_edges())
    assert len(edges) > 200
    wrong = []
    for file, header in edges:
        edge = _room(file), _room(header)
        below = edge[1] in ROOMS[: ROOMS.index(edge[0]) + 1]
        if not below or edge in FORBIDDEN:
            wrong.append(f"{file.relative_to(CPP)} includes {header.relative_to(CPP)}")
    assert not wrong, "includes against the order of rooms:\n" + "\n".join(wrong)


def test_no_circles_within_rooms():
    """A file and its header count as one."""
    graph: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for file, header in _edges():
        pair = (_room(file), file.stem), (_room(header), header.stem)
        if pair[0] != pair[1]:
            graph.setdefault(pair[0], set()).add(pair[1])
    graphlib.TopologicalSorter(graph).prepare()  # Raises CycleError with the files.


def test_ir_is_changed_by_the_rewriter_alone():
    """What `Rewriter` does not know of, a failed pass cannot roll back."""
    changes = re.compile(r"\bfn(\(\))?\.mlir(OperationSet|OperationRemove|BlockInsert|BlockArgumentSet)")
    allowed = {"ir/rewriter.cpp", "pass/snapshot.cpp"}
    places = {
        str(file.relative_to(CPP / "lib"))
        for file in (CPP / "lib").rglob("*.cpp")
        if "capi" not in file.parts and changes.search(file.read_text())
    }
    assert places <= allowed


SOURCES = [file for folder in (CPP, CPP.parent / "fuzz") for file in folder.rglob("*") if file.suffix in {".cpp", ".h"}]


def test_a_file_has_at_most_500_lines():
    assert [file for file in SOURCES if file.read_text().count("\n") > 500] == []


def _functions(source: str) -> Iterator[tuple[str, int]]:
    """The first line and the number of lines of each function outside of classes; a raw string counts from its end."""
    begin, head = 0, ""
    for number, line in enumerate(source.splitlines()):
        if line == "}":
            yield head, number - begin + 1
        elif line[:1].strip(" #/}"):
            begin, head = number, line


def test_a_function_fits_a_screen():
    long = [
        f"{file.name}: {head} has {size} lines" for file in SOURCES for head, size in _functions(file.read_text()) if size > 60
    ]
    assert long == []
