# SPDX-License-Identifier: Apache-2.0
"""Views of an audit: a table, JSON, SARIF, a page and a graph."""
