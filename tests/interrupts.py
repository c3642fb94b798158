# SPDX-License-Identifier: Apache-2.0
"""A program that interrupts hlotag at each executed line of its own, and prints after which lines a fresh program is wrong."""

import ast
import functools
import os
import re
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import jax
import jax.numpy as jnp

import hlotag
from hlotag.lowering.staging import under

PACKAGE = os.path.dirname(hlotag.__file__)
X = jnp.arange(4.0)
RULES = [hlotag.Rule({"r": "1"}, op="sine", scope="here"), hlotag.Rule({"f": "1"}, op="exponential")]

Place = tuple[str, int]


def function() -> Callable:
    def f(x):
        with hlotag.tagged({"b": "1"}, grad={"b": "2"}), jax.named_scope("here"):
            return jax.nn.softmax(hlotag.tag(jnp.sin(x), {"k": "v"}, grad={"k": "w"})).sum()

    return jax.jit(jax.grad(f))


def texts() -> tuple[str, str]:
    """A fresh program's module and executable."""
    jax.clear_caches()
    with hlotag.stage(rules=RULES):
        lowered = function().lower(X)
        # The executable has the frames of all callers.
        return lowered.as_text(), re.sub(r"(?m)^\d+ .*\n| stack_frame_id=\d+", "", lowered.compile().as_text())


def switch() -> None:
    hlotag.enable(rules=RULES)
    hlotag.disable()


def block() -> None:
    with hlotag.stage(rules=RULES):
        pass


def lowering() -> Callable[[], Any]:
    with hlotag.stage(rules=RULES) as stage:
        traced = function().trace(X)

    def lower() -> None:
        with under(stage):
            traced.lower()

    return lower


def compiling() -> Callable[[], Any]:
    with hlotag.stage(rules=RULES):
        return function().lower(X).compile


def auditing() -> Callable[[], Any]:
    def audit() -> None:
        with hlotag.stage(rules=RULES):
            hlotag.audit(function(), X)

    return audit


WORK = {"switch": lambda: switch, "block": lambda: block, "lowering": lowering, "compiling": compiling, "auditing": auditing}

# Of the lines that a work executes, every so many is tried; each version of Python tries other ones. INTERRUPT_EVERY=1 tries all.
EVERY = {"switch": 2, "block": 2, "lowering": 8, "compiling": 4, "auditing": 72}


def traced(work: Callable[[], Any], on_line: Callable[[Place], None]) -> None:
    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "line":
            on_line((frame.f_code.co_filename, frame.f_lineno))
        return trace

    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(None)


@functools.cache
def in_finally(file: str) -> set[int]:
    """The lines of `finally` blocks. CPython raises no interrupt there, unless they call a function in Python."""
    tries = [node for node in ast.walk(ast.parse(Path(file).read_text())) if isinstance(node, ast.Try) and node.finalbody]
    return {line for node in tries for line in range(node.finalbody[0].lineno, (node.finalbody[-1].end_lineno or 0) + 1)}


def wrong(make: Callable[[], Callable[[], Any]], expected: tuple[str, str], every: int) -> tuple[str, list[str]]:
    """How many lines were executed and tried, and those that leave hlotag wrong."""
    executed: dict[Place, None] = {}
    traced(make(), lambda place: executed.setdefault(place))
    found, places = [], list(executed)[sys.version_info.minor % every :: every]
    for place in places:
        if place[1] in in_finally(place[0]):
            continue

        def interrupt(at: Place, place: Place = place) -> None:
            if at == place:
                sys.settrace(None)
                raise KeyboardInterrupt

        work = make()
        with suppress(BaseException):  # In a callback of XLA's it is XLA's error.
            traced(work, interrupt)
        try:
            result = "" if texts() == expected else "another module"
        except Exception as error:
            result = f"{type(error).__name__}: {error}"
        if result:
            found.append(f"{os.path.relpath(place[0], PACKAGE)}:{place[1]}: {result[:80]}")
    return f"{len(executed)} lines, {len(places)} tried", found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    reference = texts()
    for name in sys.argv[1:] or WORK:
        count, lines = wrong(WORK[name], reference, int(os.environ.get("INTERRUPT_EVERY", EVERY[name])))
        print(name, count, *lines, sep="\n")
