# SPDX-License-Identifier: Apache-2.0
"""Connects hlotag's C++ passes with the MLIR inside the running jaxlib.

The passes call MLIR's C API, which jaxlib contains but does not export. Where its functions lie is read from the symbol table
of jaxlib's library, tried out once in a child process, and remembered per build in the user's cache directory.
"""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from typing import Any

from hlotag.errors import IncompatibleJaxlibError

SUPPORTED_JAXLIB = ">=0.10.2, <0.13"

_SCHEMA = 1
_MAX_CACHE_FILE = 1 << 20
_PROBE_TIMEOUT_S = 120
_LIBRARIES = ("libjax_common.so", "libjax_common.dylib")

_lock = threading.Lock()
_ready = False


@dataclass(frozen=True)
class Host:
    """The library that holds jaxlib's MLIR.

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


def ensure() -> None:
    """Makes the C++ passes ready for use; does nothing when they are.

    The first call in a process loads jaxlib's MLIR and takes the offsets from the cache, a few milliseconds. The first call
    ever for a build of jaxlib also reads its symbol table and runs a trial in a child process, about a second.

    Raises:
        IncompatibleJaxlibError: jaxlib is missing, lacks functions that the passes need, or failed the trial.
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
    try:
        import jaxlib
        from jaxlib.mlir import ir  # noqa: F401  (loads the library)
        from jaxlib.version import __version__ as version
    except ImportError as error:
        raise IncompatibleJaxlibError(_advice("none that can be imported", str(error))) from error
    directory = os.path.dirname(os.path.realpath(str(jaxlib.__file__)))
    for name in _LIBRARIES:
        path = os.path.join(directory, name)
        try:
            status = os.stat(path)
        except OSError:
            continue
        return Host(version, path, status.st_size, status.st_mtime_ns)
    raise IncompatibleJaxlibError(_advice(f"{version} in {directory}", f"it has no {' or '.join(_LIBRARIES)}"))


def dialect_registry() -> Any:
    """A registry of all dialects that JAX uses; asking for it also registers MLIR's own passes, such as `canonicalize`.

    Without JAX imported a context of jaxlib's knows neither; importing JAX takes a second, this takes a millisecond.

    Returns:
        An `ir.DialectRegistry`, to be given to `Context.append_dialect_registry`.
    """
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext

    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    return registry


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
    host = find_host()
    cache = _Cache(host)
    offsets = cache.load()
    if offsets is not None and _install(host, offsets) is None:
        return
    offsets = _read_offsets(host)
    _probe(host, offsets)
    problem = _install(host, offsets)
    if problem is not None:
        raise IncompatibleJaxlibError(_advice(f"{host.version} in {host.library}", problem))
    cache.store(offsets)


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

    found = f"{host.version} in {host.library}"
    try:
        offsets = dict(_core.read_symbols(host.library))
    except RuntimeError as error:
        raise IncompatibleJaxlibError(_advice(found, str(error))) from error
    missing = sorted(set(_core.required_symbols()) - offsets.keys())
    if missing:
        count = "1 function" if len(missing) == 1 else f"{len(missing)} functions"
        reason = f"it lacks {count} of MLIR's C API that hlotag calls:\n    " + "\n    ".join(missing)
        raise IncompatibleJaxlibError(_advice(found, reason), missing)
    return offsets


def _advice(found: str, reason: str) -> str:
    return (
        f"hlotag cannot work with this jaxlib.\n  found: jaxlib {found}\n  reason: {reason}\n"
        f"  supported: the official Linux wheels of jaxlib {SUPPORTED_JAXLIB}\n"
        "  what to do: install a supported one (pip install 'jax>=0.10.2,<0.13'), or, if yours is newer, a newer hlotag"
    )


def _fingerprint() -> str:
    """What the table looks like on our side: offsets and verdict hold for one list of functions and one build of _core."""
    import hashlib

    from hlotag import _core

    status = os.stat(str(_core.__file__))
    names = [*_core.required_symbols(), "optional:", *_core.optional_symbols()]
    text = "\n".join([str(status.st_size), str(status.st_mtime_ns), *names])
    return hashlib.sha256(text.encode()).hexdigest()


