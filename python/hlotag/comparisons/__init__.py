# SPDX-License-Identifier: Apache-2.0
"""The types of `hlotag.compare`, which says whether tags help."""

from hlotag.comparisons.comparison import Comparison
from hlotag.comparisons.variants import Variant, grid
from hlotag.results.compared import Amount, Compared, Difference, Outcome, Trend

__all__ = ["Amount", "Compared", "Comparison", "Difference", "Outcome", "Trend", "Variant", "grid"]
