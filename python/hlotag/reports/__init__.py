# SPDX-License-Identifier: Apache-2.0
"""How results look: tables, JSON, SARIF, pages and timelines."""
