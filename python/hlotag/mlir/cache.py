# SPDX-License-Identifier: Apache-2.0
"""The cache for each build of jaxlib: the offsets of its functions, after a successful trial."""

from __future__ import annotations

import json
import os
import stat
from typing import Any

from hlotag._util.files import replace
from hlotag.mlir.library import Library

_SCHEMA = 5
_MAX_CACHE_FILE = 1 << 20


def cache_directory() -> str | None:
    """The directory of the cache; None without a home directory."""
    chosen = os.environ.get("HLOTAG_CACHE_DIR")
    if chosen:
        return os.path.abspath(chosen)
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # required by the XDG specification
        base = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "hlotag") if os.path.isabs(base) else None


class Cache:
    """The cache file of one library.

    A file that cannot be read or trusted counts as absent. Only successes are stored: a failure may be temporary (out of memory,
    a timeout), so the next process tries again.
    """

    def __init__(self, library: Library) -> None:
        self._library = library
        directory = cache_directory()
        self._path: str | None = None
        if directory is None:
            return
        import hashlib

        # The key is the path, not the build: an upgraded jaxlib overwrites the file of its predecessor.
        place = f"{library.path}\n{os.path.dirname(os.path.abspath(__file__))}"
        name = hashlib.sha256(place.encode(errors="surrogateescape")).hexdigest()[:24]
        self._path = os.path.join(directory, f"{name}.json")

    def load(self) -> dict[str, int] | None:
        """Returns the offsets, or None if there is no valid file for this build."""
        if self._path is None:
            return None
        try:
            document = json.loads(read_own_file(self._path))
            content = document["content"]
            if document["sha256"] != _digest(content) or content["identity"] != self._identity():
                return None
            return _check_offsets(content["offsets"])
        except (OSError, ValueError, KeyError, TypeError, RuntimeError, RecursionError):
            return None

    def store(self, offsets: dict[str, int]) -> None:
        """Writes the file; does nothing if it cannot be written."""
        if self._path is None:
            return
        try:
            content = {"identity": self._identity(), "offsets": offsets}
            text = json.dumps({"content": content, "sha256": _digest(content)}, indent=1, sort_keys=True)
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            replace(self._path, text.encode())
        except (OSError, RuntimeError):
            return

    def _identity(self) -> dict[str, Any]:
        library = self._library
        return {
            "schema": _SCHEMA,
            "jaxlib": library.version,
            "library": library.path,
            "size": library.size,
            "mtime_ns": library.mtime_ns,
            "functions": _fingerprint(),
        }


def read_own_file(path: str) -> bytes:
    """Reads a small regular file that belongs to this user and that nobody else can write.

    Raises ValueError for another one, OSError.
    """
    # Windows has neither these flags nor these modes.
    flags = sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK"))
    fd = os.open(path, os.O_RDONLY | flags)
    with os.fdopen(fd, "rb") as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_CACHE_FILE:
            raise ValueError("not a cache file")
        if os.name == "posix" and (status.st_uid != os.geteuid() or status.st_mode & 0o022):
            raise ValueError("others can write this file")
        return file.read(_MAX_CACHE_FILE)


def _fingerprint() -> str:
    """Identifies the list of functions and the build of `_core`, on which the offsets and the trial depend."""
    import hashlib

    from hlotag import _core

    status = os.stat(str(_core.__file__))
    names = _core.required_symbols()
    text = "\n".join([str(status.st_size), str(status.st_mtime_ns), *names])
    return hashlib.sha256(text.encode()).hexdigest()


def _digest(content: Any) -> str:
    import hashlib

    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _check_offsets(offsets: Any) -> dict[str, int]:
    """Raises ValueError unless `offsets` maps exactly the required functions to plausible numbers."""
    from hlotag import _core

    if not isinstance(offsets, dict) or offsets.keys() != set(_core.required_symbols()):
        raise ValueError("not the required functions")
    if not all(type(offset) is int and 0 < offset < 1 << 63 for offset in offsets.values()):
        raise ValueError("an offset is out of range")
    return offsets
