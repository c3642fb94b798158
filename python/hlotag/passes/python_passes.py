# SPDX-License-Identifier: Apache-2.0
"""Passes written in Python."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
import traceback
import typing
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, overload

from hlotag._util.arguments import check_text, show
from hlotag.errors import ArgumentError
from hlotag.passes import syntax
from hlotag.passes.syntax import PassInfo, PassOption

if TYPE_CHECKING:
    from jaxlib.mlir import ir

PassT = TypeVar("PassT", bound="Callable[..., Any]")

module_of: dict[str, str] = {}
"""By pass, the Python module that registered it."""

_qualname_of: dict[str, str] = {}
_runs: dict[str, Callable[[ir.Module, Mapping[str, Any]], None]] = {}
_versions: Counter[str] = Counter()

_TYPES = {
    bool: "bool",
    int: "int",
    float: "float",
    str: "string",
    tuple[str, ...]: "list of strings",
    list[str]: "list of strings",
}
_CHOICE = re.compile(r"[\w.-]+")
_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@overload
def register_pass(pass_: PassT, *, name: str | None = None) -> PassT: ...
@overload
def register_pass(*, name: str | None = None) -> Callable[[PassT], PassT]: ...
def register_pass(pass_: Any = None, *, name: str | None = None) -> Any:
    """Registers a pass written in Python; also a decorator.

    The pass gets the `ir.Module` (of `jax.extend.mlir`) and changes it in place; the module's context and an unknown location
    are entered. If the pass raises, the whole pipeline is undone, and the exception is the cause of the `PassError`. The pass
    must not keep the module or its operations after it returns.

    A pass replaces an earlier one of the same name, module and qualified name, as when a notebook's cell runs again. The new
    pass takes effect with the next `enable` or `stage`.

    Args:
        pass_: A function of a module, or a frozen dataclass whose objects are functions of a module. The dataclass's fields are
            the pass's options, of type bool, int, float, str, tuple[str, ...], list[str] or a Literal of strings, each with a
            default; `max_uses: int = 3` is `{max-uses=3}` in a pipeline. `field(metadata={"description": ...})` describes one.
        name: The name in pipelines; by default the name of the class or the function, with `CountDots` as `count-dots`. It
            hides a pass of MLIR's with that name.

    Returns:
        `pass_`; or a decorator, if `pass_` is not given.

    Raises:
        ArgumentError: `pass_` is neither; a field has no default or an unsupported type; another pass has the name; or the name
            is not legal in pipelines.

    Examples:
        >>> @hlotag.register_pass(name="count-sines")
        ... def count_sines(module):
        ...     print(str(module).count("stablehlo.sine"))
        >>> with hlotag.stage("count-sines"):
        ...     program = jax.jit(jnp.sin).lower(1.0)
        1
    """
    if pass_ is None:
        return lambda decorated: register_pass(decorated, name=name)
    options = _options_of(pass_)
    argument = name if name is not None else _WORD_START.sub("-", pass_.__name__).lower().replace("_", "-")
    _check_name(argument)
    place = pass_.__module__, pass_.__qualname__
    if argument in _runs and place != (module_of.get(argument), _qualname_of.get(argument)):
        raise ArgumentError(f"there is already a pass named '{argument}'")
    summary, _, description = (inspect.getdoc(pass_) or "").partition("\n")
    summary = summary.rstrip(".") or f"{pass_.__qualname__} of {pass_.__module__}"
    syntax.register(PassInfo(argument, summary, description.strip(), options))
    _runs[argument] = functools.partial(_run_with_options, pass_) if isinstance(pass_, type) else lambda module, _: pass_(module)
    module_of[argument], _qualname_of[argument] = place
    _versions[argument] += 1
    return pass_


def fingerprint() -> str:
    """The replaced passes, and how often each was replaced. Distinguishes stages with equal pipeline texts."""
    return ",".join(f"{name}:{version}" for name, version in sorted(_versions.items()) if version > 1)


def _options_of(pass_: Any) -> tuple[PassOption, ...]:
    if not isinstance(pass_, type):
        if not callable(pass_) or not hasattr(pass_, "__name__"):
            raise ArgumentError(f"a pass must be a function or a frozen dataclass, got {show(pass_)}")
        return ()
    parameters = getattr(pass_, "__dataclass_params__", None)
    if parameters is None or not parameters.frozen or not any("__call__" in vars(base) for base in pass_.__mro__):
        raise ArgumentError(f"{pass_.__name__} must be a frozen dataclass with a method __call__(self, module)")
    types = typing.get_type_hints(pass_)
    return tuple(_option(pass_.__name__, field, types[field.name]) for field in dataclasses.fields(pass_) if field.init)


def _option(owner: str, field: dataclasses.Field[Any], hint: Any) -> PassOption:
    where = f"{owner}.{field.name}"
    if not _NAME.fullmatch(field.name):
        raise ArgumentError(f"{where} is no name for an option: use lower-case letters, digits and '_'")
    default: Any = field.default
    if field.default_factory is not dataclasses.MISSING:
        default = field.default_factory()
    if default is dataclasses.MISSING:
        raise ArgumentError(f"{where}: an option needs a default")
    type_ = _type_of(where, hint)
    expected = list | tuple if type_ == "list of strings" else str if "|" in type_ else hint
    if not isinstance(default, expected) or (type(default) is bool and hint is not bool):
        raise ArgumentError(f"{where}: the default {default!r} is not of type {type_}")
    text = syntax.write(list(default) if isinstance(default, tuple) else default)
    return PassOption(field.name.replace("_", "-"), type_, text, str(field.metadata.get("description", "")))


def _type_of(where: str, hint: Any) -> str:
    """The name of an option's type in pipelines."""
    if hint in _TYPES:
        return _TYPES[hint]
    choices = typing.get_args(hint)
    if typing.get_origin(hint) is typing.Literal and len(choices) > 1 and all(_CHOICE.fullmatch(str(c)) for c in choices):
        return "|".join(choices)
    raise ArgumentError(
        f"{where}: an option is a bool, int, float, str, tuple[str, ...], list[str] or Literal of words, not {hint!r}"
    )


