# SPDX-License-Identifier: Apache-2.0
"""What scans keep: held against sizes that are known from the shapes, and against the same layers without a scan."""

import json
import re
from collections import Counter
from functools import partial

import jax
import jax.numpy as jnp
import pytest
from jax import lax

import hlotag
from hlotag.reports import memory
from hlotag.reports.audit_table import plain_text

LAYERS, ROWS, WIDTH = 8, 2048, 32
NARROW = ROWS * WIDTH * 4  # bytes of a layer's input, which its first product keeps
WIDE = 4 * NARROW  # and of the exponential, which its derivative and the second product keep
WEIGHTS = jnp.ones((LAYERS, WIDTH, 4 * WIDTH)), jnp.ones((LAYERS, 4 * WIDTH, WIDTH))
X = jnp.ones((ROWS, WIDTH))


def in_blocks(x, w):
    with hlotag.tagged({"layer": "wide"}), jax.named_scope("wide"):
        h = jnp.exp(x @ w[0])
    with hlotag.tagged({"layer": "narrow"}), jax.named_scope("narrow"):
        return h @ w[1], None


def by_value(x, w):
    h = hlotag.tag(jnp.exp(x @ w[0]), {"layer": "wide"})
    return hlotag.tag(h @ w[1], {"layer": "narrow"}), None


def in_scopes(x, w):
    with jax.named_scope("wide"):
        h = jnp.exp(x @ w[0])
    with jax.named_scope("narrow"):
        return h @ w[1], None


RULES = [hlotag.Rule({"layer": "{part}"}, scope="{part}")]


def scanned(weights, x, body=in_blocks, **options):
    return (lax.scan(body, x, weights, **options)[0] ** 2).sum()


def unrolled(weights, x):
    for n in range(LAYERS):
        x, _ = in_blocks(x, (weights[0][n], weights[1][n]))
    return (x**2).sum()


