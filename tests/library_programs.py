# SPDX-License-Identifier: Apache-2.0
"""Programs of the public functions of JAX's libraries, for measuring that nothing is derived wrongly.

Nobody wrote these functions with derivation in mind. Those that can be differentiated are put into small programs that call them
at several lines, repeatedly at one, and in a function that is batched, checkpointed or run by a loop, so that many a pair is
possible. `library_calls.txt` has their names, behind their module and the arguments that fit them: places in `ARGUMENTS`.

`python tests/library_programs.py SEED` prints what is wrong, program by program in an order that SEED gives, and the totals.
"""

import itertools
import os
import random
import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
from jax import lax

import derivative_programs
import ground_truth
from ground_truth import Program

TRANSFORMS = {
    name: getattr(derivative_programs, name) for name in ("everything", "each", "of_batch", "hessian_vector", "second_gradient")
}
CALLS = Path(__file__).with_name("library_calls.txt")
Case = tuple[str, str, str]  # expression, layout, transformation


def listed(text: str) -> tuple[str, ...]:
    """The expressions of a text, which has semicolons between them."""
    return tuple(text.strip().replace(";\n", "; ").split("; "))


# What a function may take, of a matrix of 4 x 8.
ARGUMENTS = listed("""
{0}; {0} @ {0}.T + 2.0 * jnp.eye(4); {0} @ {0}.T + 2.0 * jnp.eye(4), {0}; {0}, {0} * 0.5; {0}, {0}.T;
jnp.abs({0}) * 0.4 + 0.1; jnp.abs({0}) + 1.5; jnp.abs({0}) + 1.5, jnp.abs({0}.mean()) + 0.5; {0}[0]; {0}[0], {0}[1];
{0}[0, :3], {0}[1, :3]; {0}, INDEX; {0}, INDEX[None]; {0}, INDEX[:, None], 1; {0}, 1; {0}, 2; {0}, 0, 1; {0}, 1, 4;
{0}, (1, 0); {0}, (0,); {0}, (4, 8); {0}, (2, 16); ({0}, {0} * 2.0); [{0}[0], {0}[1]]; {0}, {0}, {0};
jnp.abs({0}) * 0.4 + 0.1, 1.5, 0.7; {0} > 0, {0}, {0} * 2.0; 1.5, {0}; 2, {0}; {0}, INDEX, 4; {0}[0], INDEX, {0}[1, 4];
{0}, 0, {0} * 2.0; KEY, {0}; KEY, jnp.abs({0}) + 1.5; KEY, jnp.abs({0}) + 1.5, jnp.abs({0}) + 0.5;
KEY, {0}[0], {0} @ {0}.T, (4,); KEY, {0}, (4, 8); {0}.reshape(1, 1, 4, 8), {0}[:2, :2].reshape(1, 1, 2, 2), (1, 1), 'SAME';
{0}[None, :, None, :], {0}[None, :, None, :], {0}[None, :, None, :]; {0}, [INDEX, INDEX[:, None]], 1; lambda v: v * {0}, {0};
lambda c, v: (c * v, c + v), {0}[0], {0}; lambda v: jnp.sin(v), {0}; 0, 3, lambda i, v: jnp.sin(v * i), {0};
{0}.sum() > 0, jnp.sin, jnp.cos, {0}; 1, [jnp.sin, jnp.cos], {0}; lax.mul, {0}
""")
# What no list of arguments finds.
EXPRESSIONS = listed("""
jnp.einsum('ij,kj,kl->il', {0}, {0}, {0}); jnp.einsum('ij,ij,ij->j', {0}, {0} * 0.5, {0} * 2.0);
jnp.einsum('ij,jk,kl,lm->im', {0}, {0}.T, {0}, {0}.T); jnp.linalg.multi_dot([{0}, {0}.T, {0}, {0}.T]);
jax.ops.segment_sum({0}, INDEX, 4) * jax.ops.segment_max({0}, INDEX, 4);
jnp.piecewise({0}, [{0} < 0, {0} > 1], [jnp.sin, jnp.cos, lambda v: v * 2]);
jnp.vectorize(lambda a, b: a * jnp.sin(b))({0}, {0}); jnp.apply_along_axis(lambda v: v * v.sum(), 1, {0});
lax.associative_scan(lambda a, b: a * b + b, {0}); lax.map(lambda v: jnp.sin(v) * v, {0});
lax.reduce({0}, 0.0, lax.add, (1,));
lax.custom_linear_solve(lambda v: 2.0 * v, {0}, lambda f, b: b / 2.0, lambda f, b: b / 2.0);
jax.image.resize({0}, (8, 8), 'linear'); jax.image.resize({0}, (8, 8), 'cubic');
lax.reduce_window({0}, 0.0, lax.add, (2, 2), (1, 1), 'SAME');
lax.reduce_window({0}, -jnp.inf, lax.max, (2, 2), (1, 1), 'SAME');
jax.scipy.linalg.solve_triangular({0} @ {0}.T + 2.0 * jnp.eye(4), {0}, lower=True);
jax.scipy.linalg.solve_triangular({0} @ {0}.T + 2.0 * jnp.eye(4), {0}, trans=1);
jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor({0} @ {0}.T + 2.0 * jnp.eye(4)), {0});
jax.scipy.linalg.lu_solve(jax.scipy.linalg.lu_factor({0} @ {0}.T + 2.0 * jnp.eye(4)), {0});
jax.scipy.linalg.expm({0} @ {0}.T); jax.scipy.linalg.toeplitz({0}[0]);
jax.scipy.stats.norm.logpdf({0}, 0.5, jnp.abs({0}) + 1.0);
jax.scipy.stats.gamma.logpdf(jnp.abs({0}) + 0.1, jnp.abs({0}) + 1.0);
jax.scipy.stats.beta.logpdf(jnp.abs({0}) * 0.4 + 0.1, jnp.abs({0}) + 1.0, jnp.abs({0}) + 2.0);
jax.scipy.stats.t.logpdf({0}, jnp.abs({0}) + 1.0);
jax.scipy.stats.multivariate_normal.logpdf({0}[:, :4], {0}[0, :4], {0} @ {0}.T + 2.0 * jnp.eye(4));
jax.scipy.stats.dirichlet.logpdf(jax.nn.softmax({0}[0]), jnp.abs({0}[1]) + 1.0);
jax.scipy.stats.gaussian_kde({0})({0}[:, :2]); jnp.stack([{0}, {0} * 2.0, {0}], 1).sum(1); jnp.r_[{0}, {0}] + jnp.ones(8);
jnp.mgrid[:4.0, :8.0][0] * {0}; {0}.at[INDEX, INDEX].set({0}[0, :4]); {0}.at[:, 2:4].min({0}[:, :2]); {0}[INDEX, INDEX + 1];
{0}[:, ::2] * {0}[:, 1::2]; lax.dynamic_update_slice({0}, {0}[:2, :2], (1, 3));
lax.dynamic_index_in_dim({0}, 1, keepdims=False); jnp.fft.irfft(jnp.fft.rfft({0}) * jnp.fft.rfft({0}[::-1]));
jnp.abs(jnp.fft.fft2({0})) ** 2; jnp.convolve({0}[0], {0}[1], mode='same'); jax.vmap(jnp.convolve)({0}, {0});
jax.lax.while_loop(lambda c: c < 3, lambda c: c + 1, 0) * {0};
jax.nn.dot_product_attention({0}.reshape(1, 4, 2, 4), {0}.reshape(1, 4, 2, 4), {0}.reshape(1, 4, 2, 4), is_causal=True);
jax.nn.standardize({0}, axis=0) * jax.nn.standardize({0}); jnp.linalg.eigh({0} @ {0}.T)[1]; jnp.linalg.qr({0})[1];
jnp.linalg.svd({0}, full_matrices=False)[0]; jnp.linalg.slogdet({0} @ {0}.T + 2.0 * jnp.eye(4))[1]; jnp.unwrap({0});
jnp.trapezoid({0}, {0} * 2.0); jnp.interp({0}[0], jnp.arange(4.0), {0}[1, :4]); jnp.polyval({0}[0], {0}[1]);
jnp.percentile({0}, 30.0, axis=0); jnp.cov({0}); jnp.corrcoef({0});
jnp.select([{0} > 1, {0} > 0], [{0}, {0} * 2.0], {0} * 3.0)
""")
NAMES: dict[str, Any] = {"jax": jax, "jnp": jnp, "lax": lax, "INDEX": jnp.array([2, 0, 1, 3]), "KEY": jax.random.key(0)}


