# SPDX-License-Identifier: Apache-2.0
"""Plugins, libraries with passes in C++: how they are built and loaded."""

from __future__ import annotations

import os
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from hlotag._util.arguments import check_text, path_of
from hlotag.errors import ArgumentError, HlotagError
from hlotag.mlir import connection
from hlotag.mlir.symbols import LibraryError, read_symbols
from hlotag.passes import syntax

_GROUP = "hlotag.passes"
_ENTRY = "hlotagGetPassPlugin"

library_of: dict[str, str] = {}
"""The library that each pass of a plugin is from."""


def get_include() -> str:
    """Finds the directory for a C++ compiler's `-I` when a plugin is built.

    Its folder `hlotag/src` has the sources of the classes that passes use. Each plugin compiles them, so that plugin and hlotag
    share only C functions, and may be built by different compilers.

    Returns:
        The path of the directory.

    Raises:
        HlotagError: This hlotag was not installed with headers.

    Examples:
        >>> command = ["c++", "-shared", "-fPIC", "-I", hlotag.get_include(), ...]
    """
    directory = Path(__file__).absolute().parent.parent / "include"
    if not (directory / "hlotag" / "src").is_dir():
        raise HlotagError(f"this hlotag has no headers in {directory}: install it with pip")
    return str(directory)


def load_pass_plugin(plugin: str | os.PathLike[str]) -> tuple[str, ...]:
    """Registers the passes of a plugin for the life of the process.

    Args:
        plugin: The path of a shared library; or the name of an entry point in the group `hlotag.passes` of an installed package,
            whose value is such a path or a function that returns one.

    Returns:
        The names of the plugin's passes. Loading a plugin again does nothing and returns the same names.

    Raises:
        ArgumentError: The library or entry point does not exist, is not a plugin, was built for another version of hlotag, or has
            a pass whose name is taken. Then none of its passes is registered.
        IncompatibleJaxlibError: hlotag cannot work with the installed jaxlib.

    Examples:
        >>> hlotag.load_pass_plugin("my_passes.so")
        Traceback (most recent call last):
        hlotag.errors.ArgumentError: 'my_passes.so' is neither a file nor an entry point ...
    """
    path = Path(_find(str(path_of("plugin", plugin)))).absolute()
    check_text("plugin", str(path))
    if not os.path.isfile(path):  # Also false if the name is too long for a path.
        raise ArgumentError(f"{path}: there is no such file")
    if path.suffix == ".py":
        raise ArgumentError(
            f"{path}: import a Python file, or give it to hlotag-opt: its passes are those of hlotag.register_pass"
        )
    connection.ensure()
    from hlotag import _core

    try:
        # The dynamic loader would map a file that is cut off, and crash (SIGBUS).
        read_symbols(str(path), [_ENTRY])
        names = tuple(_core.load_plugin(str(path.resolve())))
    except (LibraryError, _core.PluginError) as error:
        raise ArgumentError(str(error)) from None
    syntax.forget()
    library_of.update(dict.fromkeys(names, str(path)))
    return names


def _find(plugin: str) -> str:
    if os.sep in plugin:
        return plugin
    found = entry_points(group=_GROUP)
    # Entry points come first: a file in the current directory must not replace an installed package.
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
