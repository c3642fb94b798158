# SPDX-License-Identifier: Apache-2.0
"""The connection of hlotag's C++ passes to the MLIR inside the running jaxlib.

The passes call functions of MLIR's C API through a table. jaxlib's library contains the functions and does not export them: the
library's symbol table gives their addresses. A child process tries the functions of a jaxlib that no test of hlotag's ran with.
"""

from __future__ import annotations

import threading

from hlotag._text import list_some
from hlotag._util.forks import free_in_children
from hlotag.mlir import library, symbols, trial
from hlotag.mlir.library import Library, find_library, incompatible

# Functions that a later MLIR renamed and did not change: by the name in functions.def, the names to try instead.
RENAMED: dict[str, tuple[str, ...]] = {}

# A signal handler may use hlotag too, and connect a second time.
_lock = free_in_children(threading.RLock())
_ready = False


def ensure() -> None:
    """Makes the C++ passes ready for use. Later calls do nothing.

    The first call in a process loads jaxlib's MLIR and reads its symbol table, in about 30 ms. Raises IncompatibleJaxlibError if
    jaxlib is missing or cannot be used. The message says why, and what to install.
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
    found = find_library()
    offsets = _read_offsets(found)
    if found.version not in library.TRIED:
        trial.run(found, offsets)
    try:
        missing = _core.install(symbols.addresses_of(found.path, offsets))
    except symbols.LibraryError as error:
        raise incompatible(found, str(error)) from error
    if missing:
        raise incompatible(found, f"these functions could not be resolved: {', '.join(missing)}")


def _read_offsets(found: Library) -> dict[str, int]:
    from hlotag import _core

    required = _core.required_symbols()
    try:
        known = symbols.read_symbols(found.path, [*required, *(other for names in RENAMED.values() for other in names)])
    except symbols.LibraryError as error:
        raise incompatible(found, str(error)) from error
    names = {name: next((n for n in (name, *RENAMED.get(name, ())) if n in known), None) for name in required}
    if missing := sorted(name for name, other in names.items() if other is None):
        raise incompatible(found, f"it lacks functions of MLIR's C API that hlotag calls: {list_some(missing, 5)}")
    return {name: known[other] for name, other in names.items() if other is not None}