def put_into(x: Any, values: Any) -> Any:
    """A matrix like `x` that depends on all of `values` that are numbers with a derivative."""
    for leaf in jax.tree.leaves(values):
        array = jnp.asarray(leaf)
        if not jnp.issubdtype(array.dtype, jnp.inexact):
            continue
        value = jnp.real(array) + jnp.imag(array) if jnp.iscomplexobj(array) else array
        x = x + value * 0.1 if value.shape == x.shape else x * jnp.cos(value.astype(x.dtype).sum())
    return x


NAMES["put_into"] = put_into
LAYOUTS = {
    "lines": """
def program(x, w, v):
    y = x @ v
    y = put_into(x, {a})
    with jax.named_scope("middle"):
        y = jnp.sin(y @ w) - {b}
    z = jnp.tanh(put_into(y, {a}) @ v)
    return (put_into(z, {c}) ** 2).mean()
""",
    "loop": """
def program(x, w, v):
    y = x
    for _ in range(3):
        y = put_into(y @ w, {a})
        y = {b} * 0.5 + jnp.cos({b} @ v)
    return jnp.sin(y).sum()
""",
    "one line": """
def program(x, w, v):
    y, z = x @ w, x @ v
    y = put_into(y, {a}) * put_into(z, {d}) + put_into(y * 0.5, {a})
    return jnp.tanh(put_into(y, {a})).sum()
""",
    "checkpoint": """
def program(x, w, v):
    @jax.checkpoint
    def layer(y, w):
        return put_into(jnp.tanh(y @ w), {a}) + y
    return jnp.sin(layer(layer(x, w), v) * layer(x, v)).sum()
""",
    "scan": """
def program(x, w, v):
    def step(y, w):
        return put_into(y @ w, {a}), {b}.sum()
    y, sums = lax.scan(step, x, jnp.stack([w, v]))
    return jnp.sin(put_into(y, {a})).sum() + (sums ** 2).sum()
""",
    "functions": """
def step(y, w):
    return put_into(y @ w, {a}), {b}.sum()
def layers(y, w, v):
    return lax.scan(step, y, jnp.stack([w, v]))
def model(x, w, v):
    y, sums = layers(x, w, v)
    return layers(put_into(y, {a}), v, w)[0] * sums.sum()
def program(x, w, v):
    return jnp.sin(model(x, w, v)).sum()
""",
    "checkpointed scan": """
def layer(y, w):
    z = jnp.cos(jnp.arange(32.0).reshape(4, 8))
    return put_into(jnp.tanh(y @ w), {a}) * put_into(z, {c}), {b}.sum()
def program(x, w, v):
    y, sums = lax.scan(jax.checkpoint(layer), x, jnp.stack([w, v]))
    return jnp.sin(put_into(y, {a})).sum() + (sums ** 2).sum()
""",
    "unrolled": """
def layer(y, w):
    z = jnp.cos(jnp.arange(32.0).reshape(4, 8))
    return put_into(jnp.tanh(y @ w), {a}) * put_into(z, {c}), y.sum()
def program(x, w, v):
    ws, once = jnp.stack([w, v, w, v]), jax.checkpoint(layer)
    y, _ = lax.scan(once, layer(x, w)[0], ws, unroll=2)
    y, sums = lax.scan(layer, y, ws[::-1], unroll=2)
    return jnp.sin(lax.scan(once, y, ws)[0]).sum() + (sums ** 2).sum()
""",
    "jit": """
@jax.jit
def layer(y, w):
    return put_into(jnp.tanh(y @ w), {a}) + {b}
def program(x, w, v):
    return jnp.sin(layer(layer(x, w), v) * layer(x, v)).sum()
""",
}


