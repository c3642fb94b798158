# SPDX-License-Identifier: Apache-2.0
"""Views of an audit: a table, JSON, a page, a figure."""
