# SPDX-License-Identifier: Apache-2.0
"""Every code block of the documentation runs, and prints what the page says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import hlotag
import requires

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def run(page: Path, directory: Path) -> subprocess.CompletedProcess[str]:
    # A reader has one device of the CPU, unless the page says otherwise.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("XLA_", "JAX_"))} | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
        "JAX_PLATFORMS": "cpu",
        "COLUMNS": "80",
    }
    command = [sys.executable, str(Path(__file__).with_name("run_page.py")), str(page)]
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, timeout=300, check=False)


def has_code(page: Path) -> bool:
    return any(f"```{language}" in page.read_text() for language in ("python", "console"))


@pytest.mark.parametrize("page", [page for page in PAGES if has_code(page)], ids=lambda page: page.stem)
def test_code_of_page(page, tmp_path):
    if page.stem == "libraries":
        requires.libraries("flax", "equinox", "haiku", extra="examples")
    if page.stem == "writing_a_pass":
        requires.headers()
    done = run(page, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]


def test_api_page_has_every_public_name():
    page = (ROOT / "docs" / "api.md").read_text()
    missing = [name for name in hlotag.__all__ if not re.search(rf"^::: hlotag\b.*\.{name}$", page, re.MULTILINE)]
    assert not missing


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("```python\nprint(1)\n```\n```output\n2\n```", "found\n1"),
        ("```python\n\nraise ValueError('here')\n```", "line 3"),
        ("```console\n$ false\n```", "ended with 1"),
        ("```console\n$ echo a\nb\n```", "found\na"),
    ],
)
def test_wrong_page_is_noticed(tmp_path, text, error):
    page = tmp_path / "wrong.md"
    page.write_text(text)
    done = run(page, tmp_path)
    assert done.returncode != 0
    assert error in done.stderr
