# SPDX-License-Identifier: Apache-2.0
"""Rules in the stage against ground truth: what derives from an operation that a rule matched, all of it and nothing else.

Each equation of the primal jaxpr, nested ones included, has an id in its context, which JAX carries through its transformations.
A program is lowered once, with a rule for each kind of operation and a key for each rule. A backward operation is to have what
the rules give to derived operations if a forward operation with its id has what they attach, and else nothing.
"""

from __future__ import annotations

from collections import defaultdict

import jax
import pytest

import derivation_programs
import ground_truth
import hlotag
from decoder_programs import DECODERS
from ground_truth import KEY, Program
from programs import FORWARD_MODE, PROGRAMS, TRANSFORMS

ATTACHED, DERIVED = "attached", "derived"
DERIVATIVES = [name for name in TRANSFORMS if name not in ("none", "jvp", "linearize", "vmap")]
QUICK = [
    ("custom_jvp", "grad"),
    ("sharded", "value_and_grad"),
    ("inner_jit", "jit_grad"),
    ("branches", "vmap_grad"),
    ("indexing", "grad_of_grad"),
    ("scan_of_remat", "grad"),
]
CASES = [(p, t) for p in PROGRAMS for t in DERIVATIVES if not (p == "custom_vjp" and t in FORWARD_MODE)]


def of_programs(name: str, transform: str) -> Program:
    function, args = PROGRAMS[name]
    return Program(lambda *args: function(*args) ** 2, args, TRANSFORMS[transform], args)


def kinds_in(program: Program) -> list[str]:
    module = ground_truth.lower(program)
    with module.context:
        return sorted({op.name for op in ground_truth.all_ops(module) if not op.name.startswith("func.")})


def check(program: Program) -> None:
    kinds = kinds_in(program)
    rules = [hlotag.Rule({kind: ATTACHED}, op=kind, phase="forward", grad={kind: DERIVED}) for kind in kinds]
    with hlotag.stage(rules=rules):
        module = ground_truth.lower(program)
    with module.context:
        ops = ground_truth.all_ops(module)
        backward = ground_truth.backward_ops(module)
        entries = [ground_truth.entries_of(op) for op in ops]
    expected = defaultdict(set)
    for i, tags in enumerate(entries):
        if i not in backward and KEY in tags:
            expected[tags[KEY]] |= {key for key, value in tags.items() if value == ATTACHED}
    known = [i for i in sorted(backward) if KEY in entries[i]]
    got = {i: {key for key, value in entries[i].items() if value == DERIVED} for i in known}
    errors = [(i, entries[i][KEY], got[i] ^ expected[entries[i][KEY]]) for i in known if got[i] != expected[entries[i][KEY]]]
    assert any(got.values()) or not any(expected[entries[i][KEY]] for i in known)
    assert not errors, f"{len(errors)} of {len(known)} operations: (position, equation, kinds that differ) {errors[:10]}"


@pytest.mark.parametrize(("name", "transform"), QUICK)
def test_derived_operations_have_the_tags_of_their_equation(name, transform):
    check(of_programs(name, transform))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "transform"), CASES)
def test_so_they_have_in_every_program(name, transform):
    check(of_programs(name, transform))


MODELS = {k: p for k, p in (ground_truth.PROGRAMS | DECODERS | derivation_programs.DEVELOPMENT).items() if "40" not in k}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_so_they_have_in_models(name):
    if len(jax.devices()) >= ground_truth.DEVICES_NEEDED.get(name, 1):
        check(MODELS[name])
