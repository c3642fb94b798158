# SPDX-License-Identifier: Apache-2.0
"""The HLO of a function: `xla_computation`, as the former `jax.xla_computation`."""

from __future__ import annotations

import functools
import math
import operator
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend import backend as jax_backend
from jax.extend.mlir import ir
from jax.sharding import PartitionSpec

from hlotag import _compat
from hlotag._util.arguments import check_choice, show
from hlotag.errors import ArgumentError
from hlotag.mlir.modules import to_bytecode


class Computation(_compat.runtime.XlaComputation):
    """The HLO of a function: jaxlib's `XlaComputation`, with the data that HLO text lacks.

    `as_hlo_text()`, `as_serialized_hlo_module_proto()`, `as_hlo_dot_graph()`, `get_hlo_module()` and `program_shape()` are
    jaxlib's own.

    Attributes:
        num_replicas: The number of replicas: the product of the sizes in `axis_env`.
        num_partitions: The number of partitions, from `in_parts` and `out_parts` or a mesh in the function.
        host_callbacks: Callbacks into Python, which XLA needs on some platforms.
        keepalive: Objects that must live as long as executables: callbacks.
    """

    num_replicas: int
    num_partitions: int
    host_callbacks: tuple
    keepalive: Any


class OutputShape(jax.ShapeDtypeStruct):
    """The shape and dtype of an output."""

    @property
    def named_shape(self) -> dict[Hashable, int]:
        """Always empty: JAX has dropped named axes."""
        return {}


def xla_computation(  # noqa: PLR0917  (as it was documented)
    fun: Callable[..., Any],
    static_argnums: int | Iterable[int] = (),
    axis_env: Sequence[tuple[Hashable, int]] | None = None,
    in_parts: Any = None,
    out_parts: Any = None,
    backend: str | None = None,
    tuple_args: bool | None = None,
    instantiate_const_outputs: bool | None = None,
    return_shape: bool = False,
    donate_argnums: int | Iterable[int] = (),
) -> Callable[..., Any]:
    """Creates a function that returns the HLO of `fun` for example arguments, as `jax.xla_computation` did.

    Args:
        fun: A function of arrays, or of pytrees of arrays.
        static_argnums: Which positional arguments are values at compile time, as in `jax.jit`.
        axis_env: Names and sizes of the axes of collectives, as of `jax.pmap`. The product of the sizes is the number of
            replicas; the last axis varies fastest.
        in_parts: The partitions of arguments: None for unpartitioned; or a pytree prefix of the non-static positional arguments,
            with `PartitionSpec(2, 1)` for 2 parts along the first dimension, and None for replicated arguments.
        out_parts: The partitions of outputs, in the same form.
        backend: The platform, `"cpu"`, `"gpu"`, `"cuda"`, `"rocm"` or `"tpu"`, which need not be present. None for the default.
        tuple_args: Whether the program has one tuple as its parameter; None means False.
        instantiate_const_outputs: Has no effect, as before.
        return_shape: Whether to return the shapes of the outputs too.
        donate_argnums: Which positional arguments XLA may overwrite, as in `jax.jit`; shown as `input_output_alias`.

    Returns:
        A function that takes the arguments of `fun`: arrays, numbers, or objects with a `shape` and a `dtype`. It returns a
        `Computation`, whose root is always a tuple. With `return_shape`, it also returns a pytree like the output of `fun`, of
        objects with `shape`, `dtype` and `named_shape`.

    Raises:
        ArgumentError: A parameter is invalid, or `fun` is not callable.

    Examples:
        >>> "sine(" in hlotag.xla.xla_computation(jnp.sin)(1.0).as_hlo_text()
        True
    """
    del instantiate_const_outputs
    if not callable(fun):
        raise ArgumentError(f"xla_computation takes a function, not {show(fun)}")
    axes = {name: operator.index(size) for name, size in axis_env or ()}
    if len(axes) < len(axis_env or ()) or min(axes.values(), default=1) < 1:
        raise ArgumentError(f"axis_env must have pairs of a name and a size of at least 1, each name once, not {axis_env}")
    name = f"xla_computation_{getattr(fun, '__name__', 'unknown')}"

    @functools.wraps(fun, updated=())
    def computation_maker(*args: Any, **kwargs: Any) -> Any:
        static, donated = (_numbers(given, len(args)) for given in (static_argnums, donate_argnums))
        arrays = {i: jax.tree.map(_describe, arg) for i, arg in enumerate(args) if i not in static}
        keywords = jax.tree.map(_describe, kwargs)
        is_donated = [i in donated for i, arg in arrays.items() for _ in jax.tree.leaves(arg)]
        is_donated += [False] * len(jax.tree.leaves(keywords))
        trace = jax.make_jaxpr(fun, tuple(sorted(static)), axis_env=list(axes.items()), return_shape=True)
        jaxpr, out = trace(*(arrays.get(i, arg) for i, arg in enumerate(args)), **keywords)
        module, kept = _compat.runtime.lower_for_replicas(name, jaxpr, axes, _platform(backend), is_donated)
        inputs = _shardings("in_parts", in_parts, tuple(arrays.values()))
        outputs = _shardings("out_parts", out_parts, out)
        partitions = _partition_count([*inputs.values(), *outputs.values()], module)
        _write_shardings(module, "arg_attrs", inputs)
        _write_shardings(module, "res_attrs", outputs)
        built = _compat.runtime.module_to_computation(to_bytecode(module), bool(tuple_args))
        result = Computation(built.as_serialized_hlo_module_proto())
        result.num_replicas, result.num_partitions = math.prod(axes.values()), partitions
        result.keepalive, result.host_callbacks = kept[0], tuple(kept[1] or ())
        shapes = jax.tree.map(lambda leaf: OutputShape(leaf.shape, leaf.dtype, weak_type=leaf.weak_type), out)
        return (result, shapes) if return_shape else result

    return computation_maker


