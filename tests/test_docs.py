# SPDX-License-Identifier: Apache-2.0
"""Every code block of the documentation runs, and prints what the page says. Lines and paragraphs are short."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

import hlotag
import requires
from hlotag import errors

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MOST_COLUMNS, MOST_LINES = 120, 6


def run(page: Path, directory: Path) -> subprocess.CompletedProcess[str]:
    # A reader has one device of the CPU, unless the page says otherwise.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("XLA_", "JAX_"))} | {
        "JAX_PLATFORMS": "cpu",
        "COLUMNS": "80",
    }
    command = [sys.executable, str(Path(__file__).with_name("run_page.py")), str(page)]
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, timeout=300, check=False)


def has_code(page: Path) -> bool:
    return any(f"```{language}" in page.read_text() for language in ("python", "console"))


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if has_code(page)], ids=lambda page: page.stem)
def test_code_of_page(page, tmp_path):
    if page.stem == "libraries":
        requires.libraries("optax", "flax", "equinox", "haiku", "keras", "numpyro", extra="examples")
    if page.stem in ("cpp_api", "writing_a_pass"):
        requires.headers()
    done = run(page, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]


def test_scripts_name_test_files_that_exist():
    scripts = [ROOT / "Makefile", *(ROOT / "tools").glob("*.sh"), *(ROOT / "tools").glob("*.py")]
    named = {name for script in scripts for name in re.findall(r"\btests/\w+\.py", script.read_text(encoding="utf-8"))}
    assert not [name for name in named if not (ROOT / name).exists()]
    assert len(named) > 10


def test_the_front_page_has_the_version():
    assert f"version {hlotag.__version__};" in (ROOT / "docs" / "index.md").read_text()


def test_api_page_has_every_public_name():
    page = (ROOT / "docs" / "api.md").read_text()
    missing = [name for name in hlotag.__all__ if not re.search(rf"^::: hlotag\b.*\.{name}$", page, re.MULTILINE)]
    assert not missing


def too_long(text: str) -> list[str]:
    """The lines and paragraphs of a page that are too long. A table's row is one line, and a list of `::: name` no paragraph."""
    lines = text.splitlines()
    long = [f"line {n}: {len(line)} columns" for n, line in enumerate(lines, 1) if len(line) > MOST_COLUMNS and line[0] != "|"]
    for token in MarkdownIt().enable("table").parse(text):
        if token.type == "paragraph_open" and not lines[token.map[0]].startswith(":::"):
            first, last = token.map
            long += [f"line {first + 1}: a paragraph of {last - first} lines"] * (last - first > MOST_LINES)
    return long


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda page: page.stem)
def test_lines_and_paragraphs_are_short(page):
    assert not too_long(page.read_text(encoding="utf-8"))


TROUBLESHOOTING = ROOT / "docs" / "troubleshooting.md"
ERRORS = [name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)]


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_and_its_entry_in_troubleshooting_link_to_each_other(name):
    entry = re.search(rf"^### `{name}`$(.*?)(?=^###? )", TROUBLESHOOTING.read_text(), re.MULTILINE | re.DOTALL)
    assert entry and (f"(api.md#hlotag.{name})" in entry[1] or name == "HlotagError")
    assert f"(troubleshooting.md#{name.lower()})" in (ROOT / "docs" / "api.md").read_text()


def messages() -> list[str]:
    """Each text in the package's sources, `...` for what is put into it."""
    texts = []
    for path in (ROOT / "python" / "hlotag").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                texts.append("".join(part.value if isinstance(part, ast.Constant) else "..." for part in node.values))  # pyright: ignore[reportCallIssue]
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
    return [*texts, *(path.read_text() for path in (ROOT / "cpp" / "lib").rglob("*.cpp"))]


def test_troubleshooting_quotes_messages_that_there_are():
    quoted = re.findall(r"^#### `(.*)`$", TROUBLESHOOTING.read_text(), re.MULTILINE)
    known = messages()
    parts = {text: [part.strip(" :;,") for part in text.split("...")] for text in quoted}
    assert len(parts) > 20
    assert not [text for text, found in parts.items() if not any(all(part in message for part in found) for message in known)]