class _Cache:
    """The remembered offsets of one library, in one file. Whatever is wrong with the file makes it absent, never an error.

    Only what passed the trial is stored: a failure may have been the machine's (out of memory, a timeout), and a process that
    cannot use hlotag has the time to find out again.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
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
            document = json.loads(_read_own_file(self._path))
            content = document["content"]
            if document["sha256"] != _digest(content) or content["identity"] != self._identity():
                return None
            if content["verdict"] != "ok":
                return None
            return _checked_offsets(content["offsets"])
        except (OSError, ValueError, KeyError, TypeError, RuntimeError, RecursionError):
            return None

    def store(self, offsets: dict[str, int]) -> None:
        """Writes the file, if that is possible."""
        if self._path is None:
            return
        try:
            content = {"identity": self._identity(), "verdict": "ok", "offsets": offsets}
            text = json.dumps({"content": content, "sha256": _digest(content)}, indent=1, sort_keys=True)
            directory = os.path.dirname(self._path)
            os.makedirs(directory, mode=0o700, exist_ok=True)
            # mkstemp makes the file ours alone (0600); other processes see the old file or the whole new one.
            fd, temporary = tempfile.mkstemp(prefix=".new-", dir=directory)
            try:
                with os.fdopen(fd, "w", encoding="utf-8") as file:
                    file.write(text)
                os.replace(temporary, self._path)
            except BaseException:
                os.unlink(temporary)
                raise
        except (OSError, RuntimeError):
            return

    def _identity(self) -> dict[str, Any]:
        from hlotag import _core

        host = self._host
        return {
            "schema": _SCHEMA,
            "library": host.library,
            "size": host.size,
            "mtime_ns": host.mtime_ns,
            "build_id": _core.build_id(host.library),
            "functions": _fingerprint(),
        }


def _read_own_file(path: str) -> bytes:
    """Reads a small regular file that belongs to this user and that nobody else can write.

    Raises:
        OSError: It does not exist or cannot be read.
        ValueError: It is not such a file.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(fd, "rb") as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_CACHE_FILE:
            raise ValueError("not a cache file")
        if status.st_uid != os.geteuid() or status.st_mode & 0o022:
            raise ValueError("others can write this file")
        return file.read(_MAX_CACHE_FILE)


def _digest(content: Any) -> str:
    import hashlib

    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _checked_offsets(offsets: Any) -> dict[str, int]:
    """Raises ValueError unless `offsets` maps every required function, and no unknown one, to a plausible number."""
    from hlotag import _core

    required = set(_core.required_symbols())
    if not isinstance(offsets, dict) or not required <= offsets.keys() <= required | set(_core.optional_symbols()):
        raise ValueError("not the functions that are needed")
    if not all(type(offset) is int and 0 < offset < 1 << 63 for offset in offsets.values()):
        raise ValueError("an offset is out of range")
    return offsets


# `-I` keeps the child free of PYTHON* variables and the current directory; it gets this process's module path instead, so it
# sees the same jaxlib and the same hlotag.
_PROBE_CODE = "import json, sys; job = json.load(sys.stdin); sys.path[:] = job['path']; from hlotag._probe import main; main(job)"


def _probe(host: Host, offsets: dict[str, int]) -> None:
    """Tries the functions in a child process, where a wrong one can do no harm.

    Raises:
        IncompatibleJaxlibError: The trial crashed, hung or gave a wrong answer.
    """
    found = f"{host.version} in {host.library}"
    if not sys.executable:
        reason = "it was never tried on this machine, and there is no Python interpreter to do so: run `hlotag passes` once"
        raise IncompatibleJaxlibError(_advice(found, reason))
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
        reason = f"a trial of its MLIR in a child process did not finish within {_PROBE_TIMEOUT_S} s"
        raise IncompatibleJaxlibError(_advice(found, reason)) from error
    except OSError as error:
        raise IncompatibleJaxlibError(_advice(found, f"a trial in a child process could not be started: {error}")) from error
    problem = _probe_problem(child)
    if problem is not None:
        raise IncompatibleJaxlibError(_advice(found, f"a trial of its MLIR in a child process {problem}"))


def _probe_problem(child: subprocess.CompletedProcess[str]) -> str | None:
    from hlotag._probe import SUCCESS

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
