# SPDX-License-Identifier: Apache-2.0
"""The programs `hlotag` and `hlotag-opt`."""

from hlotag.cli.commands import main, opt_main

__all__ = ["main", "opt_main"]
