# SPDX-License-Identifier: Apache-2.0
"""The work of an instruction: flops as XLA counts them, bytes where a value reaches memory, roles by opcode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from hlotag.hlo.module import of_executable
from hlotag.hlo.opcodes import Role, replaces, role_of
from hlotag.hlo.work import Work, find_callers, measure

X = jnp.ones((8, 16, 16, 4))
M = jnp.ones((32, 32))


def convolution(kernel: tuple[int, ...] = (3, 3, 4, 8), strides: tuple[int, int] = (1, 1), **options: Any) -> Callable[..., Any]:
    options = {"padding": "SAME", "dimension_numbers": ("NHWC", "HWIO", "NHWC")} | options
    return lambda x: lax.conv_general_dilated(x, jnp.ones(kernel), strides, **options)


COUNTED: dict[str, tuple[Callable[..., Any], Any]] = {
    "product": (lambda m: m @ m, M),
    "batched product": (lambda x: jnp.einsum("abij,acij->abc", x, x), X),
    "pointwise": (lambda m: jnp.where(m > 0, m * 2 + 1, -m), M),
    "transcendental": (lambda m: jnp.exp(jnp.sin(m)), M),
    "reduction": (lambda m: m.sum(0), M),
    "reduction of pairs": (lambda m: jnp.argmax(m, 1), M),
    "sort": (lambda m: jnp.sort(m, 1), M),
    "fft": (jnp.fft.fft, M.astype(jnp.complex64)),
    "real fft": (jnp.fft.rfft2, M),
    "window": (lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"), X),
    "scatter": (lambda m: m.at[jnp.array([1, 5, 7])].add(m[:3]), M),
    "convolution": (convolution(), X),
    "convolution with strides": (convolution(strides=(2, 3)), X),
    "convolution without padding": (convolution(padding="VALID"), X),
    "convolution with holes": (convolution(rhs_dilation=(2, 2)), X),
    "transposed convolution": (convolution(lhs_dilation=(2, 2), padding=((1, 1), (2, 2))), X),
    "grouped convolution": (convolution((3, 3, 2, 8), feature_group_count=2), X),
    "gradients of a convolution": (jax.grad(lambda x: (convolution(strides=(2, 2))(x) ** 2).sum()), X),
    "loop": (lambda m: lax.fori_loop(0, 5, lambda _, c: c @ m, m), M),
}


@pytest.mark.parametrize("name", COUNTED)
def test_flops_are_those_that_xla_counts(name):
    function, argument = COUNTED[name]
    compiled = jax.jit(function).lower(argument).compile()
    (module,) = of_executable(compiled)
    counted = compiled.cost_analysis()
    expected = counted.get("flops", 0.0) + counted.get("transcendentals", 0.0)
    assert sum(work.flops for work in measure(module).values()) == pytest.approx(expected, rel=0.02, abs=64)


def work_of(function: Callable[..., Any], *arguments: Any) -> dict[str, Work]:
    """By opcode, the work of the first instruction of a compiled program, also in fusions."""
    (module,) = of_executable(jax.jit(function).lower(*arguments).compile())
    found: dict[str, Work] = {}
    for instruction, work in measure(module).items():
        found.setdefault(instruction.opcode, work)
    return found


def test_a_value_within_a_fusion_is_not_written():
    found = work_of(lambda m: jnp.tanh(m) * 2 + jnp.arange(32.0), M)
    size = 32 * 32 * 4
    assert [found[opcode].bytes for opcode in ("tanh", "multiply", "add", "fusion")] == [0, 0, size, 0]
    assert found["iota"] == (0, 0, 0) and found["add"].effort == found["tanh"].effort == size // 4


def test_a_gather_outweighs_the_arithmetic_of_its_indices():
    found = work_of(lambda m, i: m[(i * 2 + 1) % 32], M, jnp.arange(8))
    assert found["gather"].bytes == 8 * 32 * 4
    assert found["gather"].effort > 4 * found["add"].effort


def test_an_update_counts_and_not_what_it_is_written_into():
    found = work_of(lambda m, i: lax.dynamic_update_slice(m, jnp.sin(m[:1]), (i, 0)), M, 3)
    assert found["dynamic-update-slice"].bytes == 32 * 4


def test_a_loop_is_run_as_often_as_xla_knows():
    (module,) = of_executable(jax.jit(lambda m: lax.fori_loop(0, 7, lambda _, c: c @ m, m)).lower(M).compile())
    callers = find_callers(module)
    (dot,) = (i for i in module.instructions() if i.opcode == "dot")
    assert callers[dot.computation.id].runs == 7
    assert callers[module.entry.id] == ("", 1)


ROLES = {
    Role.COMPUTES: (
        *(("stablehlo.dot_general", "dot"), ("stablehlo.dot_general", "custom-call"), ("stablehlo.dot_general", "convolution")),
        *(("stablehlo.add", "add"), ("stablehlo.subtract", "add"), ("stablehlo.convert", "convert")),
        *(("stablehlo.reshape", "bitcast"), ("stablehlo.transpose", "copy"), ("stablehlo.slice", "slice")),
        *(("stablehlo.gather", "dynamic-slice"), ("stablehlo.all_gather", "all-gather-start"), ("stablehlo.while", "while")),
    ),
    Role.CARRIES: (
        *(("stablehlo.dot_general", "bitcast"), ("stablehlo.dot_general", "convert"), ("stablehlo.dot_general", "slice")),
        *(("stablehlo.tanh", "copy"), ("stablehlo.all_gather", "all-gather-done"), ("stablehlo.sort", "get-tuple-element")),
    ),
    Role.PART: (
        *(("stablehlo.dot_general", "multiply"), ("stablehlo.dot_general", "reduce"), ("stablehlo.tanh", "divide")),
        *(("stablehlo.select_and_scatter", "scatter"), ("stablehlo.scatter", "select-and-scatter"), ("chlo.erf", "multiply")),
    ),
}


def test_parts_may_be_all_of_an_operation_but_a_sum_is_no_product():
    pairs = (("chlo.erf", "multiply"), ("stablehlo.select_and_scatter", "scatter"), ("stablehlo.dot_general", "reduce"))
    assert [replaces(*pair) for pair in pairs] == [True, True, False]


@pytest.mark.parametrize("role", ROLES)
def test_roles_follow_from_the_opcode(role):
    assert {pair: role_of(*pair) for pair in ROLES[role]} == dict.fromkeys(ROLES[role], role)
