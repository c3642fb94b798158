# SPDX-License-Identifier: Apache-2.0
"""Which versions are supported is said once and the same everywhere; another one is refused with what to install."""

import importlib
import re
import tomllib
from pathlib import Path

import jax
import pytest

import hlotag
from hlotag._compat.supported import REQUIREMENT, explain
from hlotag.mlir.library import SUPPORTED_JAXLIB

ROOT = Path(__file__).parent.parent


def test_the_range_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert REQUIREMENT in project["dependencies"]
    assert f"jax{SUPPORTED_JAXLIB}".replace(" ", "") == REQUIREMENT
    for version in ("3.11", "3.12", "3.13"):
        assert f"Programming Language :: Python :: {version}" in project["classifiers"]
        text = (ROOT / f"tools/constraints-{version}.txt").read_text()
        assert re.search(r"^jax(>=|==)", text, re.MULTILINE)


def test_a_jax_without_tags_is_refused(run_python):
    code = "import sys, jax; sys.modules['jax._src.xla_metadata'] = None\nimport hlotag; hlotag.enable()"
    done = run_python(code, may_fail=True)
    error = done.stderr[done.stderr.index("hlotag.errors.IncompatibleJaxlibError") :]
    assert done.returncode == 1 and f"pip install '{REQUIREMENT}'" in error and "xla_metadata" in error


def test_a_python_without_its_lock_is_refused(run_python):
    done = run_python("import sys; sys._is_gil_enabled = lambda: False; import hlotag", may_fail=True)
    assert done.returncode == 1 and "ImportError: hlotag needs" in done.stderr and "PYTHON_GIL=1" in done.stderr


def test_what_jax_lacks_is_explained_and_what_hlotag_lacks_is_not():
    for use, error in [  # Only what JAX lacks is an incompatible JAX; what hlotag lacks is a defect of hlotag's.
        (lambda: jax.no_such_name, hlotag.IncompatibleJaxlibError),
        (lambda: importlib.import_module("jax.no_such_module"), hlotag.IncompatibleJaxlibError),
        (lambda: hlotag.errors.no_such_name, AttributeError),
        (lambda: hlotag.Rule({"k": "v"}, op="sine").no_such_name, AttributeError),
        (lambda: importlib.import_module("hlotag.no_such_module"), ModuleNotFoundError),
    ]:
        with pytest.raises(error, match="no_such") as caught, explain():
            use()
        assert type(caught.value) is error
