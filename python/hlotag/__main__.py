# SPDX-License-Identifier: Apache-2.0
"""Runs the command `hlotag`: `python -m hlotag`."""

import sys

from hlotag.cli import main

sys.exit(main())
