# SPDX-License-Identifier: Apache-2.0
"""A data-parallel training job of several processes with tags, on this machine's CPU.

    python examples/distributed.py [--processes 4] [--steps 3]

Each process is what a host of a larger job is: it traces, lowers and compiles the program for itself, and nobody tells it what
the others got. The job prints what each made of it: the hash of the module, the tags in its HLO, and the loss.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import socket
import subprocess
import sys
from functools import partial


def work(process: int, processes: int, coordinator: str, steps: int) -> dict:
    """What each process runs."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P

    import hlotag

    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(coordinator, processes, process)
    hlotag.enable()

    mesh = Mesh(np.array(jax.devices()), ("data",))
    width, batch = 32, 8
    weights = {
        name: jax.random.normal(key, (width, width)) * 0.2
        for name, key in zip("ab", jax.random.split(jax.random.key(0)), strict=True)
    }

    def loss(weights, x, y):
        hidden = hlotag.tag(jnp.tanh(x @ weights["a"]), {"group": "hidden"}, grad={"group": "hidden_backward"})
        return ((hidden @ weights["b"] - y) ** 2).mean()

    @jax.jit
    @partial(jax.shard_map, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P()), check_vma=False)
    def step(weights, x, y):
        value, gradients = jax.value_and_grad(loss)(weights, x, y)
        with hlotag.tagged({"group": "sync"}):
            value, gradients = jax.lax.pmean((value, gradients), "data")
        return value, jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients)

    # Every process has its own part of the batch.
    shape = (batch * processes, width)
    local = np.random.default_rng(process).standard_normal((2, batch, width)).astype(np.float32)
    x, y = (jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), part, shape) for part in local)
    weights = jax.device_put(weights, NamedSharding(mesh, P()))

    lowered = step.lower(weights, x, y)
    hlo = lowered.compile().as_text()
    losses = []
    for _ in range(steps):
        value, weights = step(weights, x, y)
        losses.append(float(value))
    return {
        "process": jax.process_index(),
        "module": hashlib.sha256(lowered.as_text(debug_info=True).encode()).hexdigest(),
        "tags": {group: len(re.findall(f'group="{group}"', hlo)) for group in ("hidden", "hidden_backward", "sync")},
        "losses": losses,
    }


def launch(processes: int, steps: int) -> list[dict]:
    """Starts the processes, each with a different hash seed, and returns what they report."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    started = []
    for process in range(processes):
        command = [sys.executable, __file__, "--processes", str(processes), "--steps", str(steps)]
        environment = {
            **os.environ,
            "JAX_PLATFORMS": "cpu",
            "XLA_FLAGS": "--xla_force_host_platform_device_count=1",
            "PYTHONHASHSEED": str(process + 1),
        }
        started.append(
            subprocess.Popen(
                [*command, "--process", str(process), "--coordinator", f"localhost:{port}"],
                env=environment,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
    try:
        outputs = [process.communicate(timeout=240)[0] for process in started]
    finally:
        for process in started:
            process.kill()
    if any(process.returncode for process in started):
        raise SystemExit("a process failed; its error is above")
    return [json.loads(output.splitlines()[-1]) for output in outputs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print the reports as JSON")
    parser.add_argument("--process", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--coordinator", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.process is not None:
        print(json.dumps(work(args.process, args.processes, args.coordinator, args.steps)))
        return
    reports = launch(args.processes, args.steps)
    if args.json:
        print(json.dumps(reports))
        return
    for report in reports:
        losses = " ".join(f"{loss:.4f}" for loss in report["losses"])
        print(f"process {report['process']}: module {report['module'][:16]}  tags in HLO {report['tags']}  losses {losses}")
    same = len({report["module"] for report in reports}) == 1
    print("all processes lowered the same module" if same else "the modules DIFFER")
    raise SystemExit(0 if same else 1)


if __name__ == "__main__":
    main()
