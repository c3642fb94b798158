# SPDX-License-Identifier: Apache-2.0
"""Only what JAX lacks is an incompatible JAX; what hlotag lacks is a defect of hlotag's."""

import importlib

import jax
import pytest

import hlotag
from hlotag._compat.supported import explain


@pytest.mark.parametrize("lacks", [lambda: jax.no_such_name, lambda: importlib.import_module("jax.no_such_module")])
def test_what_jax_lacks_is_explained(lacks):
    with pytest.raises(hlotag.IncompatibleJaxlibError, match="no_such"), explain():
        lacks()


@pytest.mark.parametrize(
    "lacks",
    [
        lambda: hlotag.errors.no_such_name,
        lambda: hlotag.Rule({"k": "v"}, op="sine").no_such_name,
        lambda: importlib.import_module("hlotag.no_such_module"),
    ],
)
def test_what_hlotag_lacks_is_not(lacks):
    with pytest.raises((AttributeError, ImportError), match="no_such"), explain():
        lacks()
