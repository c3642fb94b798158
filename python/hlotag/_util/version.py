# SPDX-License-Identifier: Apache-2.0
"""Which version of hlotag is this?"""

from importlib.metadata import version

VERSION = version("hlotag")
