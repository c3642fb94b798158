# SPDX-License-Identifier: Apache-2.0
"""Work by tag, and the difference between two programs: held against programs whose work is known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import hlotag
from hlotag import _compat
from hlotag.comparisons import Difference
from hlotag.hlo import HloModule
from hlotag.hlo.work import Roles, find_roles
from hlotag.profiles.program import Program

ROWS, WIDTH, LAYERS = 256, 64, 3
PRODUCT = 2 * ROWS * WIDTH * WIDTH  # flops
VALUE = 4 * ROWS * WIDTH  # bytes
WEIGHTS, X = jnp.ones((LAYERS, WIDTH, WIDTH)), jnp.ones((ROWS, WIDTH))


def layer(x, w):
    return jnp.tanh(x @ w)


def loss(weights, x, layer=layer):
    for n in range(LAYERS):
        with hlotag.tagged({"layer": n}), jax.named_scope(f"layer_{n}"):
            x = layer(x, weights[n])
    return (x**2).sum()


def audited(f, *args, **options):
    with hlotag.stage():
        return hlotag.audit(f, *args, **options)


@pytest.fixture(scope="module")
def step():
    return audited(jax.grad(loss), WEIGHTS, X, memory=True)


@pytest.mark.parametrize("by", ["layer", "scope", "scope:1", "source", "operation", ("layer", "operation")])
def test_rows_sum_to_the_work_of_instructions_and_the_values_in_memory(step, by):
    rows = step.costs_by(by)
    for amount in ("flops", "bytes"):
        assert sum(getattr(row, amount) for row in rows) == sum(getattr(i, amount) * i.runs for i in step.instructions)
    for row, buffer in (("memory", "bytes"), ("values", "values")):
        assert sum(getattr(each, row) for each in rows) == sum(getattr(each, buffer) for each in step.memory.buffers)


def test_a_layer_has_its_products(step):
    """Forward one product; backward those of both gradients. The gradient of the input is not asked for."""
    products = {(row.value, row.phase): row.flops for row in step.costs_by(("layer", "operation")) if "dot" in row.value}
    backward = {f"{n}, dot_general": (2 if n else 1) * PRODUCT for n in range(LAYERS)}
    assert products == {
        **{(f"{n}, dot_general", "forward"): PRODUCT for n in range(LAYERS)},
        **{(value, "backward"): flops for value, flops in backward.items()},
    }


def test_a_loop_counts_each_of_its_trips():
    def f(x, w):
        with hlotag.tagged({"layer": "loop"}):
            return lax.fori_loop(0, 7, lambda _, x: layer(x, w), x)

    (row,) = [row for row in audited(f, X, WEIGHTS[0]).costs_by(("layer", "operation")) if row.value == "loop, dot_general"]
    assert row.flops == 7 * PRODUCT


ROLES = """HloModule m
ENTRY main {
  x = f32[8,8] parameter(0)
  product = f32[8,8] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  moved = f32[8,8] transpose(product), dimensions={1,0}
  whole = f32[8,8] tanh(moved)
  ROOT piece = f32[8,8] multiply(whole, whole)
}"""


def test_an_instruction_computes_operations_or_parts_of_them_or_moves_their_results():
    """What no instruction computes as a whole is computed by its parts together."""
    _, product, moved, whole, piece = HloModule(_compat.runtime.hlo_from_text(ROLES)).instructions()
    joined = {product: (0,), moved: (0,), whole: (1,), piece: (1, 2)}
    assert find_roles(joined, ["stablehlo.dot_general", "stablehlo.tanh", "stablehlo.logistic"]) == {
        product: Roles(computes=(0,)),
        moved: Roles(carries=(0,)),
        whole: Roles(computes=(1,)),
        piece: Roles(computes=(2,), parts=(1,)),
    }


def compared(before, now, by=None) -> tuple[Difference, list[Difference]]:
    (outcome,) = hlotag.compare({"before": before, "now": now}, by=by).outcomes
    return outcome.program, outcome.differing()


def grown(row: Difference, measure: str) -> float:
    amount = row.amount(measure)
    return amount.now - amount.before if amount else 0.0


def test_differences_of_rows_sum_to_that_of_the_program(step):
    def twice(x, w):
        return layer(x, w) + layer(jnp.sin(x), w)

    other = audited(jax.grad(lambda w, x: loss(w, x, twice)), WEIGHTS, X, memory=True)
    program, rows = compared(step, other, "layer")
    memory = program.amount("memory")
    assert memory and (memory.now, memory.before) == (other.memory.bytes, step.memory.bytes)
    assert grown(program, "flops") > 3 * PRODUCT
    for measure in ("flops", "bytes", "memory"):
        assert sum(grown(row, measure) for row in rows) == grown(program, measure)


def test_only_the_row_that_changed_is_listed(step):
    def changed(weights, x):
        for n in range(LAYERS):
            with hlotag.tagged({"layer": n}), jax.named_scope(f"layer_{n}"):
                x = layer(layer(x, weights[n]), weights[n]) if n == 1 else layer(x, weights[n])
        return (x**2).sum()

    before, now = (audited(f, WEIGHTS, X) for f in (loss, changed))
    _, (row,) = compared(before, now)
    assert (row.key, row.value) == ("layer", "1")
    assert grown(row, "flops") == pytest.approx(PRODUCT, rel=0.05)
    assert {row.value for row in compared(before, now, "scope")[1]} == {"layer_1"}
    program, rows = compared(before, before)
    assert rows == [] and all(amount.trend == "same" for amount in program.amounts)
    with pytest.raises(hlotag.errors.ArgumentError, match="choose from layer"):
        compared(before, now, "no")


def test_a_key_of_one_program_only_is_compared_by_name(step):
    plain = audited(lambda w, x: layer(x, w[0]).sum(), WEIGHTS, X)
    program, rows = compared(plain, step, "layer")
    assert {row.value for row in rows if row.key and grown(row, "flops")} >= {"0", "1", "2"}
    assert program.amount("memory") is None  # One of the audits has no memory.


def test_collectives_have_the_bytes_that_they_exchange():
    mesh = Mesh(np.array(jax.devices()[:4]), ("a",))
    put = lambda x, *names: jax.device_put(x, NamedSharding(mesh, P(*names)))

    @jax.jit
    def f(x, w):
        with hlotag.tagged({"layer": "1"}):
            return lax.with_sharding_constraint(x @ w, NamedSharding(mesh, P()))

    summed = audited(f, put(X, None, "a"), put(WEIGHTS[0], "a", None))
    (row,) = [row for row in summed.costs_by("layer") if row.value]
    assert (row.exchanged, row.flops) == (VALUE, pytest.approx(PRODUCT / 4 + ROWS * WIDTH, rel=0.05))
    local = audited(f, put(X), put(WEIGHTS[0]))
    program, _ = compared(local, summed)
    assert grown(program, "exchanged") == VALUE


def test_each_layer_has_its_own_collectives_and_its_own_memory():
    """Weights are sharded; XLA gathers each layer's and sums its gradient, all gradients in one combined collective."""
    mesh = Mesh(np.array(jax.devices()[:4]), ("a",))
    sharded, whole = NamedSharding(mesh, P("a")), NamedSharding(mesh, P())

    def loss(weights, x):
        for number, w in enumerate(weights):
            with hlotag.tagged({"layer": number}):
                x = jnp.tanh(x @ lax.with_sharding_constraint(w, whole))
        return (x**2).mean()

    weights = [jnp.ones((WIDTH, WIDTH))] * LAYERS
    step = jax.jit(jax.grad(loss), out_shardings=[sharded] * LAYERS)
    audit = audited(step, *jax.device_put((weights, X), sharded), memory=True)
    gathered = {(row.value, row.phase): row.exchanged for row in audit.costs_by("layer") if row.exchanged}
    size = 4 * WIDTH * WIDTH
    assert gathered == {(str(n), phase): size for n in range(LAYERS) for phase in ("forward", "backward")}
    combined = [each for each in audit.instructions if each.collective == "all-reduce" and each.start == each.name]
    assert len(combined) == 1 and len(combined[0].ops) == LAYERS
    summed = [buffer.op for buffer in audit.memory.buffers if (buffer.name, buffer.bytes) == (combined[0].name, size)]
    assert len(set(summed)) == len(summed) == LAYERS


