# SPDX-License-Identifier: Apache-2.0
"""What do tags cost a compilation if each layer has a value of its own?

    python benchmarks/layer_tags.py [--compiler cpu|h100|v5e] [--layers 6] [--repeat 3]

Compilers make one kernel of equal fusions, also of those of different layers, unless attributes in them differ. Each row is the
processor time of a compilation, the median of runs in turns, over that of the untagged program without the HLO pass.

  one value       all layers have one value
  each, alone     each layer has its own, hlo=False: as with JAX alone
  each, given     the same with the HLO pass, and the key is registered with compiler=True
  each, hidden    the same with a key that is not registered, which XLA does not see
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_gpu_autotune_level=0"
os.environ["TPU_SKIP_MDS_QUERY"] = "1"  # There is no machine to ask what it is.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "compilers"))

import jax
import jax.numpy as jnp
import numpy as np
from hlo_text import without_names

import compilers
import hlotag

COMPILERS = {"cpu": lambda: compilers.cpu(1), "h100": lambda: compilers.gpu("h100"), "v5e": lambda: compilers.tpu("v5e", 1)}
WIDTH, HEADS, LENGTH, BATCH = 256, 4, 128, 4
SHAPES = {**dict.fromkeys("qkvo", (WIDTH, WIDTH)), "up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH)}


def normalize(x: jax.Array) -> jax.Array:
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6)


def block(weights: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    hidden = normalize(x)
    q, k, v = (jnp.einsum("btd,dhk->bhtk", hidden, weights[n].reshape(WIDTH, HEADS, -1)) for n in "qkv")
    attention = jax.nn.softmax(jnp.einsum("bhtk,bhsk->bhts", q, k) / 8.0)
    x = x + jnp.einsum("bhts,bhsk->bthk", attention, v).reshape(x.shape) @ weights["o"]
    return x + jax.nn.gelu(normalize(x) @ weights["up"]) @ weights["down"]


def loss(layers: list[dict[str, jax.Array]], x: jax.Array) -> jax.Array:
    for n, weights in enumerate(layers):
        with jax.named_scope(f"layer_{n}"):
            x = block(weights, x)
    return (x * x).mean()


def variants() -> dict[str, dict[str, Any]]:
    def tagged(key: str, scope: str, value: str) -> list[hlotag.Rule]:
        return [hlotag.Rule({key: value}, scope=scope)]

    hlotag.register_key("given", compiler=True)
    return {
        "untagged": {"hlo": False},
        "one value": {"rules": tagged("layer", "layer_*", "all")},
        "each, alone": {"rules": tagged("layer", "layer_{n}", "{n}"), "hlo": False},
        "each, given": {"rules": tagged("given", "layer_{n}", "{n}")},
        "each, hidden": {"rules": tagged("hidden", "layer_{n}", "{n}")},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", choices=COMPILERS, default="cpu")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    compiler = COMPILERS[options.compiler]()
    layers = [{name: np.ones(shape, np.float32) for name, shape in SHAPES.items()} for _ in range(options.layers)]
    x = np.ones((BATCH, LENGTH, WIDTH), np.float32)
    seconds: dict[str, list[float]] = {}
    texts: dict[str, str] = {}
    for _ in range(options.repeat):
        for name, stage in variants().items():
            jax.clear_caches()
            with hlotag.stage(**stage):
                lowered = compiler.lower(jax.value_and_grad(loss), layers, x)
            start = time.process_time()
            executable = lowered.compile()
            seconds.setdefault(name, []).append(time.process_time() - start)
            texts[name] = without_names(executable.as_text())
    print(f"jax {jax.__version__}, {compiler.name}, {options.layers} layers")
    for name, all_ in seconds.items():
        ratio = statistics.median(all_) / statistics.median(seconds["untagged"])
        same = "same module" if texts[name] == texts["untagged"] else "another module"
        print(f"{name:<16}{statistics.median(all_):>8.2f} s{ratio:>8.3f}  {same}")


if __name__ == "__main__":
    main()
