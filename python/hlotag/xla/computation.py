# SPDX-License-Identifier: Apache-2.0
"""`xla_computation`: the HLO of a function, as by the former `jax.xla_computation`."""

from __future__ import annotations

import functools
import math
import operator
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.extend import backend as jax_backend
from jax.extend.mlir import ir
from jax.sharding import PartitionSpec

from hlotag import _compat
from hlotag._util.arguments import check_choice, check_flag, elements_of, shown
from hlotag.host.modules import to_bytecode
from hlotag.xla._errors import ArgumentError


class Computation(_compat.XlaComputation):
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
        """Empty: arrays have had no named axes since JAX dropped them."""
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
        axis_env: Names and sizes of axes that collectives may name, as `jax.pmap` set them up; the program is for as many
            replicas as the product of the sizes, the last axis varying fastest.
        in_parts: How arguments are partitioned: None for not at all; or a pytree prefix of the non-static positional arguments,
            with `PartitionSpec(2, 1)` for 2 parts along the first dimension, and None for replicated arguments.
        out_parts: Likewise, how outputs are partitioned.
        backend: The platform, `"cpu"`, `"gpu"`, `"cuda"`, `"rocm"` or `"tpu"`, which need not be present. None for the default.
        tuple_args: Whether the program has one parameter, a tuple; None for not.
        instantiate_const_outputs: Does nothing, as before.
        return_shape: Whether to return also the shapes of the outputs.
        donate_argnums: Which positional arguments XLA may overwrite, as in `jax.jit`; shown as `input_output_alias`.

    Returns:
        A function. Its arguments are those of `fun`: arrays, numbers, or anything that has a `shape` and a `dtype`. It returns a
        `Computation`, whose root is always a tuple; with `return_shape`, also a pytree like the output of `fun`, of objects with
        `shape`, `dtype` and `named_shape`.

    Raises:
        ArgumentError: A parameter is invalid, or `fun` is not callable.

    Examples:
        >>> "sine(" in hlotag.xla_computation(jnp.sin)(1.0).as_hlo_text()
        True
    """
    del instantiate_const_outputs
    if not callable(fun):
        raise ArgumentError(f"xla_computation takes a function, not {shown(fun)}")
    check_flag("return_shape", return_shape)
    if tuple_args is not None:
        check_flag("tuple_args", tuple_args)
    static, donated = _indices("static_argnums", static_argnums), _indices("donate_argnums", donate_argnums)
    axes = _axes(axis_env)
    name = f"xla_computation_{getattr(fun, '__name__', 'unknown')}"

    @functools.wraps(fun, updated=())
    def computation_maker(*args: Any, **kwargs: Any) -> Any:
        example = _example(args, kwargs, static, donated)
        trace = jax.make_jaxpr(fun, example.static, axis_env=list(axes.items()), return_shape=True)
        jaxpr, out = trace(*example.args, **example.kwargs)
        lowered = _compat.lower_for_replicas(name, jaxpr, axes, _platform(backend), example.is_donated)
        module, (keepalive, callbacks) = lowered
        shardings = {
            "arg_attrs": _shardings("in_parts", in_parts, example.arrays),
            "res_attrs": _shardings("out_parts", out_parts, out),
        }
        result = _computation(module, shardings, is_tupled=bool(tuple_args))
        result.num_replicas = math.prod(axes.values())
        result.keepalive, result.host_callbacks = keepalive, tuple(callbacks or ())
        if not return_shape:
            return result
        return result, jax.tree.map(lambda leaf: OutputShape(leaf.shape, leaf.dtype, weak_type=leaf.weak_type), out)

    return computation_maker


@dataclass(frozen=True)
class _Example:
    """The arguments of one call. Arrays are given as shapes.

    Attributes:
        args: The positional arguments.
        kwargs: The keyword arguments.
        static: The indices of positional arguments that are values at compile time, in order.
        arrays: The other positional arguments.
        is_donated: Whether XLA may overwrite each array, those of keyword arguments last.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    static: tuple[int, ...]
    arrays: tuple[Any, ...]
    is_donated: list[bool]


def _example(args: tuple[Any, ...], kwargs: dict[str, Any], static: tuple[int, ...], donated: tuple[int, ...]) -> _Example:
    # Negative indices depend on the number of arguments.
    static_here = _within("static_argnums", static, len(args))
    donated_here = _within("donate_argnums", donated, len(args))
    if both := static_here & donated_here:
        raise ArgumentError(f"static_argnums and donate_argnums both have {sorted(both)}; a static argument is no array")
    dynamic = {i: jax.tree.map(_described, arg) for i, arg in enumerate(args) if i not in static_here}
    keywords = jax.tree.map(_described, kwargs)
    return _Example(
        args=tuple(dynamic.get(i, arg) for i, arg in enumerate(args)),
        kwargs=keywords,
        static=tuple(sorted(static_here)),
        arrays=tuple(dynamic.values()),
        is_donated=[i in donated_here for i, arg in dynamic.items() for _ in jax.tree.leaves(arg)]
        + [False] * len(jax.tree.leaves(keywords)),
    )


def _computation(module: Any, shardings: dict[str, dict[int, Any]], *, is_tupled: bool) -> Computation:
    """Converts a module. `shardings` maps attributes (of arguments and results) to shardings by index."""
    partitions = _partition_count([sharding for of in shardings.values() for sharding in of.values()], module)
    for attribute, of in shardings.items():
        _write_shardings(module, attribute, of)
    built = _compat.module_to_computation(to_bytecode(module), is_tupled)
    result = Computation(built.as_serialized_hlo_module_proto())
    result.num_partitions = partitions
    return result


