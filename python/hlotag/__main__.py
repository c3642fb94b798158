# SPDX-License-Identifier: Apache-2.0
"""The command `python -m hlotag`."""

import sys

from hlotag.cli import main

sys.exit(main())
