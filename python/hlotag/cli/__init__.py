# SPDX-License-Identifier: Apache-2.0
"""Which commands are there, and what do they print? The programs `hlotag` and `hlotag-opt`."""

from hlotag.cli.commands import main, opt_main

__all__ = ["main", "opt_main"]
