# SPDX-License-Identifier: Apache-2.0
"""The audits of all programs that JAX compiles in a block, for steps that a library hides in a function of its own."""

from __future__ import annotations

import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlotag import _compat
from hlotag._util.arguments import check_flag
from hlotag.audits import program
from hlotag.audits.audit import Audit
from hlotag.audits.collect import About, compile_and_audit, prepared, recording
from hlotag.audits.compilations import Compilation, Compilations, Entry, list_arguments, name_of
from hlotag.errors import HlotagError
from hlotag.lowering import hlo_pass, staging
from hlotag.mlir.modules import to_bytecode
from hlotag.reports.index import write_index
from hlotag.tagging import tags
from hlotag.tagging.state import active

if TYPE_CHECKING:
    from jaxlib.mlir import ir

_logger = logging.getLogger("hlotag")
_Compiled = Callable[["ir.Module", Mapping[str, Any]], Any]


@contextmanager
def auditing(*, memory: bool = False, folder: str | os.PathLike[str] | None = None) -> Iterator[list[Audit]]:
    """Audits every program that is compiled in a block: what a library's own training loop runs, say.

    In the block, programs are traced and compiled anew, in the active stage, or in that of `hlotag.enable()` if none is. The
    results of the block are the same. Programs of other threads are not audited, nor are those that were compiled ahead of time.

    Args:
        memory: As for `hlotag.audit`.
        folder: Where to write `index.html`: every program with its compile time, the state of its tags, and how its arguments
            differ from those of the last program of its name; and a page and the JSON of each.

    Yields:
        A list, which has the audits when the block has ended, that of most work first. Effects have no verdicts: for these,
        programs are compiled twice, by `hlotag.audit`. Programs of one name are `jit_step`, `jit_step_2` and so on.

    Examples:
        >>> def train(x):
        ...     step = jax.jit(lambda x: hlotag.tag(x @ x, {"layer": "1"}))
        ...     return step(x)
        >>> with hlotag.auditing() as audits:
        ...     _ = train(jnp.ones((64, 64)))
        >>> [str(tag) for tag in audits[0].tags]
        ['layer=1 on stablehlo.dot_general (<doctest...>:2): kept']
    """
    check_flag("memory=", memory)
    audits: list[Audit] = []
    compilations = Compilations()
    with observing(compilations.add, memory=memory):
        yield audits
    audits += sorted((each.audit for each in compilations.found), key=lambda audit: -_work(audit))
    if folder is not None:
        entries = [Entry(each) for each in sorted(compilations.found, key=lambda each: -_work(each.audit))]
        write_index(Path(folder), entries, lambda entry, path: entry.compilation.audit.to_html(path))


def _work(audit: Audit) -> int:
    return sum(each.effort * each.runs for each in audit.instructions)


@contextmanager
def observing(
    found: Callable[[Compilation], None], *, memory: bool = False, options: Callable[[str], Mapping[str, Any]] = lambda _: {}
) -> Iterator[None]:
    """A block in which programs are traced, lowered and compiled anew, and audited.

    `found` gets each program. `options` returns further options of the compiler for JAX's name of a platform.
    """
    names: Counter[str] = Counter()

    def observe(module: ir.Module, platform: str, compiled: _Compiled) -> Any:
        further = options(platform)
        name, arguments, seconds = name_of(module), list_arguments(module), 0.0

        def compile_timed(other: ir.Module, own: Mapping[str, Any]) -> Any:
            nonlocal seconds
            start = time.perf_counter()
            made = compiled(other, {**own, **further})
            seconds += time.perf_counter() - start
            return made

        audit, executable = _audit(module, platform, compile_timed, names, memory=memory)
        if audit is not None:
            found(Compilation(name, audit, seconds, arguments))
        return executable

    with (
        nullcontext() if active() else staging.stage(),
        recording(),
        _compat.modules.without_disk_cache(),
        hlo_pass.observed_by(observe),
    ):
        yield


def _audit(
    module: ir.Module, platform: str, compiled: _Compiled, names: Counter[str], *, memory: bool
) -> tuple[Audit | None, Any]:
    """The audit of a program, None if it cannot be read, and the executable. Raises what the compiler raises."""
    made: list[Any] = []

    def compile_once(other: ir.Module, own: Mapping[str, Any]) -> Any:
        made.append(compiled(other, own))
        return made[-1]

    try:
        copy = _compat.modules.read_bytecode(to_bytecode(module))
        _rename(copy, names)
        about = About(tags.find_dropped(module), source_root="/")
        with prepared(copy, hlo_pass.stage_of(module)):
            return compile_and_audit(program.read(copy), compile_once, platform, about, memory=memory)
    except HlotagError as error:
        _logger.warning("a program of the block is not audited: %s", error)
        return None, made[-1] if made else compiled(module, {})


def _rename(module: ir.Module, names: Counter[str]) -> None:
    """Numbers the modules of one name, which traces tell apart by their names only."""
    from jaxlib.mlir import ir

    name = name_of(module)
    names[name] += 1
    if names[name] > 1:
        with module.context:
            module.operation.attributes["sym_name"] = ir.StringAttr.get(f"{name}_{names[name]}")
