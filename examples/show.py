# SPDX-License-Identifier: Apache-2.0
"""What the examples have in common: a step is run by JAX alone and with hlotag, compared, audited and drawn."""

import argparse
import pathlib
import sys

import jax

import hlotag


def show(step, *arguments, rules=()):
    """Runs the jitted `step` both ways, prints what became of its tags, and saves a picture of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("demo_output"), help="folder for the picture")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    picture = out / f"{pathlib.Path(sys.argv[0]).stem}.png"

    expected = step(*arguments)
    with hlotag.stage(rules=rules):
        result = step(*arguments)
        audit = hlotag.audit(step, *arguments)
    same = all(jax.tree.leaves(jax.tree.map(lambda a, b: bool((a == b).all()), expected, result)))
    audit.to_png(picture)
    print(audit.summary())
    print(f"results bitwise equal to JAX alone: {same}; picture: {picture}")
    sys.exit(not same)
