# SPDX-License-Identifier: Apache-2.0
"""A transformer training step: how much time does each part of the model take, forward and backward?

Products are tagged with JAX's own `set_xla_metadata`, layers by a block. The step is profiled twice, by JAX alone and with
`hlotag.enable()`. Then an audit says where each tag went in XLA.

    python examples/train_step.py [--out DIR]
"""

import argparse
import pathlib
import warnings

import jax
import jax.numpy as jnp
from jax.experimental.xla_metadata import set_xla_metadata

import hlotag

LAYERS, HEADS, WIDTH, VOCABULARY, LENGTH, BATCH = 3, 4, 128, 512, 64, 8
STEPS = 5  # calls that are traced


def initial_parameters(key):
    def matrix(key, *shape):
        return jax.random.normal(key, shape) * shape[0] ** -0.5

    keys = iter(jax.random.split(key, 1 + 4 * LAYERS))
    shapes = {"qkv": (WIDTH, 3 * WIDTH), "out": (WIDTH, WIDTH), "up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH)}
    layers = [{name: matrix(next(keys), *shape) for name, shape in shapes.items()} for _ in range(LAYERS)]
    return {"embedding": matrix(next(keys), VOCABULARY, WIDTH), "layers": layers}


def normalize(x):
    return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-6)


def attention(x, layer):
    q, k, v = jnp.split((x @ layer["qkv"]).reshape(BATCH, LENGTH, HEADS, -1), 3, axis=-1)
    scores = set_xla_metadata(jnp.einsum("bqhd,bkhd->bhqk", q, k), part="scores") * q.shape[-1] ** -0.5
    causal = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
    weights = jax.nn.softmax(jnp.where(causal, scores, -1e9))
    context = jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape)
    return set_xla_metadata(context @ layer["out"], part="out")


def mlp(x, layer):
    hidden = jax.nn.gelu(set_xla_metadata(x @ layer["up"], part="up"))
    return set_xla_metadata(hidden @ layer["down"], part="down")


def loss(parameters, tokens):
    x = parameters["embedding"][tokens[:, :-1]]
    for number, layer in enumerate(parameters["layers"]):
        with set_xla_metadata(layer=str(number)):
            x = x + attention(normalize(x), layer)
            x = x + mlp(normalize(x), layer)
    logits = set_xla_metadata(normalize(x) @ parameters["embedding"].T, part="logits")
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[:, 1:, None], -1).mean()


def train_step(parameters, tokens):
    value, gradients = jax.value_and_grad(loss)(parameters, tokens)
    return jax.tree.map(lambda p, g: p - 0.01 * g, parameters, gradients), value


def milliseconds(profile, key):
    """{(value, phase): milliseconds of a step}."""
    return {(row.value, row.phase): row.seconds * 1e3 for row in profile.rows if row.key == key}


def compare(alone, tagged, key):
    """Prints the times of two profiles side by side. Operations without the key are the last line."""
    spent = [milliseconds(profile, key) for profile in (alone, tagged)]
    print(f"{'':12}{'JAX alone':>21}{'hlotag.enable()':>23}")
    print(f"{key + ', ms':12}{'forward':>10}{'backward':>11}{'forward':>12}{'backward':>11}")
    for value in sorted({value for value, _ in spent[0] | spent[1]}, key=lambda value: (not value, value)):
        cells = [times.get((value, phase), 0.0) for times in spent for phase in ("forward", "backward")]
        numbers = [f"{cell:.2f}" if cell else "-" for cell in cells]
        print("{:12}{:>10}{:>11}{:>12}{:>11}".format(value or "(without)", *numbers))


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--out", type=pathlib.Path, default=pathlib.Path("demo_output"), help="folder for the page")
    out = arguments.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", DeprecationWarning)  # of JAX's reader of traces

    tokens = jax.random.randint(jax.random.key(1), (BATCH, LENGTH + 1), 0, VOCABULARY)
    inputs = initial_parameters(jax.random.key(0)), tokens
    expected = jax.jit(train_step)(*inputs)
    alone = hlotag.profile(train_step, *inputs, steps=STEPS)
    hlotag.enable()
    result = jax.jit(train_step)(*inputs)
    tagged = hlotag.profile(train_step, *inputs, steps=STEPS, memory=True)
    audit = hlotag.audit(train_step, *inputs)

    print(f"Where does the time of a training step go? {LAYERS} layers; the code is tagged with JAX's set_xla_metadata.\n")
    compare(alone, tagged, "part")
    print("\nJAX's tag on a value does not reach the operations that autodiff derives from it. hlotag carries it there.")
    same = all(jax.tree.leaves(jax.tree.map(lambda a, b: bool((a == b).all()), expected, result)))
    print(f"Loss and new parameters are bitwise the same: {same}\n")
    print(tagged)
    print(f"\n{audit.report.sentence}")
    for state in sorted(audit.counts, key=audit.counts.__getitem__, reverse=True):
        print(f"  {audit.counts[state]:5} {state}: {state.meaning}")
    eliminated = [tag.op.name.rpartition(".")[2] for tag in audit.in_state(hlotag.audits.TagState.ELIMINATED)]
    always = sum(name in {"constant", "broadcast_in_dim", "iota"} for name in eliminated)
    print(f"Of the {len(eliminated)} eliminated, {always} are constants and broadcasts, which XLA always folds into their users.")
    tagged.to_html(out / "report.html")
    print(f"\nThe page for a browser: {out}/report.html")
    print("Next: docs/tutorial.md; docs/rules.md tags a model without editing it; docs/keys.md lists what XLA's compilers read.")


if __name__ == "__main__":
    main()
