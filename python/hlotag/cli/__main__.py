# SPDX-License-Identifier: Apache-2.0
"""Runs `hlotag` as `python -m hlotag.cli`."""

import sys

from hlotag.cli import main

sys.exit(main())
