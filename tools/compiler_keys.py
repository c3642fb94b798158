# SPDX-License-Identifier: Apache-2.0
"""Compares the catalogue of keys with the names in the compilers' own binaries.

Run in an environment of `make test-compilers`: it has jaxlib, libtpu and JAX's plugin for CUDA. Prints the keys of the catalogue
that no binary has, and the names that look like a key of XLA's and that nobody has looked at. A key may be missing as text and be
read all the same: compilers turn a comparison with a short text into numbers.
"""

from __future__ import annotations

import mmap
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from hlotag.tagging import keys

# By package, the library in it.
LIBRARIES = {
    "jaxlib": "libjax_common.so",
    "jax_plugins.xla_cuda12": "xla_cuda_plugin.so",
    "libtpu": "libtpu.so",
}
# A whole string that XLA's attributes begin like. Keys without this prefix cannot be told from other text.
_LIKE_A_KEY = re.compile(rb"\0(_xla_[a-z0-9_]+)\0")

_TENSORFLOW = "TensorFlow's bridge writes it on its own operations"
_SILENT = "XLA's source has no such attribute, and TPU v5e's compiler made the same program with it"
# Names that are no keys for the catalogue, and why.
LOOKED_AT: Mapping[str, str] = {
    **dict.fromkeys(("_xla_device_buffer", "_xla_is_univalent", "_xla_layout", "_xla_set_breakpoint"), _SILENT),
    "_xla_disable_while_loop_copies": f"{_SILENT}; without the underscore it is a key",
    **dict.fromkeys(
        (
            *("_xla_compile_device_type", "_xla_compile_id", "_xla_connected_from_xla_computation"),
            *("_xla_connected_to_xla_computation", "_xla_context", "_xla_control_dependencies_within_xla_cluster"),
            *("_xla_has_host_transfer", "_xla_inferred_shapes", "_xla_input", "_xla_is_lifted_arg"),
            *("_xla_is_placeholder_for_arg", "_xla_is_placeholder_for_tail_oc", "_xla_lifted_arg_oc"),
            *("_xla_map_outside_compilation", "_xla_numpy_api", "_xla_oc_inputs", "_xla_oc_to_oc_node_name"),
            *("_xla_oc_to_oc_src_output", "_xla_only_arg_or_oc_input", "_xla_only_ret_or_oc_output"),
            *("_xla_original_oc_node_name", "_xla_outside_compilation", "_xla_propagate_compile_time_consts"),
            *("_xla_replica_id", "_xla_tail_outside_compilation", "_xla_token_arg_node", "_xla_token_input_nodes"),
        ),
        _TENSORFLOW,
    ),
}


def libraries() -> dict[str, Path]:
    """The installed libraries that hold a compiler, by file name."""
    found = {}
    for package, file in LIBRARIES.items():
        try:
            spec = find_spec(package)
        except ModuleNotFoundError:  # of a parent package
            continue
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            if (path := Path(folder) / file).exists():
                found[file] = path
    return found


def absent(names: Iterable[str], data: Iterable[mmap.mmap]) -> set[str]:
    """The names that none of the libraries contains."""
    left = set(names)
    for library in data:
        left = {name for name in left if library.find(name.encode()) < 0}
    return left


def names_in(library: mmap.mmap) -> Iterator[str]:
    """The strings of a library that look like a key."""
    return (match[1].decode() for match in _LIKE_A_KEY.finditer(library))


def is_known(name: str) -> bool:
    """Whether a name is in the catalogue, or somebody has looked at it. Compilers keep a part of some names as a string."""
    known = (*LOOKED_AT, *(key.name for key in keys.catalogue()))
    return keys.lookup(name) is not None or any(each.startswith(name) for each in known)


def catalogued() -> list[str]:
    """The names of the catalogue that a binary may contain: not families, and not registered ones."""
    return [key.name for key in keys.catalogue() if not key.name.endswith("*") and key.consumer != "registered"]


def opened() -> Iterator[mmap.mmap]:
    """The libraries' bytes."""
    for path in libraries().values():
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield data


def main() -> int:
    """Prints both lists; returns 1 if there is one."""
    unread = sorted(absent(catalogued(), opened()))
    new = sorted({name for data in opened() for name in names_in(data) if not is_known(name)})
    print(f"in {', '.join(libraries()) or 'no library'}:")
    print("keys of the catalogue that no compiler has:", ", ".join(unread) or "none")
    print("names that nobody has looked at:", ", ".join(new) or "none")
    return int(bool(unread or new))


if __name__ == "__main__":
    sys.exit(main())
