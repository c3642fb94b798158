# SPDX-License-Identifier: Apache-2.0
"""The table of derivatives against what this JAX emits."""

import importlib.util
import sys
from pathlib import Path

import pytest
from jax import lax

TOOL = Path(__file__).parents[1] / "tools" / "derivatives.py"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("derivatives", TOOL)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_table_has_what_jax_emits(tool):
    assert tool.update(tool.read()) == []


def test_a_row_is_what_the_derivative_emits(tool):
    function, args = lax.add, (tool.array(3, 4), tool.array(1, 4))
    row = tool.emitted("add", tool.differentiated(function, (1,)), args)
    assert {tool._text(name, types) for name, types in row.items()} == {"^<reduce_sum", "^reshape>"}


def test_rows_say_which_types_an_operation_has(tool):
    assert tool.read()["dot_general"]["dot_general"].takes
