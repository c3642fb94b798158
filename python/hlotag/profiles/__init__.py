# SPDX-License-Identifier: Apache-2.0
"""The types of `hlotag.profile`, which says how much time the operations with each tag take."""

from hlotag.profiles.blocks import Profiles
from hlotag.profiles.profile import Profile
from hlotag.results.times import Hot, Limits, Row

__all__ = ["Hot", "Limits", "Profile", "Profiles", "Row"]
