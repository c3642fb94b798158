# SPDX-License-Identifier: Apache-2.0
"""Which versions are supported is said once and the same everywhere; another one is refused with what to install."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

from hlotag._compat.supported import REQUIREMENT
from hlotag.host.library import SUPPORTED_JAXLIB

ROOT = Path(__file__).parent.parent


def test_the_range_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert REQUIREMENT in project["dependencies"]
    assert f"jax{SUPPORTED_JAXLIB}".replace(" ", "") == REQUIREMENT
    for version in ("3.11", "3.12", "3.13"):
        assert f"Programming Language :: Python :: {version}" in project["classifiers"]
        text = (ROOT / f"tools/constraints-{version}.txt").read_text()
        assert re.search(r"^jax(>=|==)", text, re.MULTILINE)


@pytest.mark.parametrize("module", ["jax.experimental.xla_metadata", "jax._src.export"])
def test_a_jax_that_lacks_what_we_use_is_refused_with_what_to_install(run_python, module):
    code = f"import sys, jax; sys.modules[{module!r}] = None\nimport hlotag; hlotag.enable()"
    done = run_python(code)
    assert done.returncode == 1
    error = done.stderr[done.stderr.index("hlotag.errors.IncompatibleJaxlibError") :]
    assert f"pip install '{REQUIREMENT}'" in error and module.rsplit(".", 1)[-1] in error


def test_jaxs_private_api_is_used_in_one_place():
    package = ROOT / "python"
    users = {str(file.relative_to(package)) for file in package.rglob("*.py") if "jax._src" in file.read_text()}
    assert {file.rpartition("/")[0] for file in users} == {"hlotag/_compat"}


def test_each_patch_of_jax_is_in_the_docs():
    tree = ast.parse((ROOT / "python/hlotag/_compat/hooks.py").read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    modules = {alias.asname or alias.name: f"{node.module}.{alias.name}" for node in imports for alias in node.names}
    modules["VALUE_TAG"] = "jax._src.xla_metadata.xla_metadata_value_p"
    patched = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("Patch", "_SwitchingPatch"):
            owner, _, rest = ast.unparse(node.args[0]).partition(".")
            patched.add(".".join(filter(None, [modules[owner], rest, ast.literal_eval(node.args[1])])))
    listed = re.findall(r"^\| `(jax\.[\w.]+)` \|", (ROOT / "docs/compatibility.md").read_text(), re.MULTILINE)
    assert len(patched) == 15 and sorted(listed) == sorted(patched)


def test_private_names_of_jaxlib_are_used_in_one_place():
    package = ROOT / "python" / "hlotag"
    private = re.compile(r"_mlir_libs|\b_CAPIPtr|from jaxlib import .*\b_|jaxlib\._")
    users = {file.relative_to(package).parts[0] for file in package.rglob("*.py") if private.search(file.read_text())}
    assert users == {"_compat"}
