# SPDX-License-Identifier: Apache-2.0
"""The rows of audits, profiles and comparisons, and what is asked of them."""
