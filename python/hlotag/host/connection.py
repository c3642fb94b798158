# SPDX-License-Identifier: Apache-2.0
"""How do hlotag's C++ passes call the MLIR inside the running jaxlib?

The passes call functions of MLIR's C API through a table. There are two ways to fill the table, called *hosts*:

- `symbols`: functions that jaxlib's library contains but does not export. The library's symbol table gives their addresses.
- `bindings`: functions that call jaxlib's public Python bindings. The same results, slower.

A child process tries each host once per build of jaxlib; the user's cache directory stores the result. If `symbols` fails,
hlotag uses `bindings`. The environment variable `HLOTAG_HOST` selects one.
"""

from __future__ import annotations

import os
import threading
import warnings

from hlotag._util.text import count
from hlotag.errors import HlotagError, IncompatibleJaxlibError, SlowHost
from hlotag.host import library, trial
from hlotag.host.cache import Cache
from hlotag.host.library import Host, incompatible

_MAX_NAMED = 5  # missing functions in a message; the error has all of them

_lock = threading.Lock()
_ready = False


def ensure() -> None:
    """Makes the C++ passes ready for use. Later calls do nothing.

    The first call in a process loads jaxlib's MLIR and reads the offsets from the cache, in a few milliseconds. The first call
    for a build of jaxlib also reads its symbol table and runs a trial in a child process, in about a second. If the trial fails,
    the passes use jaxlib's Python bindings, and a `SlowHost` warning says so.

    Raises:
        IncompatibleJaxlibError: jaxlib is missing, or neither host works, or the host in `HLOTAG_HOST` does not work.
        HlotagError: `HLOTAG_HOST` is neither `symbols` nor `bindings`.
    """
    global _ready  # noqa: PLW0603
    if _ready:
        return
    with _lock:
        if not _ready:
            _connect()
            _ready = True


def _connect() -> None:
    from hlotag import _core

    if _core.is_installed():
        return
    chosen = os.environ.get("HLOTAG_HOST", "")
    if chosen not in ("", "symbols", "bindings"):
        raise HlotagError(f"expected 'symbols' or 'bindings' in HLOTAG_HOST, got {chosen!r}")
    if chosen == "bindings":
        _connect_bindings()
        return
    try:
        _connect_symbols()
    except IncompatibleJaxlibError as error:
        if chosen == "symbols":
            raise
        _connect_bindings(error)
        warnings.warn(_slow_host_text(error), SlowHost, stacklevel=4)


def _connect_symbols() -> None:
    host = library.find_host()
    cache = Cache(host, "symbols")
    offsets = cache.load()
    if offsets is not None and _install(host, offsets) is None:
        return
    offsets = _read_offsets(host)
    trial.run(host, offsets)
    problem = _install(host, offsets)
    if problem is not None:
        raise incompatible(host, problem)
    cache.store(offsets)


def _connect_bindings(instead_of: IncompatibleJaxlibError | None = None) -> None:
    """Fills the table with functions that call the bindings.

    Args:
        instead_of: The failure of the host `symbols`, if it was tried.

    Raises:
        IncompatibleJaxlibError: The bindings do not work either.
    """
    from hlotag import _core

    try:
        host = library.find_bindings()
        cache = Cache(host, "bindings")
        if cache.load() is None:
            _try_bindings(host, cache)
        try:
            _core.install_bindings()
        except (AttributeError, ImportError) as error:
            raise incompatible(host, f"its Python bindings of MLIR are not those that hlotag knows: {error}") from error
    except IncompatibleJaxlibError as error:
        if instead_of is None:
            raise
        raise IncompatibleJaxlibError(f"{error}\n  tried first: {instead_of.reason}", instead_of.missing) from instead_of


def _try_bindings(host: Host, cache: Cache) -> None:
    try:
        trial.run(host, None)
    except trial.NoTrialError:
        return  # A public API, unlike a call to an address, cannot crash and needs no trial.
    cache.store({})


def _slow_host_text(why: IncompatibleJaxlibError) -> str:
    return (
        f"hlotag cannot call the MLIR inside jaxlib directly and goes through its Python bindings: the same results, slower.\n"
        f"  reason: {why.reason}\n"
        "  HLOTAG_HOST=bindings selects them without this warning; HLOTAG_HOST=symbols raises an error that says what to do"
    )


def _install(host: Host, offsets: dict[str, int]) -> str | None:
    """Fills the table of functions; returns the problem if it fails."""
    from hlotag import _core

    try:
        missing = _core.install(host.library, offsets)
    except (RuntimeError, ValueError) as error:
        return str(error)
    return f"these functions could not be resolved: {', '.join(missing)}" if missing else None


def _read_offsets(host: Host) -> dict[str, int]:
    from hlotag import _core

    try:
        offsets = dict(_core.read_symbols(host.library))
    except RuntimeError as error:
        raise incompatible(host, str(error)) from error
    missing = sorted(set(_core.required_symbols()) - offsets.keys())
    if missing:
        named = missing if len(missing) <= _MAX_NAMED else [*missing[:_MAX_NAMED], f"and {len(missing) - _MAX_NAMED} more"]
        functions = count(len(missing), "function")
        reason = f"it lacks {functions} of MLIR's C API that hlotag calls:\n    " + "\n    ".join(named)
        raise incompatible(host, reason, missing)
    return offsets
