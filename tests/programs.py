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
    q, k, v = (x @ w).reshape(4, 2, 4), (x @ w.T).reshape(4, 2, 4), x.reshape(4, 2, 4)
    scores = jnp.einsum("qhd,khd->hqk", q, k) / 2.0
    return jnp.einsum("hqk,khd->qhd", jax.nn.softmax(jnp.where(causal, scores, -1e9)), v).reshape(4, 8)


def layer(x, w, b):
    x = x + attention((x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-6), w, np.tri(4, dtype=bool))
    return x + jax.nn.gelu(x @ w + b) @ w


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


def deep_transformer(x, w, b):
    for _ in range(12):
        x = layer(x, w, b)
    return (x**2).mean()


_FUNCTIONS = (
    *(mlp, loop_mlp, repeated_sine, repeated_product, transformer, scoped_transformer, remat_transformer, remat_policy),
    *(scan_transformer, scan_of_remat, rnn, convolution, indexing, branches, inner_jit, custom_jvp, custom_vjp, sharded),
)
PROGRAMS = {f.__name__: (f, (X, W, B)) for f in _FUNCTIONS}
LARGE_PROGRAMS = {"deep_transformer": (deep_transformer, (X, W, B))}


# Functions of a square matrix; each lowers to more than its equations' results, in a way of its own.
SEVERAL_OPERATIONS = {
    "argmax": lambda x: jnp.argmax(x),
    "cumsum": lambda x: jnp.cumsum(x, 1),
    "random.normal": lambda x: jax.random.normal(jax.random.key(0), (4, 4)),
    "logsumexp": lambda x: jax.nn.logsumexp(x),
    "softmax": lambda x: jax.nn.softmax(x),
    "gelu": lambda x: jax.nn.gelu(x),
    "take": lambda x: jnp.take(x, jnp.array([1, 0]), 0),
    "take_along_axis": lambda x: jnp.take_along_axis(x, jnp.argsort(x, 1), 1),
    "one_hot": lambda x: jax.nn.one_hot(x[0].astype(int), 4),
    "solve": lambda x: jnp.linalg.solve(x + 5 * jnp.eye(4), x),
    "cholesky": lambda x: jnp.linalg.cholesky(x @ x.T + jnp.eye(4)),
    "svd": lambda x: jnp.linalg.svd(x)[1],
    "floor_divide": lambda x: x // 2,
    "sort": lambda x: jnp.sort(x),
    "top_k": lambda x: lax.top_k(x, 2)[0],
    "erf_inv": lambda x: lax.erf_inv(x),
    "lgamma": lambda x: lax.lgamma(x),
    "square": lambda x: jnp.square(x),
    "scatter": lambda x: x.at[jnp.array([0, 2])].add(1.0),
    "reduce_window": lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 1), "SAME"),
    "fft": lambda x: jnp.fft.fft(x),
    "einsum": lambda x: jnp.einsum("ij,kj->ki", x, x),
    "var": lambda x: x.var(),
    "random.categorical": lambda x: jax.random.categorical(jax.random.key(0), x),
    "random.permutation": lambda x: jax.random.permutation(jax.random.key(0), x),
    "random.gamma": lambda x: jax.random.gamma(jax.random.key(0), 2.0, x.shape) * x,
    "eigh": lambda x: jnp.linalg.eigh(x @ x.T)[0],
    "qr": lambda x: jnp.linalg.qr(x)[1],
    "mod": lambda x: x % 2,
    "argsort": lambda x: jnp.argsort(x),
    "integer_pow": lambda x: x**7,
    "select_n": lambda x: lax.select_n((x > 0).astype(int), x, x + 1),
    "scan": lambda x: lax.scan(lambda c, a: (c + jnp.sin(a) * 3, c), x[0], x)[1],
    "while": lambda x: lax.while_loop(lambda c: c.sum() < 3, lambda c: c + 1, lax.stop_gradient(x)) * x,
    "cond": lambda x: lax.cond(x[0, 0] > 0, jnp.sin, lambda x: x * 2, x),
    "betainc": lambda x: jax.scipy.special.betainc(2.0, 3.0, x**2 / 2),
    "grad of softmax": jax.grad(lambda x: jax.nn.softmax(x)[0, 0]),
    "grad of checkpoint": jax.grad(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)).sum())),
    "layer norm": lambda x: (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5),
}


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
