# SPDX-License-Identifier: Apache-2.0
"""The connection of hlotag's C++ passes to the MLIR inside the running jaxlib.

The passes call functions of MLIR's C API through a table. jaxlib's library contains the functions and does not export them: the
library's symbol table gives their addresses. A child process tries the functions once per build of jaxlib; the user's cache
directory stores the addresses.
"""

from __future__ import annotations

import threading

from hlotag._text import count
from hlotag._util.forks import free_in_children
from hlotag.mlir import symbols, trial
from hlotag.mlir.cache import Cache
from hlotag.mlir.library import Library, find_library, incompatible

# Functions that a later MLIR renamed and did not change: by the name in functions.def, the names to try instead.
RENAMED: dict[str, tuple[str, ...]] = {}
_MAX_NAMED = 5  # missing functions in a message; the error has all of them

# A signal handler may use hlotag too, and connect a second time.
_lock = free_in_children(threading.RLock())
_ready = False


def ensure() -> None:
    """Makes the C++ passes ready for use. Later calls do nothing.

    The first call in a process loads jaxlib's MLIR and reads the offsets from the cache, in a few milliseconds. The first call
    for a build of jaxlib also reads its symbol table and runs a trial in a child process, in about a second. Raises
    IncompatibleJaxlibError if jaxlib is missing or cannot be used. The message says why, and what to install.
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
    library = find_library()
    cache = Cache(library)
    offsets = cache.load()
    if offsets is not None and _install(library, offsets) is None:
        return
    offsets = _read_offsets(library)
    trial.run(library, offsets)
    problem = _install(library, offsets)
    if problem is not None:
        raise incompatible(library, problem)
    cache.store(offsets)


def _install(library: Library, offsets: dict[str, int]) -> str | None:
    """Fills the table of functions; returns the problem if it fails."""
    from hlotag import _core

    try:
        missing = _core.install(symbols.addresses_of(library.path, offsets))
    except symbols.LibraryError as error:
        return str(error)
    return f"these functions could not be resolved: {', '.join(missing)}" if missing else None


def _read_offsets(library: Library) -> dict[str, int]:
    from hlotag import _core

    required = _core.required_symbols()
    others = [other for name in required for other in RENAMED.get(name, ())]
    try:
        found = symbols.read_symbols(library.path, [*required, *others])
    except symbols.LibraryError as error:
        raise incompatible(library, str(error)) from error
    named = {name: next((n for n in (name, *RENAMED.get(name, ())) if n in found), None) for name in required}
    offsets = {name: found[known] for name, known in named.items() if known is not None}
    missing = sorted(set(required) - offsets.keys())
    if missing:
        listed = missing if len(missing) <= _MAX_NAMED else [*missing[:_MAX_NAMED], f"and {len(missing) - _MAX_NAMED} more"]
        functions = count(len(missing), "function")
        reason = f"it lacks {functions} of MLIR's C API that hlotag calls:\n    " + "\n    ".join(listed)
        raise incompatible(library, reason, missing)
    return offsets
