# SPDX-License-Identifier: Apache-2.0
"""All but attributes is as XLA makes it without numbers in names, in programs that have names of every kind."""

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

import hlo_programs
import hlotag
import programs

X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6)
W = np.linspace(1, 2, 36, dtype=np.float32).reshape(6, 6)


def combined_collectives(x, w):
    """XLA writes the names of collectives that it combines as `prefix/(a:b)`."""

    def body(x, w):
        def loss(w):
            with jax.named_scope("inner"):
                h = lax.psum(x @ w, "i")
            with jax.named_scope("inner"), jax.named_scope("mean"):
                return (h * lax.pmean(x, "i")).sum()

        value, gradient = jax.value_and_grad(loss)(w)
        return lax.psum(value, "i"), lax.psum(gradient, "i")

    mesh = Mesh(np.array(jax.devices()[:4]), ("i",))
    return jax.shard_map(body, mesh=mesh, in_specs=(P("i"), P()), out_specs=P(), check_vma=False)(x, w)


def callback(x, w):
    """JAX puts the type of a callback, `"pure_callback:"(...)`, around its name."""
    y = jax.pure_callback(lambda y: np.asarray(y) * 2, jax.ShapeDtypeStruct(x.shape, x.dtype), jnp.sin(x))
    return y @ w


def nameless_call(x, w):
    """A helper of `random.normal` is called without a name, and XLA makes up names for its results."""
    return jax.random.normal(jax.random.key(0), x.shape) + x @ w


def name_of_caller(x, w):
    """XLA does not put a caller's name before an equal one."""
    return jax.grad(lambda x: jnp.quantile(x, jnp.array([0.1, 0.5]), axis=1).sum())(x) @ w


def loop_of_a_call_in_a_loop(x, w):
    return lax.scan(lambda y, _: (jnp.linalg.solve(w + 9 * jnp.eye(6), y), None), x[0], None, length=3)[0]


def scopes_like_marks(x, w):
    for scope in ("\x01abc:1\x01/", "\x01hlotag#0\x01", "(\x01a:\x01b)"):
        with jax.named_scope(scope):
            x = jnp.sin(x)
    return x @ w


def name_of_frame(x, w):
    """A call that has no name but its only frame's."""
    return jnp.unique(jnp.round(x).ravel(), size=4) + w[:4, 0]


FUNCTIONS = {
    f.__name__: (f, (X, W))
    for f in (
        *(combined_collectives, callback, nameless_call, name_of_caller, name_of_frame, loop_of_a_call_in_a_loop),
        scopes_like_marks,
    )
}
MIX = hlo_programs.program("mix")
ALL = (
    {f"shared {name}": (jax.value_and_grad(function), arguments) for name, (function, arguments) in programs.PROGRAMS.items()}
    | {f"hlo {name}": hlo_programs.program(name) for name in hlo_programs.PROGRAMS}
    | {"hlo mix": MIX}
    | FUNCTIONS
)


def optimized(function: Callable, arguments: Any, **stage: Any) -> tuple[str, list[Any]]:
    def tagged(*arguments: Any) -> Any:
        with hlotag.set_xla_metadata(k="v"):
            return function(*arguments)

    jax.clear_caches()  # What was traced before, for another test, has the frames of that.
    with hlotag.stage(**stage):
        executable = jax.jit(tagged).lower(*arguments).compile()
    text = re.sub(r", frontend_attributes=\{[^}]*\}", "", executable.as_text())  # pyright: ignore[reportCallIssue]
    return text, jax.tree.leaves(executable(*arguments))


def check(function: Callable, arguments: Any, **without: Any) -> None:
    (plain, before), (tagged, after) = (optimized(function, arguments, **stage) for stage in (without, {}))
    # Where XLA merges operations of one line, the numbers keep it from seeing that their locations are equal.
    if function is MIX[0] and jax.__version_info__ < (0, 12):
        plain, tagged = (re.sub(r" stack_frame_id=\d+|^\d+ \{.*\}$", "", text, flags=re.M) for text in (plain, tagged))
    assert tagged == plain
    for a, b in zip(after, before, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.fixture
def one_frame() -> Any:
    jax.config.update("jax_include_full_tracebacks_in_locations", False)
    yield
    jax.config.update("jax_include_full_tracebacks_in_locations", True)


@pytest.mark.parametrize("name", ALL)
def test_all_but_attributes_is_as_xla_made_it(name):
    check(*ALL[name], pipeline=None)


@pytest.mark.usefixtures("one_frame")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_is_with_one_frame_in_each_location(name):
    check(*ALL[name], hlo=False)
