#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints whether the installed jaxlib has the C functions that hlotag calls, and whether they behave in a child process."""

import jax
import jaxlib.version

from hlotag import _core
from hlotag.mlir import connection, library, trial
from hlotag.mlir.symbols import read_symbols


def main() -> None:
    print(f"jax {jax.__version__}, jaxlib {jaxlib.version.__version__}")
    needed = _core.required_symbols()
    missing = sorted(set(needed) - read_symbols(library.find_library().path, needed).keys())
    print("functions missing:", missing or "none")
    found = library.find_library()
    trial.run(found, connection._read_offsets(found))
    print("the trial run in a child process: ok")


if __name__ == "__main__":
    main()
