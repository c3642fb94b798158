# SPDX-License-Identifier: Apache-2.0
"""A value tag covers the bind that made the value: an operation, or a whole jitted function."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import sparse
from jax.experimental.xla_metadata import set_xla_metadata as jax_set

import hlotag
from modules import ops_of
from programs import evaluate

X = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)


def tag(value):
    return hlotag.tag(value, {"k": "v"})


def tagged(function, name):
    """Of each operation of a name, whether it is tagged."""
    return ["k" in op.entries for op in ops_of(jax.jit(function).lower(X)) if op.name == f"stablehlo.{name}"]


softmax = jax.jit(jax.nn.softmax)


def test_last_operation_of_a_python_function(staged):
    tagged_dense = lambda x: tag(jnp.sin(x @ x))
    assert (tagged(tagged_dense, "sine"), tagged(tagged_dense, "dot_general")) == ([True], [False])
    with jax.checking_leaks():  # Nothing that a call holds is kept.
        assert tagged(lambda x: tag(softmax(x)), "divide") == [True]


def test_two_results_of_a_gradient_and_a_batched_function(staged):
    def f(x):
        gradients = jax.grad(lambda a, b: jnp.sum(jnp.sin(a) * jnp.sin(b)), (0, 1))(x, x + 1.0)
        return hlotag.tag(gradients[0], {"a": "v"}), hlotag.tag(gradients[1], {"b": "v"})

    keys = [(op.name, *op.entries) for op in ops_of(jax.jit(f).lower(X)) if op.entries]
    assert sorted(keys) == [("stablehlo.multiply", "a"), ("stablehlo.multiply", "b")]
    ops = ops_of(jax.jit(lambda x: tag(jax.vmap(softmax)(x))).lower(X))
    assert len(ops) > 5 and all("k" in op.entries for op in ops)


def of_an_interpreter(model):
    """As the one of JAX's documentation, which drops contexts."""
    return lambda x: evaluate(jax.make_jaxpr(model)(x), [x], lambda _, bind: bind())[0]


def within_a_gradient(model):
    def program(x):
        gradient = jax.make_jaxpr(jax.grad(lambda x: jax.jit(model)(x).sum()))(x)
        forward = next(equation.params["jaxpr"] for equation in gradient.jaxpr.eqns if "jaxpr" in equation.params)
        return evaluate(forward, [x], lambda _, bind: bind())[0]

    return program


INTERPRETERS = {
    "documentation": of_an_interpreter,
    "documentation, gradient": lambda model: jax.grad(lambda x: of_an_interpreter(model)(x).sum()),
    "documentation of gradient": lambda model: of_an_interpreter(jax.grad(lambda x: model(x).sum())),
    "sparsify": lambda model: lambda x: sparse.sparsify(model)(sparse.BCOO.fromdense(x, nse=16)),
    "within the forward function of a gradient": within_a_gradient,
}
LOST = {
    within_a_gradient: "Partial evaluation removes the tag's equation. Nothing uses its result, lest autodiff save two values."
}


@pytest.mark.parametrize("form", ["hlotag", "jax"])
@pytest.mark.parametrize(
    "interpreter",
    [
        pytest.param(name, marks=[pytest.mark.xfail(reason=LOST[each], strict=True)] if each in LOST else [])
        for name, each in INTERPRETERS.items()
    ],
)
def test_interpreters_lose_no_tag_that_jax_alone_keeps(interpreter, form):
    mark = tag if form == "hlotag" else lambda value: jax_set(value, k="v")
    program = INTERPRETERS[interpreter](lambda x: jnp.sin(mark(x @ X)))
    counts = []
    for stage in (hlotag.stage(None), hlotag.stage()):
        jax.clear_caches()
        with stage:
            counts.append(sum("k" in op.entries for op in ops_of(jax.jit(program).lower(X))))
    assert counts[1] >= counts[0]
    assert counts[1] > 0 or interpreter == "documentation of gradient"


TRACE = ["-m", "trace", "--count", "--coverdir", ".", "alone.py"]
PROGRAM = """
import jax, jax.numpy as jnp, hlotag
hlotag.enable()
def f(x):
    y = hlotag.tag(jnp.tanh(x @ x), {"k": "v"})
    return jnp.where(y > 0, y, 0).sum()
print("tags", jax.jit(jax.grad(f)).lower(jnp.ones((2, 2))).as_text().count('k = "v"'))
"""


DEBUGGERS = [["traced.py"], ["-m", "pdb", "-c", "break f", "-c", "continue", "alone.py"], TRACE]


def test_debuggers_change_no_tag(tmp_path):
    (tmp_path / "alone.py").write_text(PROGRAM)
    (tmp_path / "traced.py").write_text(f"import sys\ndef trace(*_): return trace\nsys.settrace(trace)\n{PROGRAM}")

    def run(command):
        options = {"input": "next\nnext\ncontinue\nquit\n", "capture_output": True, "text": True, "cwd": tmp_path}
        return subprocess.run([sys.executable, *command], **options, timeout=300, check=False).stdout

    with ThreadPoolExecutor(2) as pool:
        plain, *debugged = pool.map(run, [["alone.py"], *DEBUGGERS])
    (alone,) = (line for line in plain.splitlines() if "tags" in line)
    assert [alone in text for text in debugged] == [True] * len(DEBUGGERS)


def test_work_of_a_tag_does_not_grow_with_what_was_traced_since(staged):
    def calls(between):
        seen = []

        def f(x):
            y = jnp.sin(x)
            for _ in range(between):
                x = lax.neg(x)
            before = sys.getprofile()
            sys.setprofile(lambda *_: seen.append(1))
            try:
                tag(y)
            finally:
                sys.setprofile(before)
            return x + y

        jax.make_jaxpr(f)(X)
        return len(seen)

    calls(1)
    assert calls(500) < 2 * calls(5)