def test_a_combined_collective_is_divided_by_the_bytes_of_each_operand():
    """XLA sums the gradients of a matrix and of three vectors in one collective."""
    mesh = Mesh(np.array(jax.devices()[:4]), ("a",))
    names = ["tiny0", "tiny1", "tiny2"]

    def loss(w, x):
        with hlotag.tagged({"layer": "big"}):
            y = jnp.tanh(x @ w["big"])
        for name in names:
            with hlotag.tagged({"layer": name}):
                y = jnp.sin(y * w[name])
        return (y**2).mean()

    weights = {"big": jnp.ones((WIDTH, WIDTH)), **{name: jnp.ones(WIDTH) for name in names}}
    put = jax.device_put(weights, NamedSharding(mesh, P())), jax.device_put(X, NamedSharding(mesh, P("a")))
    audit = audited(jax.jit(jax.grad(loss)), *put)
    sizes = {"big": 4 * WIDTH * WIDTH} | dict.fromkeys(names, 4 * WIDTH)
    assert {row.value: row.exchanged for row in audit.costs_by("layer") if row.exchanged} == sizes
    (combined,) = [each for each in audit.instructions if each.collective and each.start == each.name]
    program = Program(audit)
    time = dict.fromkeys(sizes, 0.0)
    for part in program.parts(combined.name):
        time[program.values(part.op)["layer"]] += part.weight
    assert time == pytest.approx({name: size / sum(sizes.values()) for name, size in sizes.items()})
