# SPDX-License-Identifier: Apache-2.0
"""The examples in the docstrings of public functions run, and print what they say."""

import doctest
import inspect

import jax
import jax.numpy as jnp
import pytest

import hlotag
from hlotag.tagging import keys

PUBLIC = {name: getattr(hlotag, name) for name in hlotag.__all__}
EXPLAINED = [name for name, value in PUBLIC.items() if inspect.isfunction(value)] + ["Rule"]


@pytest.mark.filterwarnings("error::hlotag.KeyIgnored")
@pytest.mark.parametrize("name", EXPLAINED)
def test_the_example_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(keys, "_registered", {})
    (found,) = doctest.DocTestFinder(recurse=False).find(PUBLIC[name], name, globs={"hlotag": hlotag, "jax": jax, "jnp": jnp})
    assert found.examples, "no example"
    said = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(found, out=said.append)
    hlotag.disable()
    assert not said, "".join(said)
