# SPDX-License-Identifier: Apache-2.0
"""The types of `hlotag.compare`, which says whether tags help."""

from hlotag.comparisons.comparison import Comparison
from hlotag.comparisons.variants import Variant, grid
from hlotag.results.compared import Amount, Difference, Outcome, Trend

__all__ = ["Amount", "Comparison", "Difference", "Outcome", "Trend", "Variant", "grid"]
