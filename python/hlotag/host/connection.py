# SPDX-License-Identifier: Apache-2.0
"""Connects hlotag's C++ passes with the MLIR inside the running jaxlib.

The passes call functions of MLIR's C API through a table. It is filled in one of two ways, by two *hosts*:

- `symbols`: jaxlib's own functions, which it contains but does not export. Where they lie is read from the symbol table of its
  library.
- `bindings`: functions that go through jaxlib's public Python bindings. The same results, slower.

Each is tried out in a child process once, and what was found is remembered per build in the user's cache directory. The second
serves where the first cannot be had; the environment variable `HLOTAG_HOST` chooses one.
"""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import threading
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hlotag._util.files import replace
from hlotag.errors import HlotagError, IncompatibleJaxlibError, SlowHost

SUPPORTED_JAXLIB = ">=0.10.2, <0.13"

_SCHEMA = 2
_MAX_CACHE_FILE = 1 << 20
_PROBE_TIMEOUT_S = 120
_LIBRARIES = ("libjax_common.so", "libjax_common.dylib")

_lock = threading.Lock()
_ready = False


@dataclass(frozen=True)
class Host:
    """The library that holds jaxlib's MLIR, or the extension with its Python bindings.

    Attributes:
        version: jaxlib's version.
        library: Path of the shared library.
        size: Its size in bytes.
        mtime_ns: When it was written.
    """

    version: str
    library: str
    size: int
    mtime_ns: int

    def __str__(self) -> str:
        """For messages."""
        return f"{self.version} in {self.library}"


class _NoTrialError(IncompatibleJaxlibError):
    """There was no trial: it says nothing about this jaxlib."""


def ensure() -> None:
    """Makes the C++ passes ready for use; does nothing when they are.

    The first call in a process loads jaxlib's MLIR and takes the offsets from the cache, a few milliseconds. The first call
    ever for a build of jaxlib also reads its symbol table and runs a trial in a child process, about a second. Where that
    shows that its functions cannot be called, a `SlowHost` warning says so, and the passes go through its Python bindings.

    Raises:
        IncompatibleJaxlibError: jaxlib is missing, or can be used in neither way; or not in the one that the environment
            variable `HLOTAG_HOST` asks for.
        HlotagError: `HLOTAG_HOST` is neither `symbols` nor `bindings`.
    """
    global _ready  # noqa: PLW0603
    if _ready:
        return
    with _lock:
        if not _ready:
            _connect()
            _ready = True


def find_host() -> Host:
    """Finds the library of the installed jaxlib, and has it loaded.

    Returns:
        The library.

    Raises:
        IncompatibleJaxlibError: There is no jaxlib, or it is built without the one library that holds its MLIR.
    """
    bindings = find_bindings()
    directory = os.path.dirname(os.path.dirname(os.path.dirname(bindings.library)))
    for name in _LIBRARIES:
        path = os.path.join(directory, name)
        try:
            status = os.stat(path)
        except OSError:
            continue
        return Host(bindings.version, path, status.st_size, status.st_mtime_ns)
    raise _incompatible(f"{bindings.version} in {directory}", f"it has no {' or '.join(_LIBRARIES)}")


def find_bindings() -> Host:
    """Finds the extension with the installed jaxlib's Python bindings of MLIR, and has it loaded.

    Returns:
        The extension.

    Raises:
        IncompatibleJaxlibError: There is no jaxlib, or it has no such bindings.
    """
    try:
        import jaxlib  # noqa: F401
        from jaxlib.mlir import ir  # noqa: F401  (loads the library)
        from jaxlib.mlir._mlir_libs import _mlir
        from jaxlib.version import __version__ as version

        path = os.path.realpath(str(_mlir.__file__))
        status = os.stat(path)
    except (ImportError, OSError) as error:
        raise _incompatible("none that can be imported", str(error)) from error
    return Host(version, path, status.st_size, status.st_mtime_ns)


def cache_directory() -> str | None:
    """The directory for what is remembered about builds of jaxlib; None when there is no place for one."""
    chosen = os.environ.get("HLOTAG_CACHE_DIR")
    if chosen:
        return os.path.abspath(chosen)
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # what the XDG specification asks for
        base = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "hlotag") if os.path.isabs(base) else None


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
    host = find_host()
    cache = _Cache(host, "symbols")
    offsets = cache.load()
    if offsets is not None and _install(host, offsets) is None:
        return
    offsets = _read_offsets(host)
    _probe(host, offsets)
    problem = _install(host, offsets)
    if problem is not None:
        raise _incompatible(host, problem)
    cache.store(offsets)


