# SPDX-License-Identifier: Apache-2.0
"""Does what compiles with JAX alone compile with hlotag? Each key and value, on kinds of operations, in three forms.

    HLOTAG_COMPILERS=tpu python tests/compilers/compile_matrix.py [KEY ...]    # takes the packages of make test-compilers

All operations are one program. Where it does not compile with hlotag, each is one by itself, with hlotag and with JAX alone. A
process of its own does this for each form of a key, since some of XLA's errors end it.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental.xla_metadata import set_xla_metadata
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import hlotag
from hlotag.tagging import keys

FORMS = ("value", "block", "rule")
# Keys that are not in the catalogue: a user's, and two of XLA's form.
OTHERS = {"mine": ["v"], "_mine": ["v"], "xla_mine": ["v"]}
_VALUES: dict[str, list[str]] = {"latency_metadata": ["5"], "kernel_metadata": ["{}"], "backend_config": ["{}"]}
_CRASHED = "ended the process"


@jax.custom_vjp
def squared(x):
    return x * x


squared.defvjp(lambda x: (x * x, x), lambda x, g: (2 * x * g,))

OPERATIONS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "dot": lambda x: x @ x.T,
    "reduce": lambda x: lax.reduce(x, 0.0, lax.add, (1,)),
    "reduce_window": lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 1), "SAME"),
    "cumsum": lambda x: jnp.cumsum(x, 0),
    "sort": lambda x: lax.sort(x),
    "scatter": lambda x: x.at[jnp.array([1, 2])].add(1.0),
    "select_and_scatter": jax.grad(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), "SAME").sum()),
    "psum": lambda x: lax.psum(x, "i"),
    "pmax": lambda x: lax.pmax(x, "i"),
    "psum_scatter": lambda x: lax.psum_scatter(x, "i", tiled=True),
    "all_gather": lambda x: lax.all_gather(x, "i", tiled=True),
    "cond": lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x),
    "while": lambda x: lax.while_loop(lambda c: c.sum() < 9.0, lambda c: jnp.abs(c) + 1.0, x),
    "scan": lambda x: lax.scan(lambda c, _: (jnp.sin(c) * x, None), x, None, length=3)[0],
    "custom_vjp": jax.grad(lambda x: squared(x).sum()),
    "softmax": jax.jit(jax.nn.softmax),
    "gather": lambda x: x[jnp.array([3, 5])],
    "top_k": lambda x: lax.top_k(x, 3)[0],
}


@dataclass(frozen=True)
class Case:
    """One program."""

    key: str
    value: str
    form: str
    operations: tuple[str, ...]

    def function(self) -> Callable[[jax.Array], jax.Array]:
        def run(x: jax.Array) -> jax.Array:
            total = x
            for number, name in enumerate(self.operations):
                # Groups and fusions are of one operation each.
                value = str(number) if self.value == "7" else self.value
                total = total + self._tagged(name, value, jnp.cos(x)).sum()
            return total

        return run

    def _tagged(self, name: str, value: str, x: jax.Array) -> jax.Array:
        operation = OPERATIONS[name]
        if self.form == "value":
            return set_xla_metadata(operation(x), **{self.key: value})
        if self.form == "block":
            with set_xla_metadata(**{self.key: value}):
                return operation(x)
        with jax.named_scope(f"tagged_{value}"):
            return operation(x)

    def rules(self) -> list[hlotag.Rule]:
        if self.form != "rule":
            return []
        values = {str(n) for n in range(len(self.operations))} if self.value == "7" else {self.value}
        return [hlotag.Rule({self.key: value}, scope=f"tagged_{value}") for value in sorted(values)]


def cases(names: Sequence[str] = (), forms: Sequence[str] = FORMS) -> Iterator[Case]:
    """All of them, or those of some keys and forms."""
    for key, values in values_of_keys().items():
        if not names or key in names:
            for value in values:
                for form in forms:
                    yield Case(key, value, form, tuple(OPERATIONS))


def values_of_keys() -> dict[str, list[str]]:
    """The legal values of each key of the catalogue; "7" stands for a number for each operation."""
    found = {}
    for key in keys.catalogue():
        if not key.reserved and key.consumer != "registered":
            found[key.name] = _VALUES.get(key.name) or _legal(key)
    return found | OTHERS


def _legal(key: Any) -> list[str]:
    if key.values is None:
        return ["7"]
    tried = [*key.values.choices, "7", ":7", "{{0,1}}", "text"]
    return [value for value in tried if key.values.allow(value)]


def compile_case(case: Case, devices: Sequence[Any], *, alone: bool) -> str:
    """XLA's error, or "". With JAX alone, a rule is a block."""
    mesh = Mesh(list(devices), ("i",))
    shape = jax.ShapeDtypeStruct((64 * len(devices), 128), jnp.float32, sharding=NamedSharding(mesh, P("i")))
    form = "block" if alone and case.form == "rule" else case.form
    made = Case(case.key, case.value, form, case.operations)
    mapped = jax.shard_map(made.function(), mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=False)
    try:
        if alone:
            jax.jit(mapped).lower(shape).compile()
        else:
            with hlotag.stage(rules=made.rules()):
                jax.jit(mapped).lower(shape).compile()
    except hlotag.errors.TagError:
        return ""  # hlotag refuses the value with a line of the program.
    except jax.errors.JaxRuntimeError as error:
        return str(error).splitlines()[0][:160]
    return ""