def nested(weights, x):
    halves = jax.tree.map(lambda w: w.reshape(2, LAYERS // 2, *w.shape[1:]), weights)
    return scanned(halves, x, lambda x, w: lax.scan(in_blocks, x, w))


def mapped(weights, x):
    return jax.vmap(partial(scanned, weights))(x.reshape(4, ROWS // 4, WIDTH)).sum()


def in_a_branch(weights, x):
    return lax.cond(x[0, 0] > 0, scanned, lambda _, x: x.sum(), weights, x)


def with_branches(weights, x):
    def body(x, w):
        return lax.cond(x[0, 0] > 0, lambda: in_blocks(x, w)[0], lambda: x), None

    return scanned(weights, x, body)


SCANS = {
    "tagged in blocks": scanned,
    "tagged by value": partial(scanned, body=by_value),
    "tagged by rules": partial(scanned, body=in_scopes),
    "in reverse": partial(scanned, reverse=True),
    "two layers a trip": partial(scanned, unroll=2),
    "a scan in a scan": nested,
    "under vmap": mapped,
    "in a branch": in_a_branch,
    "with branches": with_branches,
}


def audited(f, *args, rules=()):
    with hlotag.stage(rules=rules):
        return hlotag.audit(f, *args, memory=True, effects=False)


def layers_of(audit):
    """By id of an operation, its layer."""
    return {tag.op.id: tag.value for tag in audit.tags if tag.key == "layer"}


def stacks(audit, values=LAYERS):
    """By layer, the bytes of the arrays that hold so many values of the forward pass."""
    layers, sums = layers_of(audit), Counter()
    for buffer in audit.memory.buffers:
        if buffer.values == values and buffer.phase == "forward" and buffer.bytes >= NARROW:
            sums[layers.get(buffer.op, "")] += buffer.bytes
    return sums


@pytest.mark.parametrize("name", SCANS)
def test_what_a_scan_keeps_is_of_the_operation_that_makes_it(name):
    gradient = jax.grad(SCANS[name])
    audit = audited(gradient, WEIGHTS, X, rules=RULES if name == "tagged by rules" else ())
    assert stacks(audit) == {"wide": LAYERS * WIDE, "narrow": LAYERS * NARROW}
    # A branch of jax 0.10 keeps the weights, too, which no operation makes.
    least = 2 * NARROW
    forward = {
        by: [row for row in audit.costs_by(by) if row.phase == "forward" and row.memory >= least]
        for by in ("layer", "source", "operation")
    }
    assert {row.value for row in forward["layer"]} == {"wide", "narrow"}
    # What the transpose of the scan reads from the arrays, one layer at a time, is of the same operations.
    assert {row.value for row in forward["operation"]} == {"exponential", "dot_general"}
    assert len(forward["source"]) == 2
    assert all(sum(row.memory for row in audit.costs_by(by)) == audit.memory.bytes for by in forward)
    if name not in ("tagged by value", "tagged by rules"):
        in_scope = {
            row.value: row.memory for row in audit.costs_by("scope") if row.phase == "forward" and row.value and row.memory
        }
        assert in_scope == {row.value: row.memory for row in forward["layer"]}


def test_a_scan_keeps_what_its_layers_keep_without_it():
    """But for its first input, which is an argument of the program."""
    scan, single = audited(jax.grad(scanned), WEIGHTS, X), audited(jax.grad(unrolled), WEIGHTS, X)
    rows = {row.value: row for row in single.costs_by("layer") if row.phase == "forward" and row.value}
    assert {layer: row.memory for layer, row in rows.items()} == stacks(scan) - Counter({"narrow": NARROW})
    assert {layer: row.values for layer, row in rows.items()} == {"wide": LAYERS, "narrow": LAYERS - 1}


@pytest.mark.parametrize("of", ["each layer", "groups of layers"])
def test_a_checkpoint_in_a_scan_keeps_inputs_alone(of):
    if of == "each layer":
        checkpointed, trips = partial(scanned, body=jax.checkpoint(in_blocks)), LAYERS
    else:
        groups = jax.tree.map(lambda w: w.reshape(2, LAYERS // 2, *w.shape[1:]), WEIGHTS)
        group = jax.checkpoint(lambda x, w: lax.scan(in_blocks, x, w))
        checkpointed, trips = (lambda _, x: scanned(groups, x, group)), 2
    audit = audited(jax.grad(checkpointed, argnums=1 if of == "groups of layers" else 0), WEIGHTS, X)
    assert stacks(audit, trips) == {"narrow": trips * NARROW}
    recomputed = [row for row in audit.costs_by("layer") if row.phase == "recomputed" and row.memory >= NARROW]
    assert {row.value for row in recomputed} <= {"wide", "narrow"}


def test_results_of_a_scan_are_of_the_operation_that_makes_them():
    def f(weights, x):
        def body(x, w):
            y, _ = in_blocks(x, w)
            return y, (x, hlotag.tag(jnp.cos(y), {"layer": "result"}))

        inputs, results = lax.scan(body, x, weights)[1]
        return jnp.sort(inputs, axis=0).sum() + jnp.sort(results, axis=0).sum()

    audit = audited(f, WEIGHTS, X)
    layers = layers_of(audit)
    stored = {layers.get(life.buffer.op, "") for life in audit.memory.lives if life.buffer.values == LAYERS}
    assert stored == {"narrow", "result"}


def test_a_value_of_another_type_is_of_the_conversion():
    def f(weights, x):
        def body(x, w):
            y, _ = in_blocks(x, w)
            with hlotag.tagged({"layer": "smaller"}):
                return y, y.astype(jnp.float16)

        return jnp.sort(lax.scan(body, x, weights)[1], axis=0).sum()

    audit = audited(f, WEIGHTS, X)
    layers = layers_of(audit)
    assert {layers.get(life.buffer.op) for life in audit.memory.lives if life.buffer.values == LAYERS} == {"smaller"}


def test_a_slice_of_the_program_keeps_its_own_tag():
    """Also if it reads what the scan keeps: it is no slice of the scan's."""

    def f(weights, x):
        kept = lax.scan(lambda x, w: (in_blocks(x, w)[0], x), x, weights)[1]

        def body(carry, n):
            with hlotag.tagged({"layer": "read"}):
                read = lax.dynamic_index_in_dim(kept, n, keepdims=False)
            return carry + jnp.sort(read, axis=0), None

        return lax.scan(body, x, (jnp.arange(LAYERS) * 3) % LAYERS)[0]

    audit = audited(f, WEIGHTS, X)
    layers = layers_of(audit)
    lives = [life.buffer for life in audit.memory.lives if life.buffer.op >= 0]
    assert {layers.get(each.op) for each in lives if each.values == LAYERS} == {"narrow"}
    assert "read" in {layers.get(each.op) for each in lives if each.values == 1}


def test_an_audit_says_how_many_values_an_array_holds():
    audit = audited(jax.grad(scanned), WEIGHTS, X)
    row = next(row for row in audit.costs_by("layer") if row.value == "wide" and row.phase == "forward")
    assert LAYERS <= row.values <= LAYERS + 2
    buffers = json.loads(audit.to_json())["memory"]["buffers"]
    kept = next(each for each in buffers if not each["kind"])  # The largest is first.
    assert (kept["values"], kept["bytes"]) == (LAYERS, LAYERS * WIDE)
    shown = plain_text(memory.renderable(audit, ["layer"], 120), 120)
    assert re.search(rf"wide .* {row.values}\b", shown) and f"{LAYERS} x exponential f32[{LAYERS}," in shown
    section = memory.make_section(audit, ["layer"])
    assert section and f"{row.values} values" in [bar.note for bar in section.at_peak[0].bars]