def _connect_bindings(instead_of: IncompatibleJaxlibError | None = None) -> None:
    """Fills the table with functions that go through the bindings.

    Args:
        instead_of: Why the faster way is not taken.

    Raises:
        IncompatibleJaxlibError: The bindings do not work either.
    """
    from hlotag import _core

    try:
        host = find_bindings()
        cache = _Cache(host, "bindings")
        if cache.load() is None:
            _try_bindings(host, cache)
        try:
            _core.install_bindings()
        except (AttributeError, ImportError) as error:
            raise _incompatible(host, f"its Python bindings of MLIR are not those that hlotag knows: {error}") from error
    except IncompatibleJaxlibError as error:
        if instead_of is None:
            raise
        raise IncompatibleJaxlibError(f"{error}\n  tried first: {instead_of.reason}", instead_of.missing) from instead_of


def _try_bindings(host: Host, cache: _Cache) -> None:
    try:
        _probe(host, None)
    except _NoTrialError:
        return  # Unlike functions at addresses, a public API need not be tried before it is used.
    cache.store({})


def _slow_host_text(why: IncompatibleJaxlibError) -> str:
    return (
        f"hlotag cannot call the MLIR inside jaxlib directly and goes through its Python bindings: the same results, slower.\n"
        f"  reason: {why.reason}\n"
        "  HLOTAG_HOST=bindings chooses them without this warning; HLOTAG_HOST=symbols makes it an error that says what to do"
    )


def _install(host: Host, offsets: dict[str, int]) -> str | None:
    """Fills the table of functions; returns what hinders it."""
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
        raise _incompatible(host, str(error)) from error
    missing = sorted(set(_core.required_symbols()) - offsets.keys())
    if missing:
        count = "1 function" if len(missing) == 1 else f"{len(missing)} functions"
        reason = f"it lacks {count} of MLIR's C API that hlotag calls:\n    " + "\n    ".join(missing)
        raise _incompatible(host, reason, missing)
    return offsets


def _incompatible(
    found: Host | str, reason: str, missing: Sequence[str] = (), kind: type[IncompatibleJaxlibError] = IncompatibleJaxlibError
) -> IncompatibleJaxlibError:
    message = (
        f"hlotag cannot work with this jaxlib.\n  found: jaxlib {found}\n  reason: {reason}\n"
        f"  supported: the official Linux wheels of jaxlib {SUPPORTED_JAXLIB}\n"
        "  what to do: install a supported one (pip install 'jax>=0.10.2,<0.13'), or, if yours is newer, a newer hlotag"
    )
    return kind(message, missing, reason)


def _fingerprint() -> str:
    """What the table looks like on our side: offsets and verdict hold for one list of functions and one build of _core."""
    import hashlib

    from hlotag import _core

    status = os.stat(str(_core.__file__))
    names = _core.required_symbols()
    text = "\n".join([str(status.st_size), str(status.st_mtime_ns), *names])
    return hashlib.sha256(text.encode()).hexdigest()


class _Cache:
    """What is remembered about one library, in one file: that it passed the trial, and where its functions are.

    Whatever is wrong with the file makes it absent, never an error.

    Only what passed the trial is stored: a failure may have been the machine's (out of memory, a timeout), and a process that
    cannot use hlotag has the time to find out again.
    """

    def __init__(self, host: Host, kind: Literal["symbols", "bindings"]) -> None:
        self._host = host
        self._kind = kind
        directory = cache_directory()
        self._path: str | None = None
        if directory is None:
            return
        import hashlib

        # By place and not by build: an upgraded jaxlib replaces the file of the one before.
        place = f"{host.library}\n{os.path.dirname(os.path.abspath(__file__))}"
        name = hashlib.sha256(place.encode(errors="surrogateescape")).hexdigest()[:24]
        self._path = os.path.join(directory, f"{name}.json")

    def load(self) -> dict[str, int] | None:
        """The offsets, or None when there is no file that can be trusted for this very build."""
        if self._path is None:
            return None
        try:
            document = json.loads(read_own_file(self._path))
            content = document["content"]
            if document["sha256"] != _digest(content) or content["identity"] != self._identity():
                return None
            if content["verdict"] != "ok":
                return None
            return _checked_offsets(content["offsets"]) if self._kind == "symbols" else {}
        except (OSError, ValueError, KeyError, TypeError, RuntimeError, RecursionError):
            return None

    def store(self, offsets: dict[str, int]) -> None:
        """Writes the file, if that is possible."""
        if self._path is None:
            return
        try:
            content = {"identity": self._identity(), "verdict": "ok", "offsets": offsets}
            text = json.dumps({"content": content, "sha256": _digest(content)}, indent=1, sort_keys=True)
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            replace(self._path, text.encode())
        except (OSError, RuntimeError):
            return

    def _identity(self) -> dict[str, Any]:
        from hlotag import _core

        host = self._host
        return {
            "schema": _SCHEMA,
            "host": self._kind,
            "jaxlib": host.version,
            "library": host.library,
            "size": host.size,
            "mtime_ns": host.mtime_ns,
            "build_id": _core.build_id(host.library) if self._kind == "symbols" else "",
            "functions": _fingerprint(),
        }


