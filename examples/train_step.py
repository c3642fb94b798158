# SPDX-License-Identifier: Apache-2.0
"""A transformer training step whose tags reach the backward pass.

The model is tagged with JAX's own `set_xla_metadata`, by value and by block, and with hlotag's `tag`, which may tag the
backward pass differently. The step is lowered and compiled twice, by JAX alone and with `hlotag.enable()`, and each tag's
operations are counted in what XLA is given.

    python examples/train_step.py [--out DIR]
"""

import argparse
import pathlib
import re
import warnings

import jax
import jax.numpy as jnp
from jax.experimental.xla_metadata import set_xla_metadata

import hlotag

LAYERS, HEADS, WIDTH, VOCABULARY, LENGTH, BATCH = 3, 4, 64, 96, 32, 4


def initial_parameters(key):
    def matrix(key, *shape):
        return jax.random.normal(key, shape) * shape[0] ** -0.5

    keys = iter(jax.random.split(key, 2 + 4 * LAYERS))
    return {
        "embedding": matrix(next(keys), VOCABULARY, WIDTH),
        "layers": [
            {
                "qkv": matrix(next(keys), WIDTH, 3 * WIDTH),
                "out": matrix(next(keys), WIDTH, WIDTH),
                "up": matrix(next(keys), WIDTH, 4 * WIDTH),
                "down": matrix(next(keys), 4 * WIDTH, WIDTH),
            }
            for _ in range(LAYERS)
        ],
    }


def normalize(x):
    return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-6)


def attention(x, layer):
    with set_xla_metadata(block="attention"):  # A block: everything that is traced in it.
        q, k, v = jnp.split((x @ layer["qkv"]).reshape(BATCH, LENGTH, HEADS, -1), 3, axis=-1)
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
        causal = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
        weights = jax.nn.softmax(jnp.where(causal, scores, -1e9))
        context = jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape)
    return set_xla_metadata(context @ layer["out"], value="projection")  # A value: the operation that made it.


gelu = jax.jit(jax.nn.gelu)  # A jitted function is one operation for a tag, with all operations in it.


def mlp(x, layer):
    hidden = set_xla_metadata(gelu(x @ layer["up"]), value="gelu")
    # The forward and the backward pass in different groups, without a custom_vjp.
    return hlotag.tag(hidden @ layer["down"], {"group": "forward"}, grad={"group": "backward"})


def loss(parameters, tokens):
    x = parameters["embedding"][tokens[:, :-1]]
    for number, layer in enumerate(parameters["layers"]):
        with jax.named_scope(f"layer_{number}"):
            x = x + attention(normalize(x), layer)
            x = x + mlp(normalize(x), layer)
    logits = jax.nn.log_softmax(normalize(x) @ parameters["embedding"].T)
    return -jnp.take_along_axis(logits, tokens[:, 1:, None], -1).mean()


def train_step(parameters, momentum, tokens):
    value, gradients = jax.value_and_grad(loss)(parameters, tokens)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradients)
    return jax.tree.map(lambda p, m: p - 0.01 * m, parameters, momentum), momentum, value


def count(module):
    """{(tag, phase): number of operations} of an MLIR module; a function's operations are in the phase of its calls."""
    tagged, calls = [], []

    def walk(op, function):
        for child in (o.operation for region in op.regions for block in region.blocks for o in block.operations):
            name = child.attributes["sym_name"].value if child.name == "func.func" else function
            backward = "transpose(" in str(child.location)
            if child.name == "func.call":
                calls.append((name, child.attributes["callee"].value, backward))
            if "mhlo.frontend_attributes" in child.attributes:
                text = str(child.attributes["mhlo.frontend_attributes"])
                tagged.extend((tag, name, backward) for tag in re.findall(r'\b(?:block|value|group) = "\w+"', text))
            walk(child, name)

    walk(module.operation, None)
    backward_functions: set[str] = set()
    for _ in calls:  # As many rounds as the longest chain of calls.
        backward_functions |= {callee for caller, callee, backward in calls if backward or caller in backward_functions}
    counts: dict[tuple[str, str], int] = {}
    for tag, function, backward in tagged:
        phase = "backward" if backward or function in backward_functions else "forward"
        counts[tag, phase] = counts.get((tag, phase), 0) + 1
    return counts


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--out", type=pathlib.Path, default=pathlib.Path("demo_output"), help="folder for the HLO dumps")
    out = arguments.parse_args().out
    out.mkdir(parents=True, exist_ok=True)

    parameters = initial_parameters(jax.random.key(0))
    inputs = (
        parameters,
        jax.tree.map(jnp.zeros_like, parameters),
        jax.random.randint(jax.random.key(1), (BATCH, LENGTH + 1), 0, VOCABULARY),
    )

    def run(name):
        lowered = jax.jit(train_step).lower(*inputs)
        compiled = lowered.compile()
        (out / f"{name}.stablehlo.mlir").write_text(lowered.as_text(debug_info=True))
        (out / f"{name}.hlo.txt").write_text(lowered.as_text(dialect="hlo"))
        (out / f"{name}.optimized_hlo.txt").write_text(compiled.as_text())
        return count(lowered.compiler_ir()), compiled(*inputs)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hlotag.TagIgnored)  # JAX alone has no `grad=`.
        alone, expected = run("jax_alone")
    hlotag.enable()
    staged, result = run("hlotag")
    audit = hlotag.audit(train_step, *inputs)  # Where each tag went, XLA's passes included.
    audit.to_html(out / "audit.html")
    hlotag.disable()

    rows = sorted({tag for tag, _ in alone | staged})
    print(f"{LAYERS}-layer transformer, loss + grad + momentum update: operations per tag in the module XLA is given\n")
    print(f"{'':24}{'JAX alone':>22}{'hlotag.enable()':>24}")
    print(f"{'tag':24}{'forward':>11}{'backward':>11}{'forward':>13}{'backward':>11}")
    for tag in rows:
        cells = [counts.get((tag, phase), 0) for counts in (alone, staged) for phase in ("forward", "backward")]
        print("{:24}{:>11}{:>11}{:>13}{:>11}".format(tag.replace(" = ", "="), *cells))
    same = all(jax.tree.leaves(jax.tree.map(lambda a, b: bool((a == b).all()), expected, result)))
    print(f"\nloss {float(expected[2]):.6f}; parameters, momentum and loss bitwise equal: {same}")
    print(f"\n{audit.summary()}\n")
    print(f"To look at it: {out}/audit.html")
    print(f"HLO dumps: {', '.join(sorted(p.name for p in out.iterdir() if p.suffix != '.html'))} in {out}/")


if __name__ == "__main__":
    main()
