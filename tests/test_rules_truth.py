# SPDX-License-Identifier: Apache-2.0
"""Rules with an `op` against ground truth: what derives from an operation of the kind, all of it and nothing else.

Each equation of the primal jaxpr, nested ones included, has an id in its context, which JAX carries through its transformations.
The primal program alone says to which kinds of operations each equation lowers. A program has a rule for each kind. A backward
operation gets what the rules give to derived operations for the kinds of its equation, dead forward operations included.
"""

from collections import defaultdict

import pytest

import derivative_programs
import ground_truth
import hlotag
from ground_truth import KEY, Program
from programs import FORWARD_MODE, PROGRAMS, TRANSFORMS

ATTACHED, DERIVED = "attached", "derived"
DERIVATIVES = [name for name in TRANSFORMS if name not in ("none", "jvp", "linearize", "vmap")]
QUICK = [
    *[("custom_jvp", "grad"), ("sharded", "value_and_grad"), ("inner_jit", "jit_grad"), ("branches", "vmap_grad")],
    *[("indexing", "grad_of_grad"), ("scan_of_remat", "grad")],
]
CASES = [(p, t) for p in PROGRAMS for t in DERIVATIVES if not (p == "custom_vjp" and t in FORWARD_MODE)]


def of_programs(name: str, transform: str) -> Program:
    function, args = PROGRAMS[name]
    return Program(lambda *args: function(*args) ** 2, args, TRANSFORMS[transform], args)


# The equations within these are the program's, and so are those of rules that users write.
OPEN = (
    *("custom_jvp_call", "custom_vjp_call", "jit", "scan", "while", "cond", "remat2", "checkpoint", "shard_map"),
    "custom_linear_solve",
)


def kinds_by_id(program: Program) -> dict[str, set[str]]:
    """The kinds of operations that each primal equation lowers to; bodies of reductions are parts of them."""
    with hlotag.stage():
        module = ground_truth.lower(Program(program.function, program.primal_args or program.args, lambda f: f))
    kinds = defaultdict(set)
    with module.context:
        for op in ground_truth.all_ops(module):
            number = ground_truth.id_of(op)
            if number and (op.parent.name in ("func.func", *ground_truth.WITH_BODY) and not op.name.startswith("func.")):
                kinds[number].add(op.name)
    return kinds


def check(program: Program) -> None:
    kinds = kinds_by_id(program)
    # A tag of a loop tags its body too.
    names = sorted(set().union(*kinds.values()) - ground_truth.WITH_BODY)
    rules = [hlotag.Rule({name: ATTACHED}, op=name, phase="forward", grad={name: DERIVED}) for name in names]
    with hlotag.stage(rules=rules):
        module = ground_truth.lower(program)
    with module.context:
        ops = ground_truth.all_ops(module)
        backward = ground_truth.backward_ops(module)
        entries = [ground_truth.entries_of(op) for op in ops]
    known = [i for i, tags in enumerate(entries) if KEY in tags and tags[KEY].partition(":")[2] not in OPEN]
    errors = []
    for i in known:
        got = {key for key, value in entries[i].items() if value in (ATTACHED, DERIVED)}
        expected = kinds[entries[i][KEY]]
        own = {ops[i].name}
        # Batching adds forward operations of other kinds.
        is_right = got == expected if i in backward else got - own <= expected and (own <= got or not own <= expected)
        if not is_right and ops[i].parent.name in ("func.func", *ground_truth.WITH_BODY):
            errors.append((i, ops[i].name, entries[i][KEY], got ^ expected))
    assert known
    assert not errors, f"{len(errors)} of {len(known)} operations: (position, name, equation, kinds that differ) {errors[:10]}"


@pytest.mark.parametrize(("name", "transform"), [*QUICK, *(pytest.param(*case, marks=pytest.mark.slow) for case in CASES)])
def test_derived_operations_have_the_tags_of_their_equation(name, transform):
    check(of_programs(name, transform))


MODELS = derivative_programs.PROGRAMS.keys() - PROGRAMS.keys()


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(MODELS))
def test_so_they_have_in_models(name):
    check(derivative_programs.PROGRAMS[name])
