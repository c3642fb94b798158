# SPDX-License-Identifier: Apache-2.0
"""The version of hlotag."""

from importlib.metadata import version

VERSION = version("hlotag")
