# SPDX-License-Identifier: Apache-2.0
"""What are the most flops and bytes a second that a device can do?"""

from __future__ import annotations

import os
import time
import tomllib
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from hlotag._util.progress import step
from hlotag.errors import ArgumentError, ParseError
from hlotag.results.times import OTHER, Limits

MEASURE = "measure"
"""Given as limits: measure the device."""

_FIELDS = {"flops", "bandwidth", "source"}
_SECONDS = 1.0  # of each of the two measurements
_WIDTH, _WIDE = 1024, 8192  # of a measured product on CPU, and elsewhere
_LENGTH = 1 << 25  # of a measured sum, which no cache holds


def device_kind(platform: str = "") -> str:
    """The kind of JAX's first device, or of the first one of a platform."""
    import jax

    return jax.local_devices(backend=platform or None)[0].device_kind


def find_limits(kind: str) -> Limits | None:
    """The published limits of a kind of device; None if hlotag has none."""
    return _published().get(kind)


def resolve_limits(given: Limits | str | os.PathLike[str], kind: str) -> Limits:
    """The limits that a user asks for.

    Args:
        given: Limits; "measure"; a kind of device; or a file in the form of limits.toml.
        kind: The kind of the device that ran, which a file of several may have; empty if unknown.

    Raises:
        ArgumentError: There is no such file.
        ParseError: The file has other fields, or no such kind of device.
        OSError: The file cannot be read.
    """
    if isinstance(given, Limits):
        return given
    if given == MEASURE:
        return measure_limits()
    name, published = os.fspath(given), _published()
    if name in published:
        return published[name]
    if not Path(name).exists():
        kinds = ", ".join(map(repr, published))
        raise ArgumentError(
            f"limits={name!r}: there is no such file, nor such a kind of device; expected {MEASURE!r}, {kinds} or a file"
        )
    return _of_device(read_limits(name), kind, name)


def read_limits(path: str | os.PathLike[str]) -> dict[str, Limits]:
    """Reads a file of limits, by kind of device. Raises ParseError if a field is wrong, OSError if the file cannot be read."""
    return _parse(Path(path).read_text(encoding="utf-8"), os.fspath(path))


def measure_limits() -> Limits:
    """Measures JAX's first device for two seconds: the best rate of a large product of `f32`, and of a large sum."""
    import jax
    import jax.numpy as jnp

    width = _WIDTH if jax.local_devices()[0].platform == "cpu" else _WIDE
    with step("measuring the device's limits"):
        product = _best(jax.jit(lambda x: x @ x), jnp.full((width, width), 1 / width, jnp.float32))
        # In place: on CPU, a new array's pages take longer than the sum.
        addition = _best(jax.jit(lambda x: x + 1, donate_argnums=0), jnp.zeros(_LENGTH, jnp.float32))
    read_and_written = 2 * 4 * _LENGTH
    return Limits(device_kind(), {OTHER: 2 * width**3 / product}, read_and_written / addition, "measured")


def _best(function: Callable[[Any], Any], value: Any) -> float:
    """The least seconds of a call on the value of the call before; the first call compiles."""
    value = function(value).block_until_ready()
    best, end = float("inf"), time.perf_counter() + _SECONDS
    while (start := time.perf_counter()) < end:
        value = function(value).block_until_ready()
        best = min(best, time.perf_counter() - start)
    return best


def _published() -> dict[str, Limits]:
    file = resources.files("hlotag.profiles").joinpath("limits.toml")
    return _parse(file.read_text(encoding="utf-8"), file.name)


def _of_device(found: Mapping[str, Limits], kind: str, filename: str) -> Limits:
    """Those of the device; in a file of one device, those whatever the device is."""
    if kind in found:
        return found[kind]
    if len(found) == 1:
        return next(iter(found.values()))
    raise ParseError(f"{filename}: no limits of {kind!r}; the file has {', '.join(found) or 'none'}")


def _parse(text: str, filename: str) -> dict[str, Limits]:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ParseError(f"{filename}: {error}") from None
    return {name: _limits(name, fields, filename) for name, fields in document.items()}


def _limits(name: str, fields: Any, filename: str) -> Limits:
    if not isinstance(fields, dict) or fields.keys() != _FIELDS or not isinstance(fields["flops"], dict):
        form = '["kind"] with source = "...", bandwidth = 1e12 and flops = { f32 = 1e12 }'
        raise ParseError(f"{filename}: the limits of {name!r} need the form {form}")
    for what, rate in {**fields["flops"], "bandwidth": fields["bandwidth"]}.items():
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate < float("inf"):
            raise ParseError(f"{filename}: {what} of {name!r} is {rate!r}: give a number a second, such as 1e12")
    flops = {kind: float(rate) for kind, rate in fields["flops"].items()}
    return Limits(name, flops, float(fields["bandwidth"]), str(fields["source"]))