def expressions() -> list[str]:
    """Expressions of `{0}`, a matrix: those of the file, and those above."""
    forms: dict[str, list[str]] = {}
    for line in CALLS.read_text().replace("\n  ", " ").splitlines():
        head, _, names = line.partition(":")
        module, places = head.split()
        for name in names.split():
            forms[f"{module}.{name}"] = [ARGUMENTS[int(place)] for place in places.split(",")]
    return [f"{name}({arguments})" for name in sorted(forms) for arguments in forms[name]] + [*EXPRESSIONS]


def program(expression: str, layout: str, transform: str) -> Program:
    """A program that calls the function of `expression`."""
    b = f"put_into(y, {expression.format('y')})"
    texts = {"a": expression.format("y"), "b": b, "c": expression.format("z"), "d": expression.format("jnp.sin(z)")}
    source, names = LAYOUTS[layout].format(**texts), dict(NAMES)
    exec(compile(source, "/library/program.py", "exec"), names)
    arguments = (derivative_programs.X, derivative_programs.W, derivative_programs.V)
    return Program(names["program"], arguments, TRANSFORMS[transform], runs_repeatedly=layout == "unrolled")


def cases(seed: int) -> list[Case]:
    """All cases, in the order that `seed` gives."""
    found = list(itertools.product(expressions(), LAYOUTS, TRANSFORMS))
    random.Random(seed).shuffle(found)
    return found


@dataclass
class Totals:
    """Over many programs: backward operations, and what was said of them."""

    programs: int = 0
    right: int = 0
    wrong: int = 0


def measure(chosen: Iterable[Case]) -> Totals:
    """Measures programs; prints those of which a pair is wrong."""
    totals = Totals()
    for case in chosen:
        try:
            result = ground_truth.measure(program(*case))
        except (NotImplementedError, TypeError, ValueError, AttributeError):
            continue  # JAX does not lower it.
        totals.programs += 1
        totals.right += result.right
        totals.wrong += result.wrong
        if result.wrong:
            print(case, result.wrong, [(op, true, got) for op, _, true, got in result.errors if got][:3], flush=True)
    return totals


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(measure(cases(int(sys.argv[1]))))