def _run_with_options(pass_: Any, module: ir.Module, given: Mapping[str, Any]) -> None:
    """Runs a pass that is a dataclass, with the options that are not at their default."""
    hints = typing.get_type_hints(pass_)
    fields = {name.replace("-", "_"): value for name, value in given.items()}
    pass_(**{name: tuple(value) if hints[name] == tuple[str, ...] else value for name, value in fields.items()})(module)


def run(name: str, module: ir.Module, options: Mapping[str, Any]) -> tuple[Exception, str] | None:
    """Runs a registered pass. Returns what it raised, and the reason of the failure as text; None if it succeeded."""
    from jaxlib.mlir import ir

    try:
        with module.context, ir.Location.unknown():
            _runs[name](module, options)
    except Exception as error:
        # Without the frames of this function and of the caller.
        for _ in range(2):
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
        return error, "".join([*traceback.format_exception_only(error), _line_of(error)]).strip()
    return None


def _line_of(error: BaseException) -> str:
    """The line of the pass that raised; empty if the pass did not begin."""
    frame = next(iter(traceback.extract_tb(error.__traceback__, limit=1)), None)
    return f"  in {frame.name} at {frame.filename}:{frame.lineno}" if frame else ""


def _check_name(argument: Any) -> None:
    """Raises unless pipelines can name the pass, and hlotag has no pass of this name."""
    if not isinstance(argument, str):
        raise ArgumentError(f"the name of a pass must be a string, got {show(argument)}")
    check_text("the name of a pass", argument)
    if not _NAME.fullmatch(argument):
        raise ArgumentError(
            f"{argument!r} is no name for a pass: use lower-case letters, digits, '-' and '_', and begin with a letter"
        )
    if argument.startswith("hlotag-"):
        raise ArgumentError(f"{argument!r} is no name for a pass: 'hlotag-' is reserved for hlotag's own")
