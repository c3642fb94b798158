# SPDX-License-Identifier: Apache-2.0
"""The rooms of the sources and the arrows between them, private names in their one place, and sizes that fit a reader."""

import ast
import graphlib
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE, CPP = ROOT / "python" / "hlotag", ROOT / "cpp"
# From the top floor down, as docs/architecture.md draws them. "" is the package itself, which exports from all rooms.
ROOMS = [
    "__main__",
    "",
    "xla",
    "cli",
    "comparisons",
    "profiles",
    "audits",
    "reports",
    "results",
    "lowering",
    "passes",
    "hlo",
    "tagging",
    "mlir",
    "_compat",
    "_util",
]
ROOMS += ["errors", "_text", "_core"]
CPP_ROOMS = ["hlo", "passes", "transforms", "pass", "analysis", "ir", "capi"]
# What reports and results are of, whose types they name.
SHOWN = {
    "audits.audit",
    "audits.compilations",
    "comparisons.comparison",
    "profiles.profile",
    "profiles.program",
    "profiles.trace",
}
# Below another room, and yet out of its reach; nothing but the package imports `xla`.
FORBIDDEN = {("hlo", room) for room in ("pass", "transforms", "passes")}
FORBIDDEN |= {(room, "xla") for room in ROOMS[3:]} | {("__main__", "xla")}
MADE = {"hlotag/ir/key_names.h"}  # By CMake.

Edges = set[tuple[tuple[str, str], tuple[str, str]]]
"""From and to: the room and the name of a module, or of a C++ file and its header, which count as one."""


def python_edges(*, of_types: bool = True) -> Edges:
    """The imports between modules; without `of_types`, those alone that Python executes."""
    modules = {".".join(path.relative_to(PACKAGE).with_suffix("").parts): path for path in PACKAGE.rglob("*.py")}

    def node(module: str) -> tuple[str, str]:
        first = module.partition(".")[0]
        return "" if first in ("__init__", "hlotag") else first, module

    def imported(tree: ast.Module) -> Iterator[str]:
        if not of_types:
            tree.body = [found for found in tree.body if not isinstance(found, ast.If)]
        for found in ast.walk(tree):
            if isinstance(found, ast.Import | ast.ImportFrom):
                assert not getattr(found, "level", 0), "imports are absolute"
                package = f"{found.module}." if isinstance(found, ast.ImportFrom) else ""
                names = [package + alias.name for alias in found.names]
                yield from (name.removeprefix("hlotag.") for name in names if name.partition(".")[0] == "hlotag")

    edges = set()
    for module, path in modules.items():
        for target in imported(ast.parse(path.read_text())):
            # `a.b` may be a module, a package, or a name in either.
            parent = target.rpartition(".")[0]
            candidates = (target, f"{target}.__init__", parent, f"{parent}.__init__")
            edges.add((node(module), node(next((name for name in candidates if name in modules), target))))
    return edges


def cpp_edges() -> Edges:
    def node(file: Path) -> tuple[str, str]:
        base = next(base for base in (CPP / "lib", CPP / "include" / "hlotag") if base in file.parents)
        return file.relative_to(base).parts[0], file.stem

    edges = set()
    for file in [file for base in ("lib", "include") for file in (CPP / base).rglob("*") if file.suffix in {".cpp", ".h"}]:
        for name in set(re.findall(r'^#include "(.+)"$', file.read_text(), re.MULTILINE)) - MADE:
            candidates = [base / name for base in (CPP / "include", CPP / "lib", file.parent)]
            edges.add((node(file), node(next(path for path in candidates if path.exists()))))
    return edges


def check(edges: Edges, executed: Edges, rooms: list[str]) -> None:
    """No arrow between rooms points up, and no files need each other; the type of an argument may be of a file above.

    Reports and results take what a room above makes, and so name the types of `SHOWN`.
    """
    assert len(edges) > 100
    named = executed | {(a, b) for a, b in edges if a[0] not in ("reports", "results") or b[1] not in SHOWN}
    up = [(a, b) for a, b in named if a[0] != b[0] and (rooms.index(a[0]) > rooms.index(b[0]) or (a[0], b[0]) in FORBIDDEN)]
    assert up == []
    graph: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for a, b in executed:
        if a != b:
            graph.setdefault(a, set()).add(b)
    graphlib.TopologicalSorter(graph).prepare()  # Raises CycleError with the files.


def test_python_imports_point_down():
    check(python_edges(), python_edges(of_types=False), ROOMS)


def test_cpp_includes_point_down():
    check(edges := cpp_edges(), edges, CPP_ROOMS)


def users(pattern: str, folder: Path, suffix: str) -> set[str]:
    """The files of a folder that have a pattern."""
    files = [file for file in folder.rglob(f"*{suffix}") if re.search(pattern, file.read_text())]
    return {str(file.relative_to(folder)) for file in files}


def test_private_names_of_jax_are_used_in_one_place():
    private = r"jax\._src|_mlir_libs|\b_CAPIPtr|from jaxlib import .*\b_|jaxlib\._"
    assert {file.partition("/")[0] for file in users(private, PACKAGE, ".py")} == {"_compat"}


def test_ir_is_changed_by_the_rewriter_alone():
    """What `Rewriter` does not know of, a failed pass cannot roll back."""
    changes = r"\bfn(\(\))?\.mlir(OperationSet|OperationRemove|BlockInsert|BlockArgumentSet)"
    places = {file for file in users(changes, CPP / "lib", ".cpp") if not file.startswith("capi/")}
    assert places <= {"ir/rewriter.cpp", "pass/snapshot.cpp"}


def test_tests_skip_by_requires_alone():
    # Facts of the machine and of JAX, and not missing tools: no GPU, one implementation of checkpoint.
    facts = {"test_hlo_gpu.py", "test_rule_is_block.py"}
    skipping = users(r"\b(importorskip|skipif|skip\()", ROOT / "tests", ".py") - {Path(__file__).name, "requires.py"}
    assert {file for file in skipping if "/" not in file} == facts


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """The name and the number of lines, without docstrings, of each function."""
    source = path.read_text()
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                doc = node.body[0] if ast.get_docstring(node) else None
                yield node.name, node.end_lineno - node.lineno - (doc.end_lineno - doc.lineno if doc else -1)
        return
    begin, head = 0, ""
    for number, line in enumerate(source.splitlines()):
        if line == "}":
            yield head, number - begin + 1
        elif line[:1].strip(" #/}"):
            begin, head = number, line


def test_files_have_500_lines_and_functions_60():
    folders = ("python", "cpp", "tests", "tools", "benchmarks", "fuzz", "examples")
    sources = [p for folder in folders for p in (ROOT / folder).rglob("*") if p.suffix in (".py", ".cpp", ".h")]
    assert [str(path) for path in sources if path.read_text().count("\n") > 500] == []
    assert [(str(path), name, size) for path in sources for name, size in functions(path) if size > 60] == []