def read_own_file(path: str) -> bytes:
    """Reads a small regular file that belongs to this user and that nobody else can write.

    Raises:
        OSError: It does not exist or cannot be read.
        ValueError: It is not such a file.
    """
    # Windows has none of these flags, and other means than modes.
    flags = sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK"))
    fd = os.open(path, os.O_RDONLY | flags)
    with os.fdopen(fd, "rb") as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_CACHE_FILE:
            raise ValueError("not a cache file")
        if os.name == "posix" and (status.st_uid != os.geteuid() or status.st_mode & 0o022):
            raise ValueError("others can write this file")
        return file.read(_MAX_CACHE_FILE)


def _digest(content: Any) -> str:
    import hashlib

    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _checked_offsets(offsets: Any) -> dict[str, int]:
    """Raises ValueError unless `offsets` maps every function, and no unknown one, to a plausible number."""
    from hlotag import _core

    if not isinstance(offsets, dict) or offsets.keys() != set(_core.required_symbols()):
        raise ValueError("not the functions that are needed")
    if not all(type(offset) is int and 0 < offset < 1 << 63 for offset in offsets.values()):
        raise ValueError("an offset is out of range")
    return offsets


# `-I` keeps the child free of PYTHON* variables and the current directory; it gets this process's module path instead, so it
# sees the same jaxlib and the same hlotag.
_PROBE_CODE = (
    "import json, sys; job = json.load(sys.stdin); sys.path[:] = job['path']; from hlotag.host.probe import main; main(job)"
)


def _probe(host: Host, offsets: dict[str, int] | None) -> None:
    """Tries the functions in a child process, where a wrong one can do no harm.

    Args:
        host: Where they are.
        offsets: Those of jaxlib's functions; None for those that go through the bindings.

    Raises:
        IncompatibleJaxlibError: The trial crashed, hung, gave a wrong answer, or could not be made.
    """
    if not sys.executable:
        reason = "it was never tried on this machine, and there is no Python interpreter to do so: run `hlotag passes` once"
        raise _incompatible(host, reason, kind=_NoTrialError)
    job = json.dumps({"path": [os.path.abspath(entry) for entry in sys.path], "library": host.library, "offsets": offsets})
    try:
        child = subprocess.run(
            [sys.executable, "-I", "-c", _PROBE_CODE],
            input=job,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PROBE_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise _incompatible(host, f"a trial of its MLIR in a child process did not finish within {_PROBE_TIMEOUT_S} s") from error
    except OSError as error:
        reason = f"a trial in a child process could not be started: {error}"
        raise _incompatible(host, reason, kind=_NoTrialError) from error
    problem = _probe_problem(child)
    if problem is not None:
        raise _incompatible(host, f"a trial of its MLIR in a child process {problem}")


def _probe_problem(child: subprocess.CompletedProcess[str]) -> str | None:
    from hlotag.host.probe import SUCCESS

    if child.returncode == 0 and child.stdout.strip().endswith(SUCCESS):
        return None
    said = "\n    ".join((child.stdout + child.stderr).strip().splitlines()[-8:])
    if child.returncode >= 0:
        return f"failed (exit status {child.returncode}):\n    {said}"
    try:
        name = signal.Signals(-child.returncode).name
    except ValueError:
        name = f"signal {-child.returncode}"
    return f"crashed ({name}):\n    {said}"
