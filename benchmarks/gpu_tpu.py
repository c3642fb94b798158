# SPDX-License-Identifier: Apache-2.0
"""What XLA's compilers for GPU and TPU make of tags, without the HLO pass and with it; no hardware is needed.

    XLA_FLAGS=--xla_gpu_autotune_level=0 python benchmarks/gpu_tpu.py H100 [PROGRAM ...]
    TPU_SKIP_MDS_QUERY=1 python benchmarks/gpu_tpu.py 'TPU v5e' [PROGRAM ...]

The programs are those of `tests/hlo_programs.py`, each a gradient, and `train`, a transformer's training step of two layers.
Every operation has a tag, and every `dot_general` another. Columns: what the audit says of these tags; and how many heavy
instructions have another operation's tag or none, when each operation was given one of its own before XLA, by sizes.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "compilers"))

import jax
import jax.numpy as jnp
import train_module

import compilers
import hlo_programs
import hlotag
from hlotag.audits import TagState

SIGN = "benchmark-gpu-tpu-sign-operations"
STATES = (TagState.KEPT, TagState.ELIMINATED, TagState.CONSUMED, TagState.RESTORED, TagState.LOST)


KINDS = {name: make for by_name in (*compilers.KINDS.values(), *compilers.FURTHER.values()) for name, make in by_name.items()}


def compiler_for(kind: str, name: str) -> compilers.Compiler:
    """The compiler of a program: one device, or four for a `shard_map`, where the kind has four."""
    return KINDS[f"4 {kind}" if name == "shard_map" and f"4 {kind}" in KINDS else kind]()


def program(name: str) -> tuple[Any, tuple]:
    if name != "train":
        return hlo_programs.program(name)
    parameters = train_module.parameters(2)
    tokens = jax.ShapeDtypeStruct((4, 33), jnp.int32)
    return train_module.train_step, (parameters, parameters, parameters, tokens)


def counts(compiler: compilers.Compiler, name: str, *, hlo: bool) -> list[int]:
    function, arguments = program(name)
    jax.clear_caches()
    rules = [hlotag.Rule({"k": "v"}, op="*"), hlotag.Rule({"d": "dot"}, op="dot_general")]
    with hlotag.stage(rules=rules, hlo=hlo):
        audit = hlotag.audit(compiler.lower(function, *arguments))
    return [len(audit.tags), *(audit.counts[state] for state in STATES)]


def wrong(compiler: compilers.Compiler, name: str, *, hlo: bool) -> int:
    function, arguments = program(name)
    jax.clear_caches()
    with hlotag.stage(f"{hlotag.passes.DEFAULT_PIPELINE},{SIGN}", hlo=hlo):
        instructions = hlo_programs.compiled_instructions(compiler.lower(function, *arguments))
    return len(compilers.wrongly_signed(instructions))


def _width(head: str) -> int:
    return max(len(head) + 1, 6)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("programs", nargs="*", default=[*hlo_programs.PROGRAMS, "train"])
    options = parser.parse_args()
    hlotag.register_pass(hlo_programs.sign_operations, name=SIGN)
    for key in ("k", "d", "t"):
        hlotag.register_key(key, compiler=True)  # XLA sees no other keys of people.
    print(f"{options.kind}, jax {jax.__version__}")
    heads = ["tags", *(state.value for state in STATES), "heavy wrong"]
    print(f"{'program':<14}{'HLO':>4}" + "".join(f"{head:>{_width(head)}}" for head in heads))
    for name in options.programs:
        compiler = compiler_for(options.kind, name)
        for hlo in (False, True):
            found = counts(compiler, name, hlo=hlo)
            heavy = wrong(compiler, name, hlo=hlo) if name != "train" else ""  # Its products have equal sizes.
            cells = zip([*found, heavy], heads, strict=True)
            print(f"{name:<14}{'on' if hlo else 'off':>4}" + "".join(f"{n:>{_width(head)}}" for n, head in cells), flush=True)


if __name__ == "__main__":
    main()
