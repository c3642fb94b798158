# SPDX-License-Identifier: Apache-2.0
"""Programs and transformations that the tests share.

A program is (function, arguments); the function returns a scalar, so that every transformation applies to every program.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental.xla_metadata import set_xla_metadata
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P


def _matrix(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32) * 0.3


def by_value(function, *args):
    return set_xla_metadata(function(*args), k="v")


def by_block(function, *args):
    with set_xla_metadata(k="v"):
        return function(*args)


def evaluate(closed, args, run):
    """Evaluates a jaxpr; `run(i, bind)` binds equation number i, without its context, and gives its results."""
    jaxpr = closed.jaxpr
    values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*closed.consts, *args], strict=True))

    def read(atom):
        return atom.val if hasattr(atom, "val") else values[atom]

    for i, eqn in enumerate(jaxpr.eqns):
        params = eqn.primitive.get_bind_params(eqn.params)
        inputs = [read(x) for x in eqn.invars]

        def bind(eqn=eqn, inputs=inputs, params=params):
            outputs = eqn.primitive.bind(*inputs, **params)
            return list(outputs.vals) if hasattr(outputs, "vals") else outputs  # shard_map gives a tree of its own.

        outputs = run(i, bind)
        values.update(zip(eqn.outvars, outputs if eqn.primitive.multiple_results else [outputs], strict=True))
    return [read(x) for x in jaxpr.outvars]


X, W, B = _matrix(4, 8), _matrix(8, 8, seed=1), _matrix(8, seed=2)


def of_scan(f):
    return lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]


def of_shard_map(f):
    return jax.shard_map(f, mesh=Mesh(np.array(jax.devices()[:2]), ("i",)), in_specs=P("i"), out_specs=P("i"), check_vma=False)


def mlp(x, w, b):
    h = jnp.tanh(x @ w + b)
    return ((h @ w) ** 2).mean()


def loop_mlp(x, w, b):
    for _ in range(4):
        x = jnp.tanh(x @ w + b)
    return x.sum()


def repeated_sine(x, w, b):
    for _ in range(6):
        x = jnp.sin(x)
    return (x * w[:4]).sum() + b.sum()


def repeated_product(x, w, b):
    for _ in range(5):
        x = x * 1.5
    return (x @ w).sum() + b.sum()


def attention(x, w, causal):
    q = (x @ w).reshape(4, 2, 4)
    k = (x @ w.T).reshape(4, 2, 4)
    scores = jnp.einsum("qhd,khd->hqk", q, k) / 2.0
    scores = jnp.where(causal, scores, -1e9)
    weights = jax.nn.softmax(scores)
    return jnp.einsum("hqk,khd->qhd", weights, x.reshape(4, 2, 4)).reshape(4, 8)


def norm(x):
    mean = x.mean(-1, keepdims=True)
    var = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(var + 1e-6)


def layer(x, w, b):
    x = x + attention(norm(x), w, np.tri(4, dtype=bool))
    return x + jax.nn.gelu(norm(x) @ w + b) @ w


def transformer(x, w, b):
    for _ in range(2):
        x = layer(x, w, b)
    return (x**2).mean()


def scoped_transformer(x, w, b):
    for number in range(2):
        with jax.named_scope(f"layer_{number}"):
            x = layer(x, w, b)
    return (x**2).mean()


def remat_transformer(x, w, b):
    for _ in range(2):
        x = jax.checkpoint(layer)(x, w, b)
    return (x**2).mean()


def remat_policy(x, w, b):
    policy = jax.checkpoint_policies.dots_saveable
    return jax.checkpoint(lambda x: jnp.sin(jnp.tanh(x @ w) @ w + b), policy=policy)(x).sum()


def scan_transformer(x, w, b):
    x, _ = lax.scan(lambda x, _: (layer(x, w, b), None), x, None, length=2)
    return (x**2).mean()


def scan_of_remat(x, w, b):
    x, _ = lax.scan(lambda x, _: (jax.checkpoint(layer)(x, w, b), None), x, None, length=2)
    return (x**2).mean()


def rnn(x, w, b):
    def step(h, x):
        h = jnp.tanh(x @ w + h @ w.T + b)
        return h, h

    _, hidden = lax.scan(step, jnp.zeros(8), x)
    return hidden.sum()


def convolution(x, w, b):
    image = lax.conv_general_dilated(x.reshape(1, 1, 4, 8), w[:4, :4].reshape(4, 1, 2, 2), (1, 1), "SAME")
    pooled = lax.reduce_window(jax.nn.relu(image), -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return (pooled.reshape(4, 8)[:, :8] * b).sum()


def indexing(x, w, b):
    rows = x[jnp.array([2, 0, 1])]
    return jnp.cumsum(jnp.sort(rows @ w, 0), 1).at[1, jnp.array([0, 3])].add(b[:2]).sum()


def branches(x, w, b):
    y = lax.cond(x.sum() > 0, lambda x: jnp.sin(x @ w), lambda x: jnp.cos(x) * b, x)
    return lax.switch(1, [jnp.tanh, lambda y: y * 2.0], y).sum()


@jax.jit
def _inner(x, w):
    return jnp.tanh(x @ w) * 2.0


def inner_jit(x, w, b):
    return (_inner(x, w) + _inner(jnp.sin(x), w) + b).sum()


@jax.custom_jvp
def _soft(x):
    return jnp.log1p(jnp.exp(x))


@_soft.defjvp
def _soft_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return _soft(x), t * lax.logistic(x)


def custom_jvp(x, w, b):
    return (_soft(x @ w) * b).sum()


@jax.custom_vjp
def _attend(x, w):
    return attention(x, w, np.tri(4, dtype=bool))


_attend.defvjp(lambda x, w: (_attend(x, w), (x, w)), lambda res, g: (jnp.sin(g) @ res[1], res[0].T @ g))


def custom_vjp(x, w, b):
    return (_attend(x, w) * b).sum()


def sharded(x, w, b):
    mesh = Mesh(np.array(jax.devices()[:4]), ("i",))
    reduced = jax.shard_map(lambda x, w: lax.psum(jnp.tanh(x @ w), "i"), mesh=mesh, in_specs=(P("i"), P()), out_specs=P())
    return (reduced(x, w) * b).sum()


_FUNCTIONS = (
    *(mlp, loop_mlp, repeated_sine, repeated_product, transformer, scoped_transformer, remat_transformer, remat_policy),
    *(scan_transformer, scan_of_remat, rnn, convolution, indexing, branches, inner_jit, custom_jvp, custom_vjp, sharded),
)
PROGRAMS = {f.__name__: (f, (X, W, B)) for f in _FUNCTIONS}


def _tangents(args):
    return tuple(jnp.ones_like(a) for a in args)


TRANSFORMS = {
    "none": lambda f: f,
    "grad": lambda f: jax.grad(f, (0, 1, 2)),
    "value_and_grad": lambda f: jax.value_and_grad(f, 1),
    "vjp": lambda f: lambda *args: jax.vjp(f, *args)[1](1.0),
    "jvp": lambda f: lambda *args: jax.jvp(f, args, _tangents(args)),
    "linearize": lambda f: lambda *args: jax.linearize(f, *args)[1](*_tangents(args)),
    "vmap": lambda f: lambda *args: jax.vmap(f)(*(jnp.stack([a, a]) for a in args)),
    "vmap_grad": lambda f: lambda *args: jax.vmap(jax.grad(f, 1))(*(jnp.stack([a, a]) for a in args)),
    "grad_vmap": lambda f: jax.grad(lambda *args: jax.vmap(f)(*(jnp.stack([a, a]) for a in args)).sum(), 1),
    "hessian": lambda f: jax.hessian(f, 0),
    "grad_of_grad": lambda f: jax.grad(lambda *args: (jax.grad(f, 2)(*args) ** 2).sum(), 1),
    "jit_grad": lambda f: jax.grad(jax.jit(f), 1),
    "grad_checkpoint": lambda f: jax.grad(jax.checkpoint(f), 1),
}
FORWARD_MODE = {"jvp", "linearize", "hessian"}
