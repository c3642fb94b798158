# SPDX-License-Identifier: Apache-2.0
"""The types of `hlotag.compare`, which says whether tags help."""

from hlotag.comparisons.model import Amount, Compared, Difference, Outcome, Trend
from hlotag.comparisons.variants import Variant, grid
from hlotag.comparisons.views import Comparison

__all__ = ["Amount", "Compared", "Comparison", "Difference", "Outcome", "Trend", "Variant", "grid"]
