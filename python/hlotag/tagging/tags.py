# SPDX-License-Identifier: Apache-2.0
"""Tags of values, blocks and functions.

A tag is metadata in the contexts of equations, which JAX carries through every transformation. A block sets the context in which
its equations are traced. A value tag changes the contexts of the equations that computed the value.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from hlotag import _compat
from hlotag._util.arguments import check_choice
from hlotag._util.forks import free_in_children
from hlotag._util.identity import ByIdentity
from hlotag.errors import TagDroppedWarning, TagError, TagIgnoredWarning
from hlotag.tagging import keys, scopes
from hlotag.tagging.decorated import around
from hlotag.tagging.entries import UNSET, VALUE, Phased, ValueTag, entries_in, make_value, merge_values
from hlotag.tagging.keys import Grad, as_text
from hlotag.tagging.phases import Phase
from hlotag.tagging.state import active
from hlotag.tagging.warning import warn, warn_at

if TYPE_CHECKING:
    from jaxlib.mlir import ir


def set_xla_metadata(x: Any = None, /, **attrs: Any) -> Any:
    """Tags operations, as `jax.experimental.xla_metadata.set_xla_metadata` does, and keeps the tags under autodiff.

    Args:
        x: Value form: a pytree. Tags the operations that made its leaves, and the operations that autodiff derives from these.
            Without it: block form.
        **attrs: String keys to strings, bools, ints or floats. None removes a key within a block.

    Returns:
        `x` itself in the value form; otherwise a context manager that is also a decorator.

    Raises:
        TagError: A key is reserved, a value has no text form or is not legal for its key, or a key is `grad` or `remat`, which
            `tag` and `tagged` take.

    Examples:
        >>> def f(x):
        ...     return hlotag.set_xla_metadata(jnp.sin(x), layer=1)
        >>> with hlotag.stage():
        ...     program = jax.jit(f).lower(1.0)
        >>> 'frontend_attributes = {layer = "1"}' in program.as_text()
        True
    """
    if misplaced := {"grad", "remat"} & attrs.keys():
        name = min(misplaced)
        raise TagError(f"set_xla_metadata takes keys only, and {name}= would be one: write hlotag.tag(x, {{...}}, {name}=...)")
    if x is None:
        return tagged(attrs)
    return tag(x, attrs)


def tag(value: Any, attrs: Mapping[str, Any], *, grad: Grad | None = None, remat: Grad | None = None) -> Any:
    """Tags the operations that made `value`: for each array an operation, or a jitted function such as most of `jax.numpy`.

    If several operations or functions made an array one after another, the last one is tagged. `tagged` tags all of a block.

    Args:
        value: A pytree. The operations that made its arrays are tagged; other leaves are ignored, unless it has no array.
        attrs: Keys and values of the tag.
        grad: The tag of derived operations: "same", "drop" for none, or a mapping of its own. By default, each key has its
            own policy: "same" for most, "drop" for some that XLA reads (`hlotag keys`).
        remat: The tag of operations that `jax.checkpoint` recomputes; by default what `grad` says.

    Returns:
        `value`; the computed results do not change.

    Raises:
        TagError: A key is reserved, a value has no text form or is not legal for its key, or `grad` is another value.

    Examples:
        >>> def loss(x):
        ...     return hlotag.tag(jnp.sin(x), {"layer": "1"}, grad={"layer": "2"})
        >>> with hlotag.stage():
        ...     gradient = jax.jit(jax.grad(loss)).lower(1.0)
        >>> 'layer = "2"' in gradient.as_text()
        True
    """
    metadata = as_metadata(attrs)
    entries = _with_phases(metadata, grad, remat)
    if active() is None:
        _warn_of_no_stage(grad, remat)
        return _compat.tracing.jax_value_tag(value, metadata)
    leaves = jax.tree.leaves(value)
    # NumPy arrays are constants, and get a warning; so does a value without an array, such as a number.
    constants = [leaf for leaf in leaves if isinstance(leaf, np.ndarray | np.generic)]
    for leaf in constants or ([] if any(map(_compat.tracing.is_array, leaves)) else leaves[:1]):
        tag_equations(leaf, metadata)
    return _compat.tracing.jax_value_tag(value, entries | {VALUE: ValueTag.CHECKED})


def tagged(attrs: Mapping[str, Any], *, grad: Grad | None = None, remat: Grad | None = None) -> Block:
    """Tags every operation traced within a block, or within a function when used as a decorator.

    Args:
        attrs: Keys and values of the tag; None as a value removes the key within the block.
        grad: As for `tag`.
        remat: As for `tag`.

    Returns:
        A context manager, also a decorator. It is reentrant, in every thread. In asyncio tasks, leave it before the next `await`.

    Raises:
        TagError: As for `tag`; or the decorated object is a generator or coroutine function, whose body runs after the call.
        ScopeError: On entry, another asyncio task holds a block open.

    Examples:
        >>> @hlotag.tagged({"block": "mlp"})
        ... def mlp(x, w):
        ...     return jnp.tanh(x @ w)
        >>> with hlotag.stage():
        ...     program = jax.jit(mlp).lower(jnp.ones((2, 2)), jnp.ones((2, 2)))
        >>> program.as_text().count('block = "mlp"')
        2
    """
    metadata = as_metadata(attrs, removable=True)
    return Block(metadata, grad, remat)


class Block:
    """The block and decorator form of a tag; made by `tagged` and `set_xla_metadata`."""

    def __init__(self, metadata: dict[str, str | None], grad: Grad | None, remat: Grad | None):
        self._metadata = metadata
        self._grad, self._remat = grad, remat
        self._entries = _with_phases(metadata, grad, remat)

    def __enter__(self) -> None:
        scopes.tags.check()  # This block would inherit the tags of another task's block.
        scopes.tags.enter(self, self._change)

    def _change(self) -> Callable[[], None]:
        ambient = _compat.tracing.ambient_metadata()
        if active() is not None:  # Without the stage, nothing reads values that depend on the phase.
            ambient = note_removals(ambient) | {k: merge_values(ambient.get(k), value) for k, value in self._entries.items()}
        else:
            _warn_of_no_stage(self._grad, self._remat)
            ambient = {key: value for key, value in (ambient | self._metadata).items() if value is not None}
        previous = _compat.tracing.swap_ambient_metadata(ambient)
        return lambda: _compat.tracing.restore_ambient_metadata(previous)

    def __exit__(self, *exc_info: object) -> None:
        scopes.tags.leave(self)

    def __call__(self, function: Callable) -> Callable:
        """Decorates `function`: its calls, and those of its methods such as `.lower`, run within this block."""
        return around(function, self, "with hlotag.tagged(...):", TagError)


def tag_value(value: Any, metadata: dict[str, Any]) -> dict[str, Any] | None:
    """Applies a value tag, JAX's or hlotag's, to the equations behind one array.

    Returns the metadata with which JAX records the tag as an equation; None if there is nothing to record.
    """
    is_repeated = metadata.get(VALUE) == ValueTag.APPLIED
    entries = {key: entry for key, entry in metadata.items() if key != VALUE}
    if VALUE not in metadata:
        entries = with_policies(entries)
    is_tagged = tag_equations(value, entries, is_repeated=is_repeated)
    return entries | {VALUE: ValueTag.APPLIED} if is_tagged and _compat.tracing.is_recorded_as_equation() else None


def tag_equations(value: Any, metadata: Mapping[str, Any], *, is_repeated: bool = False) -> bool:
    """Adds `metadata` to the contexts of all equations of the bind that made `value`. Returns whether there are any.

    A bind that lowers to nothing (`stop_gradient`) is skipped: the equations of its operand get the keys they lack. `is_repeated`
    says that a transformation or an interpreter binds an earlier tag again: equations that kept their context have the tag;
    others lack its keys.
    """
    original = _compat.tracing.original_of(value)
    if _compat.tracing.is_leaked(original):
        _drop(
            metadata,
            "the value is a tracer that leaked from a function whose trace has ended, for example through a global or an "
            "attribute. Tag it where it is computed, and return it from the function.",
        )
        return False
    equations = _compat.tracing.equations_of(original)
    lack = is_repeated or original is not value
    if not equations and _compat.tracing.is_recording() and not is_repeated:
        _drop(
            metadata,
            "the value is an argument, a carry or a constant, which no operation of this trace made. Tag the value where it is "
            "computed, or tag a block around its uses.",
        )
    kept = set(metadata) if equations and lack and not is_repeated else set()  # keys that no equation has taken so far
    known: list[tuple[Any, Any]] = []  # The equations of one operation share a few contexts.

    def retagged(context: Any) -> Any:
        for one, result in known:  # Not a dict by `id`: calls of `id` raise audit events.
            if one is context:
                return result
        old = _compat.tracing.metadata_of(context)
        new = {k: merge_values(old.get(k), v) for k, v in metadata.items() if not lack or k not in old}
        kept.difference_update(new)
        known.append((context, _compat.tracing.with_metadata(context, {**old, **new})))
        return known[-1][1]

    for equation in equations:
        _compat.tracing.retag(equation, retagged)
    if kept:
        _drop(
            {key: metadata[key] for key in kept},
            "the operation that made the value lowers to nothing, and the operation of its operand has a tag with that key. Tag "
            "one of the two.",
        )
    return bool(equations)


@dataclass(frozen=True)
class Dropped:
    """A tag whose value no operation of the trace made.

    Attributes:
        attrs: Keys and values.
        file: The file that set the tag; None if no frame of user code did.
        line: The line in it.
    """

    attrs: tuple[tuple[str, str], ...]
    file: str | None
    line: int


# By the id of a trace's name, of which each trace has its own object, that object and the tags that the trace dropped.
_dropped: dict[int, tuple[str, dict[Dropped, None]]] = {}
_dropping = free_in_children(threading.Lock())
_MAX_DROPPED = 1000
_dropped_of: ByIdentity[tuple[Dropped, ...]] = ByIdentity()


def lowered(jaxpr: Any, module: ir.Module) -> None:
    """Records for `module`, the lowering of `jaxpr`, the tags that were dropped while `jaxpr` was traced."""
    traces = _compat.tracing.traces_in(jaxpr) if _dropped else ()
    if found := {drop: None for trace in traces for drop in _dropped.get(id(trace), (trace, {}))[1].copy()}:
        _dropped_of[module] = tuple(found)


def find_dropped(module: Any) -> tuple[Dropped, ...]:
    """The distinct dropped tags of a module that was lowered in the stage."""
    return _dropped_of.get(module) or ()


def _drop(metadata: Mapping[str, Any], reason: str) -> None:
    frame = _compat.tracing.user_frame()
    attrs = tuple((key, text) for key, text in entries_in(metadata, Phase.FORWARD).items() if text is not None)
    drop = Dropped(attrs, frame and frame.file_name, frame.start_line if frame else 0)
    trace = _compat.tracing.name_trace()
    with _dropping:
        _dropped.setdefault(id(trace), (trace, {}))[1][drop] = None
        while len(_dropped) > _MAX_DROPPED:
            _dropped.pop(next(iter(_dropped)))
    keys = ", ".join(f"{key}={value!r}" for key, value in attrs)
    text = f"tag {keys} has no operation to go to: {reason}"
    warn_at(text, TagDroppedWarning, drop.file, drop.line)


def as_metadata(attrs: Mapping[str, Any], *, removable: bool = False, name: str = "attrs") -> dict[str, Any]:
    """Converts values to text, since JAX compares contexts with `==`, by which True, 1 and 1.0 would be equal.

    `removable` says whether a value may be None; `name` is the parameter's, for errors.
    """
    if not isinstance(attrs, Mapping):
        raise TagError(f"{name} must be a mapping of keys to values, got {type(attrs).__name__}")
    metadata: dict[str, str | None] = {}
    for key, value in attrs.items():
        if value is None and removable and key and isinstance(key, str):
            metadata[key] = None
            continue
        metadata[key] = text = keys.text_of_entry(key, value.item() if isinstance(value, np.generic) else value)
        keys.check(key, text)
    return metadata


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def with_policies(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of JAX's own value tag, with the texts by phase that its keys ask for.

    Raises TagError if a value has no text or is not legal for its key, or the key is hlotag's own. Other reserved keys are JAX's
    to use.
    """
    entries: dict[str, Any] = {}
    for key, value in metadata.items():
        if value is None or not _is_hashable(value):  # JAX accepts hashable values and writes their text.
            keys.text_of_entry(key, value)  # Raises.
        entries[key] = text = as_text(value)
        check = keys.check if key.startswith("hlotag.") else keys.check_value
        check(key, text)
    return _with_phases(entries, None, None)


