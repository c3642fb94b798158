# SPDX-License-Identifier: Apache-2.0
"""The six programs on which losses inside XLA are counted, as gradients, and what their heavy operations are known by.

Sizes differ from layer to layer, so that the numbers of elements of a product, convolution, reduction, scatter or collective say
which operation it is, whatever XLA did to its operands' layouts: a truth that needs no metadata.
"""

from collections.abc import Callable, Iterable
from itertools import pairwise
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.mlir import ir
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

import hlotag
from hlotag.hlo.module import Instruction, of_executable
from hlotag.hlo.origins import walk

ATTRIBUTES = "mhlo.frontend_attributes"


def _array(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed + prod(shape)).standard_normal(shape).astype(np.float32) * 0.3


def _mlp(parameters, x):
    for w, b in parameters:
        x = jnp.tanh(x @ w + b)
    return (jnp.square(x)).mean()


def _attention(x, layer, heads):
    length = x.shape[0]

    def split(w):
        return (x @ w).reshape(length, heads, -1).transpose(1, 0, 2)

    q, k, v = (split(layer[name]) for name in "qkv")
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1])
    scores = jnp.where(np.tri(length, dtype=bool), scores, -1e9)
    mixed = jax.nn.softmax(scores) @ v
    return mixed.transpose(1, 0, 2).reshape(length, -1) @ layer["o"]


def _transformer(parameters, x):
    for layer in parameters:
        normed = (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-6) * layer["scale"]
        x = x + _attention(normed, layer, heads=2)
        x = x + jax.nn.gelu(x @ layer["up"] + layer["bias"]) @ layer["down"]
    return (x**2).mean()


_PRIMES = [n for n in range(7, 200) if all(n % d for d in range(2, n))]


def _transformer_arguments(layers: int):
    width = 10

    def layer(head: int, hidden: int):
        shapes = [(width, head), (width, head), (width, head + 2), (head + 2, width), (width, hidden), (hidden, width)]
        products = {name: _array(*shapes[n], seed=n + 1) for n, name in enumerate(("q", "k", "v", "o", "up", "down"))}
        return products | {"bias": _array(hidden), "scale": _array(width)}

    return [layer(2 * _PRIMES[i], _PRIMES[i + 14]) for i in range(layers)], _array(6, width)


