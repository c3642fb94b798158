# SPDX-License-Identifier: Apache-2.0
"""Random jitted functions in threads, each under a stage of its own that it turns on, off and over while others do the same.

    python benchmarks/soak.py [--count 2000] [--threads 4] [--seed 0]

Every module must be tagged as the configuration of its own thread says, every number must be that of NumPy, and memory must not
grow: that of the second half of the run is compared with that of the first.
"""

from __future__ import annotations

import argparse
import gc
import random
import re
import time
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np

import hlotag

OPERATIONS = {
    "sine": (jnp.sin, np.sin),
    "cosine": (jnp.cos, np.cos),
    "tanh": (jnp.tanh, np.tanh),
    "exponential": (jnp.exp, np.exp),
}
X = np.linspace(-1, 1, 8, dtype=np.float32)


def random_function(rng: random.Random, value: str):
    """A chain of operations, some with a value tag, in a block or not; its result; what has the tag; how many the block has."""
    chain = [(rng.choice(sorted(OPERATIONS)), rng.random() < 0.5) for _ in range(rng.randint(1, 6))]
    in_block = rng.random() < 0.3

    def function(x):
        for name, is_tagged in chain:
            x = OPERATIONS[name][0](x * 0.5)
            if is_tagged:
                x = hlotag.tag(x, {"soak": value})
        return x

    def program(x):
        if not in_block:
            return function(x)
        with hlotag.tagged({"block": value}):
            return function(x)

    expected = X
    for name, _ in chain:
        expected = OPERATIONS[name][1](expected * np.float32(0.5))
    names = sorted(name for name, is_tagged in chain if is_tagged)
    return jax.jit(program), expected, names, len(chain) if in_block else 0


def configurations(rng: random.Random, value: str):
    """(arguments of hlotag.stage, whether value tags are in the module, the value of a rule for sines)."""
    rule = hlotag.Rule({"rule": value}, op="sine")
    return rng.choice(
        [
            ({"pipeline": None}, True, None),
            ({}, True, None),
            ({"rules": [rule]}, True, value),
            ({"pipeline": f"{hlotag.passes.DEFAULT_PIPELINE},hlotag-strip{{keys=soak,block}}", "rules": [rule]}, False, value),
            ({"on_error": "warn"}, True, None),
        ]
    )


def attributes(text: str, key: str) -> list[tuple[str, str]]:
    """(operation, value) of every operation in a module's text that has the key."""
    found = []
    for line in text.splitlines():
        entry = re.search(rf'frontend_attributes = {{[^}}]*\b{key} = "([^"]*)"', line)
        if entry and (operation := re.search(r"stablehlo\.(\w+)", line)):
            found.append((operation[1], entry[1]))
    return sorted(found)


def one(seed: int) -> None:
    """One function under three configurations in turn, called, lowered and compiled under each, the first one twice."""
    rng = random.Random(seed)
    value = f"v{seed}"
    function, expected, names, in_block = random_function(rng, value)
    chosen = [configurations(rng, value) for _ in range(3)]
    for arguments, has_tags, rule in [*chosen, chosen[0]]:
        with hlotag.stage(**arguments):
            result = function(X)
            text = function.lower(X).as_text()
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)
        tags = attributes(text, "soak")
        if rule is not None:
            sines = [name for name, given in attributes(text, "rule") if given == rule]
            assert sines == ["sine"] * text.count("stablehlo.sine"), f"seed {seed}, {arguments}: rule on {sines}\n{text}"
        else:
            assert not attributes(text, "rule"), f"seed {seed}, {arguments}: a rule of another configuration\n{text}"
        wanted = [(name, value) for name in names] if has_tags else []
        assert tags == wanted, f"seed {seed}, {arguments}: {tags} instead of {wanted}\n{text}"
        blocks = attributes(text, "block")
        least = in_block if has_tags else 0
        ok = len(blocks) >= least and bool(blocks) == bool(least) and all(given == value for _, given in blocks)
        assert ok, f"seed {seed}, {arguments}: {blocks}\n{text}"
    assert hlotag.active() is None


def resident_mib() -> float:
    """This process's memory now."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


def soak(count: int, threads: int, seed: int = 0, samples: int = 10) -> list[float]:
    """Runs `count` functions; returns the memory in MiB after each of `samples` equal parts, JAX's caches cleared.

    Raises:
      AssertionError: a module or a number is wrong.
    """
    memory = []
    with ThreadPoolExecutor(threads) as pool:
        for part in range(samples):
            numbers = range(part * count // samples, (part + 1) * count // samples)
            list(pool.map(one, (seed + number for number in numbers)))
            jax.clear_caches()
            gc.collect()
            memory.append(resident_mib())
    return memory


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--count", type=int, default=2000)
    arguments.add_argument("--threads", type=int, default=4)
    arguments.add_argument("--seed", type=int, default=0)
    options = arguments.parse_args()
    start = time.perf_counter()
    memory = soak(options.count, options.threads, options.seed)
    middle = len(memory) // 2
    growth = memory[-1] - memory[middle]
    elapsed = time.perf_counter() - start
    print(f"{options.count} functions in {options.threads} threads, {elapsed:.0f} s: every module as configured")
    print("memory, MiB:", " ".join(f"{mib:.0f}" for mib in memory))
    per_function = growth * 1024 / (options.count - options.count * (middle + 1) // len(memory))
    print(f"second half: {growth:+.1f} MiB, {per_function:+.2f} KiB a function")


if __name__ == "__main__":
    main()