def note_removals(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Replaces None, for removed keys of a block, by a sentinel, so that enclosing tags do not restore the keys."""
    return {key: UNSET if value is None else value for key, value in metadata.items()}


def as_grad(grad: Any, name: str = "grad") -> Grad | None:
    """Checks an argument with the tags of derived operations, and converts the values of a mapping to text. Raises TagError."""
    if grad is None:
        return None
    if isinstance(grad, Mapping):
        return as_metadata(grad)
    check_choice(name, grad, ("same", "drop"), TagError, besides="a mapping of keys to values")
    return grad


def _with_phases(metadata: Mapping[str, str | None], grad: Any, remat: Any) -> dict[str, str | Phased]:
    """The entries of a tag, with the texts of derived and of recomputed operations."""
    attrs = {key: value for key, value in metadata.items() if value is not None}
    derived = keys.derive(attrs, as_grad(grad))
    rematted = derived if remat is None else derived | keys.derive(attrs, as_grad(remat, "remat"))
    texts = {key: (attrs.get(key, ...), derived.get(key, ...), rematted.get(key, ...)) for key in {**attrs, **rematted}}
    return dict.fromkeys(metadata, UNSET) | {key: make_value(*each) for key, each in texts.items()}


@functools.cache
def _warn_once_of_no_stage() -> None:
    warn(
        "grad= and remat= have no effect while hlotag is off: JAX's own tags do not tell derived operations apart. Call "
        "hlotag.enable() before the program is traced.",
        TagIgnoredWarning,
    )


def _warn_of_no_stage(grad: Any, remat: Any) -> None:
    if remat is not None or grad not in (None, "same"):
        _warn_once_of_no_stage()