def _conv(parameters, x):
    for kernel in parameters:
        x = lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = lax.reduce_window(jax.nn.relu(x), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return jnp.square(x).sum()


def _rnn(parameters, xs):
    wx, wh, b = parameters

    def step(h, x):
        gates = x @ wx + h @ wh + b
        h = jnp.tanh(gates) * jax.nn.sigmoid(h)
        return h, jnp.square(h).sum()

    _, losses = lax.scan(step, jnp.zeros(wh.shape[0]), xs)
    return losses.mean()


def _mix(parameters, x):
    table, w = parameters
    spectrum = jnp.abs(jnp.fft.rfft(x)) @ w
    order = jnp.argsort(spectrum[:, 0])
    rows = table[order % table.shape[0]]
    top, _ = lax.top_k(rows.sum(1), 3)
    scattered = jnp.zeros((31, rows.shape[1])).at[order].add(rows)
    cumulative = jnp.cumsum(jnp.sort(spectrum, axis=0), axis=0)
    return (top.sum() + jnp.square(scattered).sum() + lax.erf(cumulative).mean() + lax.lgamma(jnp.abs(rows) + 1.0).sum()).real


def _sharded(parameters, x):
    mesh = Mesh(np.array(jax.devices()[:4]), ("i",))
    w, v = parameters

    def body(x, w, v):
        h = jnp.tanh(lax.all_gather(x, "i", tiled=True) @ w)
        h = lax.psum_scatter(h, "i", tiled=True)
        total = lax.psum((h @ v).sum(0), "i")
        return lax.ppermute(h @ v * total, "i", [(0, 1), (1, 2), (2, 3), (3, 0)])

    mapped = jax.shard_map(body, mesh=mesh, in_specs=(P("i"), P(), P()), out_specs=P("i"))
    return jnp.square(mapped(x, w, v)).mean()


PROGRAMS: dict[str, tuple[Callable, tuple]] = {
    "mlp": (_mlp, ([(_array(m, n), _array(n)) for m, n in pairwise((17, 19, 23, 29))], _array(13, 17))),
    "transformer": (_transformer, _transformer_arguments(2)),
    "conv": (_conv, ([_array(3, 3, m, n) for m, n in pairwise((3, 5, 7))], _array(2, 12, 12, 3))),
    "rnn": (_rnn, ((_array(7, 11), _array(11, 11), _array(11)), _array(5, 7))),
    "mix": (_mix, ((_array(19, 5), _array(9, 3)), _array(13, 16))),
    "shard_map": (_sharded, ((_array(6, 5), _array(5, 7)), _array(8, 6))),
}
LARGE = {"transformer_12": (_transformer, _transformer_arguments(12))}


def compiled_instructions(lowered: Any) -> list[Instruction]:
    """The optimized instructions of a program. Those in fusions have their own tags, which the executable's do not repeat."""
    with hlotag.recorded() as records:
        executable = lowered.compile()
    modules = [record.after for record in records] or of_executable(executable)
    return [i for module in modules for i in module.instructions()]


def entries_with_fusion(executable: Any, opcode: str = "") -> list[dict[str, str]]:
    """The entries of an executable's instructions, with those that their fusions have for them."""
    return [
        {**(fusion.attributes if (fusion := module.fusions.get(i.computation.id)) else {}), **i.attributes}
        for module in of_executable(executable)
        for i in module.instructions()
        if opcode in ("", i.opcode)
    ]


def program(name: str) -> tuple[Callable, tuple]:
    """The gradient of a program, a function that JAX has not seen, and its arguments."""
    function, arguments = (PROGRAMS | LARGE)[name]
    return jax.grad(lambda *a: function(*a)), arguments


# HLO opcodes of operations that a user tags, by the StableHLO operations that they are made from.
HEAVY = {"dot_general": "dot", "chlo.top_k": "sort"} | {
    name: name.replace("_", "-")
    for name in (
        *("dot", "convolution", "reduce", "scatter", "select_and_scatter", "sort", "fft", "gather"),
        *("all_gather", "all_reduce", "reduce_scatter", "collective_permute"),
    )
}


def signature(opcode: str, operands: Iterable[tuple[int, ...]], results: Iterable[tuple[int, ...]]) -> str:
    """What a heavy operation is known by, from the dimensions of its operands and results."""
    inputs, outputs = ([prod(shape) for shape in shapes] for shapes in (operands, results))
    if opcode in ("scatter", "select-and-scatter"):  # XLA makes the one from the other, and changes the form of the indices.
        opcode, inputs = "scatter", inputs[: len(outputs)] + inputs[-len(outputs) :] if opcode == "scatter" else inputs[:2]
    elif opcode == "sort":  # XLA drops operands that nobody uses.
        inputs = outputs = inputs[:1]  # The largest elements are the first of all that are sorted.
    elif opcode == "all-reduce":  # XLA combines them, and joins their tags.
        return ",".join(sorted({f"{opcode}:{n}" for n in outputs}))
    return f"{opcode}:{'x'.join(map(str, sorted(inputs)))}->{'x'.join(map(str, sorted(outputs)))}"


def signature_of_operation(operation: Any) -> str | None:
    """Of an operation of StableHLO, None if it is not a heavy one."""
    opcode = HEAVY.get(operation.name.removeprefix("stablehlo."))
    shapes = ([tuple(v.type.shape) for v in values] for values in (operation.operands, operation.results))
    return signature(opcode, *shapes) if opcode else None


def signature_of_instruction(instruction: Any) -> str | None:
    """Of an instruction of HLO, None if it is not a heavy one."""
    if instruction.opcode not in HEAVY.values():
        return None
    shape = instruction.proto.shape
    results = [tuple(s.dimensions) for s in shape.tuple_shapes] or [tuple(shape.dimensions)]
    return signature(instruction.opcode, [o.dimensions for o in instruction.operands], results)


def has_signature(instruction: Instruction, expected: str) -> bool:
    """Whether the tag `t` of an instruction is this signature; XLA joins the tags of what it combines."""
    return set(instruction.attributes.get("t", "").split(",")) == set(expected.split(","))


def is_xlas_own(instruction: Instruction) -> bool:
    """Whether XLA added it for its own ends: it moves values and has no name, or only that of an inlined call."""
    if instruction.opcode == "fusion":
        return is_xlas_own(instruction.called[0].root)
    return instruction.opcode in ("parameter", "tuple", "get-tuple-element") or (
        instruction.opcode in ("copy", "bitcast") and instruction.op_name.rpartition("/")[2] in ("", "closed_call")
    )


NEVER_TAGGED = {"func.func", "func.return", "stablehlo.return", "sdy.return"}


def sign_operations(module: ir.Module) -> None:
    """Tags each operation with its signature, or with its number: what a tag should be is then seen on the instruction itself."""
    with module.context:
        for number, operation in enumerate(walk(module.operation)):
            if operation.name in NEVER_TAGGED:
                continue
            there = ir.DictAttr(operation.attributes[ATTRIBUTES]) if ATTRIBUTES in operation.attributes else ()
            value = signature_of_operation(operation) or f"operation {number}"
            entries = {entry.name: entry.attr for entry in there} | {"t": ir.StringAttr.get(value)}
            operation.attributes[ATTRIBUTES] = ir.DictAttr.get(entries)