def _numbers(value: int | Iterable[int], count: int) -> set[int]:
    """Resolves argument numbers, of which negative ones depend on the number of arguments."""
    given = [value] if np.ndim(value) == 0 else value  # pyright: ignore[reportArgumentType]
    numbers = [operator.index(number) for number in given]  # pyright: ignore
    if numbers and not -count <= min(numbers) <= max(numbers) < count:
        raise ArgumentError(f"argument numbers {numbers} do not fit a call with {count} positional arguments")
    return {number % count for number in numbers}


def _platform(name: str | None) -> str:
    if name is None:
        return jax.default_backend()
    check_choice("backend", name, ("cpu", "gpu", "cuda", "rocm", "tpu"))
    if name == "gpu":  # "cuda" or "rocm", if one is present.
        return next((p for p in ("cuda", "rocm") if p in jax_backend.backends()), "cuda")
    return name


def _describe(leaf: Any) -> jax.ShapeDtypeStruct:
    """The shape and dtype of an argument."""
    is_array = isinstance(leaf, np.ndarray | np.generic | jax.Array) or not (hasattr(leaf, "shape") and hasattr(leaf, "dtype"))
    described = jax.typeof(leaf) if is_array else leaf
    weak = bool(getattr(described, "weak_type", False))
    return jax.ShapeDtypeStruct(described.shape, described.dtype, weak_type=weak)


# --- Partitions --------------------------------------------------------------------------------------------------------------


def _shardings(name: str, parts: Any, tree: Any) -> dict[int, str]:
    """XLA's sharding of each leaf of `tree`; empty if `parts` is None."""
    if parts is None:
        return {}
    specs: list[Any] = []

    def is_spec(part: Any) -> bool:
        return part is None or isinstance(part, PartitionSpec)

    try:
        jax.tree.map(lambda spec, part: specs.extend([spec] * len(jax.tree.leaves(part))), parts, tree, is_leaf=is_spec)
    except ValueError as error:
        raise ArgumentError(f"{name} must be a pytree prefix, of PartitionSpec and None, of the values: {error}") from None
    pairs = enumerate(zip(specs, jax.tree.leaves(tree), strict=True))
    return {i: _sharding(f"{name}, number {i}", spec, leaf) for i, (spec, leaf) in pairs}


def _sharding(where: str, spec: Any, leaf: Any) -> str:
    if spec is None:
        return "{replicated}"
    counts = [1 if count is None else count for count in spec]
    counts += [1] * (len(leaf.shape) - len(counts))
    if len(counts) > len(leaf.shape) or not all(isinstance(count, int) and count >= 1 for count in counts):
        raise ArgumentError(
            f"{where}: {spec} must have the number of parts of each of {len(leaf.shape)} dimensions, such as "
            "PartitionSpec(2, 1); for the axes of a mesh use jax.jit(f, in_shardings=...).lower(...)"
        )
    total = math.prod(counts)
    return "{replicated}" if total == 1 else f"{{devices=[{','.join(map(str, counts))}]<=[{total}]}}"


def _partition_count(shardings: list[str], module: ir.Module) -> int:
    """The number of partitions of `in_parts`, `out_parts` and the meshes in the function, which must agree."""
    counts = {int(text[text.rindex("[") + 1 : -2]) for text in shardings if "<=" in text}
    for operation in module.body.operations:
        if operation.operation.name == "sdy.mesh":
            counts.add(math.prod(int(size) for size in re.findall(r'"=(\d+)', str(operation.attributes["mesh"]))))
    counts.discard(1)
    if len(counts) > 1:
        found = sorted(counts)
        raise ArgumentError(f"in_parts, out_parts and meshes must all have the same number of parts, not {found}")
    return counts.pop() if counts else 1


def _write_shardings(module: ir.Module, kind: str, shardings: Mapping[int, str]) -> None:
    """Writes the shardings of the main function's arguments or results."""
    if not shardings:
        return
    with module.context:
        main = next(op for op in module.body.operations if ir.StringAttr(op.attributes["sym_name"]).value == "main")
        present: Any = main.attributes[kind] if kind in main.attributes else [ir.DictAttr.get({})] * len(shardings)
        changed = []
        for number, attributes in enumerate(present):
            entries = {entry.name: entry.attr for entry in ir.DictAttr(attributes)}
            entries["mhlo.sharding"] = ir.StringAttr.get(shardings.get(number, "{replicated}"))
            changed.append(ir.DictAttr.get(entries))
        main.attributes[kind] = ir.ArrayAttr.get(changed)
