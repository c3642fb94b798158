# SPDX-License-Identifier: Apache-2.0
"""Which bugs in the Python of hlotag would its tests not notice?

    python tools/mutate_python.py [--minutes 20] [--seed 0] [--skip 0] [--count N] [--least 0] [FILE[:LINE] ...]

Makes one bug after the other in a copy of the package, with operators of Cosmic Ray: `<=` for `<`, a condition negated, `or` for
`and`, `-` for `+`, another constant, no decorator, a loop of no iterations. Runs the quick tests of the file's topic, and prints
the bugs that survive. Takes a sample of all bugs in the files of `TESTS` until the time is up; --skip and --count continue a
sample, as in `tools/mutate.py`. Fails if fewer percent than --least are noticed. Runs in an environment with hlotag, its test
requirements, and Cosmic Ray (`pip install cosmic-ray`).
"""

from __future__ import annotations

import argparse
import ast
import compileall
import hashlib
import os
import py_compile
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.provider import OperatorProvider
from mutate import run

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "hlotag"
WORK = ROOT / "build" / "mutants-python"

TESTS = {
    "audits/memory.py": ("test_memory.py", "test_memory_scans.py"),
    "audits/rows.py": ("test_runs.py", "test_work.py", "test_listing.py"),
    "audits/states.py": ("test_audit.py", "test_audit_dumps.py"),
    "hlo/restore.py": ("test_hlo.py", "test_hlo_pass.py"),
    "hlo/work.py": ("test_runs.py", "test_unknown_flops.py", "test_work.py"),
    "profiles/clock.py": ("test_profile_trace.py", "test_profile_waiting.py"),
    "results/costs.py": ("test_work.py", "test_shared_functions.py"),
    "results/grouping.py": ("test_work.py", "test_listing.py", "test_gradient_sums.py"),
    "results/savings.py": ("test_savings.py",),
    "tagging/matching.py": ("test_rules.py", "test_backward_rules.py", "test_rules_truth.py"),
    "tagging/walk.py": ("test_tags.py", "test_scopes.py", "test_rules.py", "test_backward_rules.py"),
}
"""By file, the tests of its topic, quick ones first."""
TIMEOUT = 300
# Operators of Cosmic Ray. Its others make what any run notices (a difference of sets, an order of objects), or what a test
# cannot tell (`==` for `is`).
_SWAPPED = (
    *("BinaryOperator_Add_Sub", "BinaryOperator_Sub_Add", "BinaryOperator_Mul_Div", "BinaryOperator_Div_Mul"),
    *("BinaryOperator_FloorDiv_Mul", "BinaryOperator_BitOr_BitAnd", "BinaryOperator_BitAnd_BitOr"),
    *("ComparisonOperator_Eq_NotEq", "ComparisonOperator_NotEq_Eq", "ComparisonOperator_Is_IsNot"),
    *("ComparisonOperator_IsNot_Is", "ComparisonOperator_Lt_LtE", "ComparisonOperator_LtE_Lt"),
    *("ComparisonOperator_Gt_GtE", "ComparisonOperator_GtE_Gt", "UnaryOperator_Delete_Not", "UnaryOperator_USub_UAdd"),
)
OPERATORS = (
    *(f"Replace{each}" for each in _SWAPPED),
    *("AddNot", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd", "ExceptionReplacer"),
    *("ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "NumberReplacer", "RemoveDecorator", "ZeroIterationForLoop"),
)


class Mutant(NamedTuple):
    """A bug: the text of a file with it, and the line that differs first."""

    file: Path
    line: int
    text: str


def mutants(file: Path) -> list[Mutant]:
    """All bugs that can be made in a file."""
    code = file.read_text()
    meaning, nodes, made = meaning_of(code), list(ast_nodes(get_ast(code))), {}
    for name in OPERATORS:
        operator = OperatorProvider()[name]()
        places = [place for node in nodes for place in operator.mutation_positions(node)]
        for number, ((line, _), _) in enumerate(places):
            text = mutate_code(code, operator, number)
            if meaning_of(text) not in (meaning, None, *made):
                made[meaning_of(text)] = Mutant(file, line, text)
    return list(made.values())


def meaning_of(code: str) -> str | None:
    """The syntax tree of code without what changes no result; None if the code is not valid.

    Annotations are not evaluated, and caches, assertions and the strict arguments of `zip` and `dataclass` change nothing unless
    there is another bug.
    """
    try:
        return ast.dump(_Meaning().visit(ast.parse(code)))
    except SyntaxError:
        return None


class _Meaning(ast.NodeTransformer):
    """Removes what changes no result."""

    def visit_Assert(self, node: ast.Assert) -> None:
        """Removes an assertion."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Removes the type of a variable."""
        return self.generic_visit(ast.AnnAssign(node.target, ast.Constant(None), node.value, node.simple))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Removes types and caches of a function."""
        node.returns = None
        node.decorator_list = [each for each in node.decorator_list if "lru_cache" not in ast.dump(each)]
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        """Removes the type of an argument."""
        return ast.arg(node.arg)

    def visit_keyword(self, node: ast.keyword) -> ast.AST | None:
        """Removes arguments that only make errors."""
        return None if node.arg in ("strict", "frozen", "slots", "eq") else self.generic_visit(node)


def place(mutant: Mutant, seed: int) -> str:
    """Sorts the bugs at random. The place of a bug depends on its lines, and on no other bug."""
    return hashlib.sha256(f"{seed} {mutant.file.name} {difference(mutant)}".encode()).hexdigest()


def difference(mutant: Mutant) -> str:
    """The line with the bug, before and after."""
    before, after = mutant.file.read_text().split("\n"), mutant.text.split("\n")
    line = next(n for n, lines in enumerate(zip(before, after, strict=False)) if lines[0] != lines[1])
    return f"{before[line].strip()} -> {after[line].strip()}"


def prepare() -> None:
    """Copies the package with the extension that this environment has, and compiles it once."""
    shutil.rmtree(WORK, ignore_errors=True)
    shutil.copytree(PACKAGE, WORK / "hlotag", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(PACKAGE.parent / "jax_plugins", WORK / "jax_plugins", ignore=shutil.ignore_patterns("__pycache__"))
    find = "import importlib.util; print(importlib.util.find_spec('hlotag._core').origin)"
    extension = subprocess.run([sys.executable, "-c", find], capture_output=True, text=True, check=True).stdout.strip()
    if not (WORK / "hlotag" / Path(extension).name).exists():
        shutil.copy(extension, WORK / "hlotag")
    # By the sources' hashes: two bugs of one second and size have different code.
    compileall.compile_dir(WORK, quiet=1, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)


def environment() -> dict[str, str]:
    """The environment in which the copy is tested."""
    path = os.pathsep.join([str(WORK), str(ROOT / "tests")])
    return os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "JAX_PLATFORMS": "cpu"}


def survives(tests: Iterable[str]) -> bool:
    """Whether these tests pass with the copy as it is."""
    files = [ROOT / "tests" / name for name in tests]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not slow", *files]
    return run(command, environment(), TIMEOUT)


def chosen(files: list[str]) -> Iterator[Mutant]:
    """The bugs of files, or of one line where `:LINE` follows the file."""
    for text in files:
        name, _, line = text.partition(":")
        yield from (mutant for mutant in mutants(Path(name).resolve()) if line in ("", str(mutant.line)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--skip", type=int, default=0, metavar="N")
    parser.add_argument("--count", type=int, metavar="N")
    parser.add_argument("--least", type=float, default=0, metavar="PERCENT")
    parser.add_argument("file", nargs="*", metavar="FILE[:LINE]")
    options = parser.parse_args()
    found = sorted(
        chosen(options.file or [str(PACKAGE / name) for name in TESTS]), key=lambda mutant: place(mutant, options.seed)
    )
    prepare()
    end = time.monotonic() + 60 * options.minutes
    tried = killed = 0
    tested = set()
    for mutant in found[options.skip :][: options.count]:
        if time.monotonic() > end:
            break
        name = mutant.file.relative_to(PACKAGE)
        if name not in tested and not survives(TESTS[str(name)]):
            print(f"hlotag: the tests of {name} fail without a bug", file=sys.stderr)
            return 1
        tested.add(name)
        (WORK / "hlotag" / name).write_text(mutant.text)
        tried += 1
        if survives(TESTS[str(name)]):
            print(f"{mutant.file.relative_to(ROOT)}:{mutant.line}: survives: {difference(mutant)}", flush=True)
        else:
            killed += 1
        shutil.copy(mutant.file, WORK / "hlotag" / name)
        print(options.skip + tried, "tried,", killed, "killed", file=sys.stderr, flush=True)
    print(f"{killed} of {tried} killed ({len(found)} bugs in all)")
    return int(100 * killed < options.least * tried)


if __name__ == "__main__":
    sys.exit(main())
