# SPDX-License-Identifier: Apache-2.0
"""The types of `hlotag.profile`, which says how much time the operations with each tag take."""

from hlotag.profiles.blocks import Profiles
from hlotag.profiles.limits import Limits
from hlotag.profiles.model import Hot, Row
from hlotag.profiles.profile import Profile

__all__ = ["Hot", "Limits", "Profile", "Profiles", "Row"]
