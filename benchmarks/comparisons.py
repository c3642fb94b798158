# SPDX-License-Identifier: Apache-2.0
"""How often a comparison of two profiles notices a slower layer, and how often it calls an equal one slower.

    python benchmarks/comparisons.py [--trials 100] [--steps 10] [--slower 1.5]

A network of four layers is compared with one whose second layer has 1.5 times the width, and with itself, in turns.
"""

from __future__ import annotations

import argparse
from typing import Any

import jax
import jax.numpy as jnp

import hlotag
from hlotag.profiles import Change, profile_both

LAYERS, WIDTH, SLOW = 4, 128, 1


def make(slower: float) -> tuple[Any, tuple[Any, ...]]:
    """A gradient whose layer `SLOW` takes `slower` times as long, and its arguments."""

    def loss(weights: list[tuple[jax.Array, jax.Array]], x: jax.Array) -> jax.Array:
        for number, (up, down) in enumerate(weights):
            with hlotag.tagged({"layer": number}):
                x += jax.nn.gelu((x - x.mean(-1, keepdims=True)) @ up) @ down
        return (x**2).mean()

    sizes = [int(4 * WIDTH * (slower if number == SLOW else 1)) for number in range(LAYERS)]
    weights = [(jnp.full((WIDTH, size), 0.01), jnp.full((size, WIDTH), 0.01)) for size in sizes]
    return jax.grad(loss), (weights, jnp.ones((8, 64, WIDTH)))


def find_slower(slower: float, steps: int) -> list[Change]:
    """The rows that a comparison with a network without a slower layer calls slower."""
    before, now = profile_both(make(1.0), make(slower), steps=steps)
    return [change for change in hlotag.profiles.changes(now, before, in_turns=True) if change.is_slower]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--slower", type=float, default=1.5)
    options = parser.parse_args()
    hlotag.enable()
    noticed = alarms = 0
    for _ in range(options.trials):
        noticed += any(change.value == str(SLOW) for change in find_slower(options.slower, options.steps))
        alarms += bool(find_slower(1.0, options.steps))
    print(f"{options.steps} steps, a layer {options.slower:.2f} times as long: noticed {noticed} of {options.trials}")
    print(f"{options.steps} steps, an equal layer: called slower {alarms} of {options.trials}")


if __name__ == "__main__":
    main()
