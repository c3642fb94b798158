# SPDX-License-Identifier: Apache-2.0
"""The documentation is true: code runs and prints what the page says, names are there, and made pages are up to date."""

import ast
import doctest
import inspect
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from markdown_it import MarkdownIt
from record import findings, read

import hlotag
import requires
from hlotag import errors
from hlotag.mlir.modules import new_context, parse_module
from hlotag.passes.syntax import Element
from hlotag.tagging import keys

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# Programs that hold what a page says, in the form of a page.
PROGRAMS = [ROOT / "tests" / "libraries.md", ROOT / "tests" / "job.md"]
MOST_COLUMNS, MOST_LINES = 120, 6

WITH_CODE = [page for page in [*PAGES, *PROGRAMS] if re.search("```(python|console)", page.read_text())]


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.stem)
def test_code_of_page(page, tmp_path):
    if page.stem == "libraries":
        requires.libraries("optax", "flax", "equinox", "haiku", "keras", "numpyro", extra="examples")
    if page.stem == "recipes":
        requires.libraries("flax", "lit", "filecheck", extra="examples,test")
    # A reader has one device of the CPU, unless the page says otherwise.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("XLA_", "JAX_"))}
    environment |= {"JAX_PLATFORMS": "cpu", "COLUMNS": "80"}
    command = [sys.executable, str(Path(__file__).with_name("run_page.py")), str(page)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


EXPLAINED = [name for name in hlotag.__all__ if inspect.isfunction(getattr(hlotag, name))] + ["Rule"]


@pytest.mark.filterwarnings("error::hlotag.KeyIgnoredWarning")
@pytest.mark.parametrize("name", EXPLAINED)
def test_the_example_of_a_docstring_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(keys, "_registered", {})
    names = {"hlotag": hlotag, "jax": jax, "jnp": jnp}
    (found,) = doctest.DocTestFinder(recurse=False).find(getattr(hlotag, name), name, globs=names)
    assert found.examples, "no example"
    said = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(found, out=said.append)
    hlotag.disable()
    assert not said, "".join(said)


@pytest.mark.parametrize("tool", ["generate_pass_docs", "reliability", "keys_page", "patches_page"])
def test_a_made_page_is_up_to_date(tool):
    made = runpy.run_path(str(ROOT / "tools" / f"{tool}.py"))
    assert made["PAGE"].read_text(encoding="utf-8") == made["render"](), f"run tools/{tool}.py"


def test_every_pass_shows_its_ir_and_describes_its_options():
    for info in runpy.run_path(str(ROOT / "tools" / "generate_pass_docs.py"))["own_passes"]():
        assert all(text and not text.endswith(".") for text in (info.summary, *(o.description for o in info.options))), info.name


def test_the_record_of_reliability_shows_nothing_broken():
    outcomes, kept = read(), [one["kept"] for found in findings().values() for one in found]
    assert set(findings()) <= set(outcomes)
    assert not {name: o for name, o in outcomes.items() if o.crashes or o.wrong or o.losses or not (o.inputs or o.faults)}
    assert sum(o.seconds for name, o in outcomes.items() if name.startswith("Fuzzing")) >= 3600
    for path, _, test in (one.partition("::") for one in kept):
        assert f"\ndef {test}(" in (ROOT / path).read_text() if test else (ROOT / path).is_file()


BEFORE_AND_AFTER = re.compile(
    r"Before(?:, with `(?P<options>.*)`)?:\n\n```mlir\n(?P<before>.*?)```\n\nAfter:\n\n```mlir\n(?P<after>.*?)```", re.DOTALL
)
FRAGMENT = "func.func @f(%x: tensor<f32>, %y: tensor<f32>, %i: tensor<i32>) {{\n{}\nreturn\n}}"


def in_full(text):
    """Text that may be a part of a function, as a module with the locations that it names."""
    with new_context():
        module = parse_module(text if "func.func" in text else FRAGMENT.format(text))
        printed = str(module.operation.get_asm(enable_debug_info=True, use_local_scope=True))
    return re.sub(r' loc\("-":\d+:\d+\)', "", printed)


@pytest.mark.parametrize("name", [info.name for info in hlotag.list_passes() if info.name.startswith("hlotag-")])
def test_a_pass_does_to_the_ir_what_its_description_shows(name):
    (info,) = (info for info in hlotag.list_passes() if info.name == name)
    shown = BEFORE_AND_AFTER.search(info.description)
    assert shown, "no IR before and after"
    key, _, value = (shown["options"] or "").partition("=")
    element = Element(name, {key: [value] if key == "keys" else value} if key else {})
    assert in_full(hlotag.run_passes(in_full(shown["before"]), str(element))) == in_full(shown["after"])


def test_files_that_pages_and_scripts_name_exist():
    files = [ROOT / "Makefile", ROOT / "CONTRIBUTING.md", *PAGES, *(ROOT / "tools").glob("*.sh"), *(ROOT / "tools").glob("*.py")]
    text = "\n".join(file.read_text() for file in files)
    named = set(re.findall(r"\b(?:cpp|python|tests|tools|lit_tests|fuzz)/[\w./]+\.\w+", text))
    assert len(named) > 60
    assert not {name for name in named if not (ROOT / name).exists() and not name.endswith(".so")}


def test_the_recipe_has_the_rules_that_ship():
    assert (ROOT / "examples" / "maxtext.toml").read_text() in (ROOT / "docs" / "recipes.md").read_text()


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
def test_errors_and_troubleshooting_link_to_each_other(name):
    entry = re.search(rf"^### `{name}`$(.*?)(?=^###? )", TROUBLESHOOTING.read_text(), re.MULTILINE | re.DOTALL)
    where = f"hlotag.{name}" if name in hlotag.__all__ else f"hlotag.errors.{name}"
    assert entry and (f"(api.md#{where})" in entry[1] or name == "HlotagError")
    assert f"(troubleshooting.md#{name.lower()})" in (ROOT / "docs" / "api.md").read_text()


def messages() -> list[str]:
    """Each text in the package's sources, `...` for what is put into it."""
    texts = []
    for path in (ROOT / "python" / "hlotag").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            texts.append("".join(str(part.value) if isinstance(part, ast.Constant) else "..." for part in parts))
    return [*texts, *(path.read_text() for path in (ROOT / "cpp" / "lib").rglob("*.cpp"))]


def test_troubleshooting_quotes_messages_that_there_are():
    quoted = re.findall(r"^#### `(.*)`$", TROUBLESHOOTING.read_text(), re.MULTILINE)
    known = messages()
    parts = {text: [part.strip(" :;,") for part in text.split("...")] for text in quoted}
    assert len(parts) > 20
    assert not [text for text, found in parts.items() if not any(all(part in message for part in found) for message in known)]