# --- Parameters --------------------------------------------------------------------------------------------------------------


def _indices(name: str, value: int | Iterable[int]) -> tuple[int, ...]:
    numbers: list[Any] = [value] if _is_int(value) else elements_of(name, value)
    if not all(map(_is_int, numbers)):
        raise ArgumentError(f"{name} must be an int or several, not {value!r}")
    return tuple(map(operator.index, numbers))


def _is_int(value: Any) -> bool:
    """Whether JAX accepts `value` as an int, as it does NumPy's."""
    return hasattr(value, "__index__") and np.ndim(value) == 0


def _within(name: str, numbers: tuple[int, ...], count: int) -> set[int]:
    """The indices, negative ones resolved."""
    for number in numbers:
        if not -count <= number < count:
            raise ArgumentError(f"{name} has {number}, and the function was called with {count} positional arguments")
    return {number % count for number in numbers}


def _axes(axis_env: Any) -> dict[Hashable, int]:
    given = () if axis_env is None else elements_of("axis_env", axis_env)
    pairs = [tuple(elements_of("an element of axis_env", pair)) for pair in given]
    for pair in pairs:
        if len(pair) != 2 or not _is_int(pair[1]) or pair[1] < 1:
            raise ArgumentError(f"axis_env must have pairs of a name and a size of 1 or more, such as ('i', 4), not {pair!r}")
    axes = {name: operator.index(size) for name, size in pairs}
    if len(axes) < len(pairs):
        raise ArgumentError(f"axis_env has a name twice: {pairs}")
    return axes


def _platform(name: str | None) -> str:
    if name is None:
        return jax.default_backend()
    check_choice("backend", name, ("cpu", "gpu", "cuda", "rocm", "tpu"))
    if name == "gpu":  # Only a present GPU tells which of the two.
        return next((p for p in ("cuda", "rocm") if p in jax_backend.backends()), "cuda")
    return name


def _described(leaf: Any) -> jax.ShapeDtypeStruct:
    """The shape and dtype of an argument."""
    is_array = isinstance(leaf, np.ndarray | np.generic | jax.Array) or not (hasattr(leaf, "shape") and hasattr(leaf, "dtype"))
    described = jax.typeof(leaf) if is_array else leaf
    weak = bool(getattr(described, "weak_type", False))
    return jax.ShapeDtypeStruct(described.shape, described.dtype, weak_type=weak)


# --- Partitions --------------------------------------------------------------------------------------------------------------


def _is_spec(value: Any) -> bool:
    return value is None or isinstance(value, PartitionSpec)


def _shardings(name: str, parts: Any, tree: Any) -> dict[int, str]:
    """XLA's sharding of each leaf of `tree`; none at all where `parts` is None."""
    if parts is None:
        return {}
    specs: list[Any] = []
    try:
        jax.tree.map(lambda spec, part: specs.extend([spec] * len(jax.tree.leaves(part))), parts, tree, is_leaf=_is_spec)
    except ValueError as error:
        raise ArgumentError(
            f"{name} must be a pytree prefix of what it partitions, made of PartitionSpec and None: {error}"
        ) from None
    leaves = jax.tree.leaves(tree)
    return {i: _sharding(f"{name}, number {i}", spec, leaf) for i, (spec, leaf) in enumerate(zip(specs, leaves, strict=True))}


def _sharding(where: str, spec: Any, leaf: Any) -> str:
    if spec is None:
        return "{replicated}"
    counts = [1 if count is None else count for count in spec] if isinstance(spec, PartitionSpec) else [0]
    if not all(_is_int(count) and count >= 1 for count in counts):
        raise ArgumentError(
            f"{where}: PartitionSpec has the number of parts of each dimension, such as PartitionSpec(2, 1), not {shown(spec)}; "
            "for the axes of a mesh use jax.jit(f, in_shardings=...).lower(...)"
        )
    if len(counts) > len(leaf.shape):
        raise ArgumentError(f"{where}: {spec} has {len(counts)} dimensions, and the array {len(leaf.shape)}")
    counts += [1] * (len(leaf.shape) - len(counts))
    total = math.prod(counts)
    return "{replicated}" if total == 1 else f"{{devices=[{','.join(map(str, counts))}]<=[{total}]}}"


def _partition_count(shardings: list[str], module: Any) -> int:
    """The number of partitions: of `in_parts` and `out_parts`, or of the meshes in the function."""
    counts = {int(text[text.rindex("[") + 1 : -2]) for text in shardings if "<=" in text}
    for operation in module.body.operations:
        if operation.operation.name == "sdy.mesh":
            counts.add(math.prod(int(size) for size in re.findall(r'"=(\d+)', str(operation.attributes["mesh"]))))
    counts.discard(1)
    if len(counts) > 1:
        found = sorted(counts)
        raise ArgumentError(f"in_parts, out_parts and meshes must have the same number of parts everywhere, not {found}")
    return counts.pop() if counts else 1


def _write_shardings(module: Any, kind: str, shardings: Mapping[int, str]) -> None:
    """Writes shardings of the arguments or results of the program's entry."""
    if not shardings:
        return
    with module.context:
        main = next(op for op in module.body.operations if ir.StringAttr(op.attributes["sym_name"]).value == "main")
        present = main.attributes[kind] if kind in main.attributes else [ir.DictAttr.get({})] * len(shardings)
        changed = []
        for number, attributes in enumerate(present):
            entries = {entry.name: entry.attr for entry in ir.DictAttr(attributes)}
            entries["mhlo.sharding"] = ir.StringAttr.get(shardings.get(number, "{replicated}"))
            changed.append(ir.DictAttr.get(entries))
        main.attributes[kind] = ir.ArrayAttr.get(changed)
