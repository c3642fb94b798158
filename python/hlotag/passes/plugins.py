# SPDX-License-Identifier: Apache-2.0
"""Passes in C++ that others write: the headers to build them with, and loading what was built."""

from __future__ import annotations

import os
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from hlotag._util.arguments import check_text, path_of
from hlotag.errors import ArgumentError, HlotagError
from hlotag.host import connection

_GROUP = "hlotag.passes"

library_of: dict[str, str] = {}
"""The library that each pass of a plugin is from."""


def get_include() -> str:
    """The directory to give to a C++ compiler with `-I` when a plugin is built.

    Besides headers it has, in `hlotag/src`, the sources of the classes that passes are made of. They are compiled into each
    plugin, so that only C functions cross between it and hlotag: the two need not be built by the same compiler.

    Returns:
        Its path.

    Raises:
        HlotagError: This hlotag was not installed with headers.

    Examples:
        >>> command = ["c++", "-shared", "-fPIC", "-I", hlotag.get_include(), "my_passes.cpp", "-o", "my_passes.so"]
    """
    directory = Path(__file__).absolute().parent.parent / "include"
    if not (directory / "hlotag" / "src").is_dir():
        raise HlotagError(f"this hlotag has no headers in {directory}: install it with pip")
    return str(directory)


def load_pass_plugin(plugin: str | os.PathLike[str]) -> tuple[str, ...]:
    """Makes the passes of a plugin known to pipelines, for as long as the process lives.

    Args:
        plugin: The path of a shared library; or the name of an entry point in the group `hlotag.passes` of an installed package,
            which stands for such a path or for a function that gives it.

    Returns:
        The names of the plugin's passes. Loading it once more does nothing and returns them again.

    Raises:
        ArgumentError: There is no such library or entry point, it is no plugin, it was built for another version of hlotag,
            or one of its passes has a name that is taken; then none of them is registered.
        IncompatibleJaxlibError: hlotag cannot work with the installed jaxlib.

    Examples:
        >>> hlotag.load_pass_plugin("my_passes.so")
        Traceback (most recent call last):
        hlotag.errors.ArgumentError: 'my_passes.so' is neither a file nor an entry point ...
    """
    path = Path(_find(str(path_of("plugin", plugin)))).absolute()
    check_text("plugin", str(path))
    if not os.path.isfile(path):  # False also of a name that is too long for one.
        raise ArgumentError(f"{path}: there is no such file")
    connection.ensure()
    from hlotag import _core

    try:
        names = tuple(_core.load_plugin(str(path.resolve())))
    except _core.PluginError as error:
        raise ArgumentError(str(error)) from None
    library_of.update(dict.fromkeys(names, str(path)))
    return names


def _find(plugin: str) -> str:
    if os.sep in plugin:
        return plugin
    found = entry_points(group=_GROUP)
    # An installed package's first: what lies in the current directory must not take its place.
    if plugin not in found.names and os.path.isfile(plugin):
        return plugin
    if plugin not in found.names:
        known = ", ".join(sorted(found.names)) or "none"
        raise ArgumentError(
            f"{plugin!r} is neither a file nor an entry point {_GROUP!r} of an installed package (those installed: {known})"
        )
    try:
        target: Any = found[plugin].load()
        path: Any = target() if callable(target) else target
        return os.fspath(path)
    except Exception as error:
        raise ArgumentError(f"the entry point {plugin!r} ({found[plugin].value}) failed: {error!r}") from error
