# SPDX-License-Identifier: Apache-2.0
"""The functions of JAX that hlotag wraps, once, when the process has its first stage.

Wrappers stay. They only call what they wrap while no stage is set.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from inspect import signature
from typing import Any, NamedTuple

from jax._src import cache_key, compiler, core, xla_metadata_lib
from jax._src.interpreters import ad, mlir

from hlotag import _core
from hlotag._compat.supported import explain
from hlotag._compat.tracing import (
    VALUE_TAG,
    entries_of_value_tag,
    params_of_value_tag,
    with_metadata,
)


class Purpose(NamedTuple):
    """Why an attribute of JAX is wrapped.

    Attributes:
        use: What hlotag needs the wrapper for.
        without: What would be lost without it.
    """

    use: str
    without: str


STAGES = _core.Switch()
"""Counts the stages that the process and open blocks of all threads have set."""


def around(replacement: Callable[..., Any], *, in_stage: bool = False) -> Callable[[Callable], Callable]:
    """Makes wrappers that call `replacement(original, *args, **kwargs)`, or only `in_stage`, and else the original."""

    def wrap(original: Callable) -> Callable:
        @functools.wraps(original)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            if in_stage and not STAGES.uses:
                return original(*args, **kwargs)
            return replacement(original, *args, **kwargs)

        return wrapped

    return wrap


class Patch:
    """A wrapper of an attribute, or of a primitive's rule. Once installed it stays, and calls what it found.

    Args:
        owner: The object with the attribute, or the dictionary of rules.
        name: The attribute, a function; or the primitive.
        parameters: What the wrapper passes to the function by position, as text of a `def`.
        wrap: Makes the wrapper from the function.
        purpose: What `docs/compatibility.md` says about the patch.
        rules: The name of the dictionary.

    Raises:
        IncompatibleJaxlibError: This JAX has no such attribute, or its function has other parameters.
    """

    def __init__(
        self, owner: Any, name: Any, parameters: str, wrap: Callable[[Any], Any], purpose: Purpose, *, rules: str = ""
    ) -> None:
        self.purpose = purpose
        self.owner, self.name, self.rules, self._wrap = owner, name, rules, wrap
        with explain():
            _check_parameters(self._function(), parameters.split(", "))
        self._untouched = self.there()
        self._below: tuple[Any, ...] | None = None

    def install(self) -> None:
        """Installs the wrapper, unless it is in place; again if someone has put back what was there before."""
        there = self.there()
        if self._below is not None and not any(there is each for each in self._below):
            return
        self._below = (there, self._untouched)
        wrapper = self._wrap(self._function())
        if self.rules:
            self.owner[self.name] = wrapper
        else:
            setattr(self.owner, self.name, wrapper)

    def there(self) -> Any:
        """What is in place now; None for an inherited attribute."""
        return (self.owner if self.rules else vars(self.owner)).get(self.name)

    def _function(self) -> Any:
        return self.owner[self.name] if self.rules else getattr(self.owner, self.name)


def _check_parameters(function: Any, passed: list[str]) -> None:
    """Raises ImportError unless `function` can be called with as many arguments by position, whatever it calls them."""
    try:
        parameters = signature(function)
    except (TypeError, ValueError):  # Some functions in C have no signature.
        return
    try:
        parameters.bind_partial(*passed)
    except TypeError as error:
        name = f"{function.__module__}.{function.__qualname__}"
        raise ImportError(f"{name} takes {parameters}, not ({', '.join(passed)}, ...)") from error


def block_patch(metadata_of: Callable[[dict[str, Any]], dict[str, Any]]) -> Patch:
    """Replaces the metadata of JAX's own blocks by `metadata_of(metadata)`.

    JAX drops keys with the value None, so that the tag of an enclosing loop or call would apply to the block. It also compares
    values with `==`, for which True, 1 and 1.0 are equal.
    """
    purpose = Purpose("blocks: `None` removes a key", "outer tags come back in the block")
    wrap = around(lambda original, metadata: original(metadata_of(metadata)), in_stage=True)
    return Patch(xla_metadata_lib, "filter_nones", "d", wrap, purpose)


class _Recording(threading.local):
    is_recording = False


def value_tag_patches(
    is_on: Callable[[], bool], on_value: Callable[[Any, dict[str, Any]], dict[str, Any] | None]
) -> tuple[Patch, ...]:
    """Intercepts JAX's value tag, `set_xla_metadata(x, ...)`, however user code imported it.

    While `is_on()`, the tag returns its operand, since autodiff would save the operand and another result. `on_value(value,
    metadata)` returns the metadata of an equation without uses, which interpreters of jaxprs bind again; or None to record none.
    `on_value` is not called for the binds by which transformations record that equation.
    """
    thread = _Recording()

    def bind_with_trace(original, trace, args, avals, params, /):
        if thread.is_recording or not is_on():
            return original(trace, args, avals, params)
        with core.set_current_trace(trace):
            metadata = on_value(args[0], entries_of_value_tag(params))
        if metadata is None:
            return args[0]
        try:
            thread.is_recording = True
            original(trace, args, avals, params_of_value_tag(metadata))
        finally:
            thread.is_recording = False
        return args[0]

    def jvp(original, primals, tangents, **params):
        if not is_on():
            return original(primals, tangents, **params)
        # Tangents have the tag in their contexts. An interpreter that binds a tangent's equation again would ignore `grad=`.
        return VALUE_TAG.bind(*primals, **params), tangents[0]

    purpose = Purpose("value tags by JAX's function, `set_xla_metadata(x, ...)`", "autodiff drops them")
    of_jvp = Purpose("value tags by JAX's function, under `jvp`", "interpreters of jaxprs tag tangents whatever `grad=` says")
    return (
        Patch(VALUE_TAG, "bind_with_trace", "trace, args, avals, params", around(bind_with_trace, in_stage=True), purpose),
        Patch(ad.primitive_jvps, VALUE_TAG, "primals, tangents", around(jvp, in_stage=True), of_jvp, rules="ad.primitive_jvps"),
    )


def lowering_patch(lower: Callable[..., Any]) -> Patch:
    """Routes JAX's lowering of a whole jaxpr to a module through `lower(original, module_name, jaxpr, *args, **kwargs)`.

    JAX caches, prints, exports and compiles the result of `lower_jaxpr_to_module`, and has no public hook there. 0.12 also passes
    `out_avals`.
    """
    purpose = Purpose("the stage: it runs the passes", "no pass runs")
    return Patch(mlir, "lower_jaxpr_to_module", "module_name, jaxpr", around(lower), purpose)


def attaching_patch(metadata_of: Callable[[Any], Any]) -> Patch:
    """Attaches `metadata_of(metadata)` where JAX attaches the metadata of an equation to an op that the equation lowers to."""

    def attach(original, context, op):
        equation = context.jaxpr_eqn_ctx
        metadata = None if equation is None else equation.xla_metadata
        if metadata and (kept := metadata_of(metadata)) is not metadata:
            context = context.replace(jaxpr_eqn_ctx=with_metadata(equation, kept))
        return original(context, op)

    purpose = Purpose("policies of tags (`grad=`), traced in a stage", "a program lowered outside of it has hlotag's own keys")
    return Patch(mlir, "wrap_xla_metadata_in_place", "ctx, op", around(attach), purpose)


def compile_patch(compile_module: Callable[..., Any]) -> Patch:
    """Routes compilations by XLA through `compile_module(original, backend, module, *args, **kwargs)`.

    JAX calls `backend_compile_and_load` if neither of its caches has the executable. Changes made here are not in the keys of
    these caches. No public hook lies between.
    """
    purpose = Purpose("the HLO pass", "tags that XLA drops stay dropped")
    return Patch(compiler, "backend_compile_and_load", "backend, module", around(compile_module), purpose)


def cache_key_patch(suffix_of: Callable[[Any], str]) -> Patch:
    """Appends `suffix_of(module)` to the key of a module in the persistent cache.

    JAX's own hook, `cache_key.custom_hook`, does not get the module.
    """

    def get(original, module, *args, **kwargs):
        return original(module, *args, **kwargs) + suffix_of(module)

    purpose = Purpose(
        "executables with restored tags, which have entries of their own", "the persistent cache mixes them with others"
    )
    return Patch(cache_key, "get", "module", around(get), purpose)
