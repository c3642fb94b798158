# SPDX-License-Identifier: Apache-2.0
"""Which program of a trace is wanted, and which is that of an audit?"""

from __future__ import annotations

from collections.abc import Sequence

from hlotag._text import list_some
from hlotag.audits.audit import Audit
from hlotag.audits.dumps import audit_optimized
from hlotag.audits.rows import NEVER_RUN
from hlotag.errors import ParseError
from hlotag.hlo import HloModule
from hlotag.hlo.work import measure
from hlotag.profiles import trace
from hlotag.profiles.modules import split_name
from hlotag.profiles.program import Program
from hlotag.profiles.trace import Trace

_SIMILAR = 0.02  # XLA's passes may do a little more or less of the same
_OTHER_COMPILATION = (
    "The audit's compilation has other instructions than the one that ran, so operations, tags and work are those of the module "
    "that ran: by its scopes, lines and tags."
)


def program_traced(traced: Trace, name: str | None = None) -> tuple[Program, list[str]]:
    """Reads a program that ran in a trace, and what else to know of it.

    `name` is the name of its module, `jit_step`, or with its number, `jit_step(6)`; by default, the program with most time. Tags
    are those of its instructions. Raises ParseError if the trace has no module of such a program.
    """
    modules = traced.modules
    ran = [program for program in traced.programs if program in modules]
    wanted = name or (ran[0] if ran else "")
    chosen = [program for program in (ran or modules) if trace.is_of(program, wanted)]
    if not chosen:
        seen = list_some(ran) or "none"
        raise ParseError(f"{traced.file}: the trace has no module of {name or 'a program that ran'}; modules of what ran: {seen}")
    module = modules[chosen[0]]
    others = [program for program in ran if trace.is_of(program, split_name(chosen[0])[0]) and program != chosen[0]]
    return Program(audit_optimized(module), module, chosen[0]), [] if name == chosen[0] else _of_one_name(chosen[0], others)


def program_of(audit: Audit, traced: Trace) -> tuple[Program, list[str]]:
    """The program of an audit that ran in a trace, and what else to know of it.

    Instructions, names and work are those of the trace's own module: another compilation of the program may name and divide its
    instructions otherwise. If it does, the operations and tags are those of that module, too. Raises ParseError if all modules of
    the name compute something else.
    """
    modules = {program: module for program, module in traced.modules.items() if trace.is_of(program, audit.name)}
    if not modules:
        return Program(audit), []
    ran = [program for program in traced.programs if program in modules] or list(modules)
    same = [program for program in ran if _is_same(modules[program], audit)]
    if same:
        return Program(audit, modules[same[0]], same[0]), _of_one_name(same[0], [p for p in ran if p != same[0]])
    near = [program for program in ran if _computes(modules[program], audit)]
    if not near:
        raise ParseError(
            f"the trace and the audit of {audit.name} are of different programs, with other numbers of flops; audit the program "
            "that was traced, with the same shapes, options and versions, or leave the audit out"
        )
    module = modules[near[0]]
    return Program(audit_optimized(module), module, near[0]), [_OTHER_COMPILATION]


def _of_one_name(chosen: str, others: Sequence[str]) -> list[str]:
    if not others:
        return []
    return [
        f"The trace has {len(others) + 1} programs of this name; this is {chosen}, and others are {list_some(others)}. "
        f"module={others[0]!r}, or --module, chooses another one."
    ]


def _is_same(module: HloModule, audit: Audit) -> bool:
    """Whether a module has the instructions of an audit, by name and flops, and no others that run."""
    work = {instruction.name: (instruction, found.flops) for instruction, found in measure(module).items()}
    known = {each.name for each in audit.instructions} | {each.kernel for each in audit.instructions}
    has_all = all(each.name in work and each.flops == work[each.name][1] for each in audit.instructions)
    runs = (i for i, _ in work.values() if i.computation.id not in module.fusions and i.opcode not in NEVER_RUN)
    return has_all and all(instruction.name in known for instruction in runs)


def _computes(module: HloModule, audit: Audit) -> bool:
    """Whether a module does as many flops as an audited one."""
    flops = sum(work.flops for work in measure(module).values()), sum(each.flops for each in audit.instructions)
    return abs(flops[0] - flops[1]) <= _SIMILAR * max(flops)
