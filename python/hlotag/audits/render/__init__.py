# SPDX-License-Identifier: Apache-2.0
"""How is an audit rendered? As a table, JSON, SARIF, a page, a figure or a graph."""
