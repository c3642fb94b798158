# SPDX-License-Identifier: Apache-2.0
"""How wide tables and listings are, on a terminal and elsewhere."""

import io

from hlotag._util.columns import columns
from hlotag.reports.audit_table import fit_rows, plain_text

LIMITS = {"name": 16, "bytes": 9, "source": 14}
ROWS = [("n" * 40, "8.0 MiB", "s" * 40), ("m", "12.0 GiB", "t")]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_only_a_terminal_has_a_width(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")  # Runners of tests and jobs set it, too.
    assert columns(Terminal()) == 80 and columns(io.StringIO()) > 10_000


def test_a_narrow_terminal_cuts_names_and_no_numbers():
    narrow = plain_text(fit_rows(LIMITS, ROWS, 40, numbers={"bytes"}), 40)
    assert "8.0 MiB" in narrow and "12.0 GiB" in narrow and "…" in narrow
    wide = plain_text(fit_rows(LIMITS, ROWS, 1000, numbers={"bytes"}), 1000)
    assert all(cell in wide for row in ROWS for cell in row)
