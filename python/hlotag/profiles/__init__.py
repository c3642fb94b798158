# SPDX-License-Identifier: Apache-2.0
"""The types of `hlotag.profile`, which says how much time the operations with each tag take."""

from hlotag.profiles.blocks import Profiles
from hlotag.profiles.comparison import Change, changes
from hlotag.profiles.model import Hot, Row, Timing
from hlotag.profiles.record import profile_both
from hlotag.profiles.views import Profile

__all__ = ["Change", "Hot", "Profile", "Profiles", "Row", "Timing", "changes", "profile_both"]
