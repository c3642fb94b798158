# SPDX-License-Identifier: Apache-2.0
"""The rooms of `python/hlotag` and the arrows between them: each import, lazy ones included, points to a room below.

All Python files of the repository fit their sizes too."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "python" / "hlotag"
ROOMS = [
    "__main__",
    "",
    "xla",
    "cli",
    "profiles",
    "audits",
    "lowering",
    "passes",
    "hlo",
    "tagging",
    "mlir",
    "_compat",
    "_util",
    "errors",
    "_text",
    "_core",
]
"""From the top floor down. The second is the package itself, whose `__init__` exports from all rooms."""


def modules() -> dict[str, ast.Module]:
    return {
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts): ast.parse(path.read_text()) for path in PACKAGE.rglob("*.py")
    }


def imports(tree: ast.Module) -> Iterator[str]:
    """The modules of hlotag that a module imports at any depth, without the package's own name: `mlir.modules`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name.removeprefix("hlotag.") for name in names if name.partition(".")[0] == "hlotag")


def room(module: str) -> str:
    first = module.partition(".")[0]
    return "" if first in ("__init__", "hlotag") else first


def wrong(trees: dict[str, ast.Module]) -> list[str]:
    """The arrows that point up, or into `xla`, which stands by itself."""
    arrows = [(module, target) for module, tree in trees.items() for target in imports(tree)]
    return [
        f"{module} -> {target}"
        for module, target in arrows
        if room(module) != room(target)
        and (ROOMS.index(room(target)) < ROOMS.index(room(module)) or (room(target) == "xla" and room(module) != ""))
    ]


def test_every_arrow_points_down():
    assert wrong(modules()) == []


def module_of(target: str, trees: dict[str, ast.Module]) -> str | None:
    """The module that an import loads: `a.b` may be a module, a package, or a name in either."""
    parent = target.rpartition(".")[0]
    return next((name for name in (target, f"{target}.__init__", parent, f"{parent}.__init__") if name in trees), None)


def circles(trees: dict[str, ast.Module]) -> list[set[str]]:
    """The sets of modules that import one another, lazily or not; a package's `__init__` is a module of its own."""
    below: dict[str, set[str]] = {}
    for module, tree in trees.items():
        below[module] = {name for target in imports(tree) if (name := module_of(target, trees))}
    while leaves := [module for module, targets in below.items() if not targets & below.keys() - {module}]:
        for leaf in leaves:
            del below[leaf]
    return [{module} | (below[module] & below.keys()) for module in below]


def test_no_module_imports_itself_by_way_of_others():
    assert circles(modules()) == []


SOURCES = [
    path for folder in ("python", "tests", "tools", "benchmarks", "fuzz", "examples") for path in (ROOT / folder).rglob("*.py")
]


def test_a_file_has_at_most_500_lines():
    assert [str(path.relative_to(ROOT)) for path in SOURCES if path.read_text().count("\n") > 500] == []


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The number of lines without the docstring."""
    doc = function.body[0] if ast.get_docstring(function) else None
    return function.end_lineno - function.lineno + 1 - (doc.end_lineno - doc.lineno + 1 if doc else 0)


def test_a_function_fits_a_screen():
    long = [
        f"{path.relative_to(ROOT)}: {node.name} has {length(node)} lines"
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and length(node) > 60
    ]
    assert long == []