def run_here(jobs: Sequence[Case], *, alone: bool) -> None:
    """Compiles in this process; prints a line for each job before and after it."""
    from compilers import KINDS

    compiler = next(made() for name, made in KINDS[os.environ["HLOTAG_COMPILERS"]].items() if name.startswith("4"))
    for number, job in enumerate(jobs):
        print(json.dumps(["begin", number]), flush=True)
        print(json.dumps([number, compile_case(job, compiler.devices, alone=alone)]), flush=True)


def run_apart(jobs: Sequence[Case], *, alone: bool) -> list[str]:
    """The error of each job, "" for none, in processes that XLA may end."""
    found: dict[int, str] = {}
    while len(found) < len(jobs):
        rest = [number for number in range(len(jobs)) if number not in found]
        text = json.dumps([[jobs[n].key, jobs[n].value, jobs[n].form, jobs[n].operations] for n in rest])
        command = [sys.executable, __file__, "--child", "alone" if alone else "hlotag"]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        done = subprocess.run(command, input=text, capture_output=True, text=True, errors="replace", check=False, env=environment)
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
        found |= {rest[line[0]]: line[1] for line in lines if line[0] != "begin"}
        begun = [rest[line[1]] for line in lines if line[0] == "begin"]
        if not begun:
            raise RuntimeError(done.stderr)
        if begun[-1] not in found:
            found[begun[-1]] = f"{_CRASHED} ({done.returncode})"
    return [found[number] for number in range(len(jobs))]


def compare(names: Sequence[str] = (), forms: Sequence[str] = FORMS) -> tuple[int, list[str]]:
    """How many programs were compiled, and those that compile with JAX alone and not with hlotag."""
    whole = list(cases(names, forms))
    failed = [case for case, error in zip(whole, run_apart(whole, alone=False), strict=True) if error]
    single = [Case(case.key, case.value, case.form, (name,)) for case in failed for name in case.operations]
    errors = [(case, error) for case, error in zip(single, run_apart(single, alone=False), strict=True) if error]
    alone = run_apart([case for case, _ in errors], alone=True)
    worse = [
        f"{case.key}={case.value} on {case.operations[0]} as a {case.form}: {error}"
        for (case, error), other in zip(errors, alone, strict=True)
        if not other
    ]
    return len(whole) * len(OPERATIONS), worse


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[1]))
    import conftest  # noqa: F401  (sets the environment)

    if sys.argv[1:2] == ["--child"]:
        run_here(
            [Case(key, value, form, tuple(ops)) for key, value, form, ops in json.load(sys.stdin)], alone=sys.argv[2] == "alone"
        )
    else:
        count, worse = compare(sys.argv[1:])
        print("\n".join([*worse, f"{count} programs, {len(worse)} compile with JAX alone and not with hlotag"]))
        sys.exit(bool(worse))
