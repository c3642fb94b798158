# SPDX-License-Identifier: Apache-2.0
"""One matcher: a pattern means the same in the walk over a program, in `hlotag-attach`, and for collectives that XLA inserts."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import hlotag
from hlotag.hlo.inserted import Inserted, InsertedRules

FILE, LINE, SCOPE = "/dir/m_1.py", 7, "decoder/layer_3/attention"
CODE = "\n" * (LINE - 1) + "def sine(x): return jnp.sin(x)\n"
# By field and pattern, the text of `{n}`; "" for a match without names, None for no match.
TABLE: dict[tuple[str, str], str | None] = {
    ("scope", "layer_{n}"): "3",
    ("scope", "layer_{n}/attention"): "3",
    ("scope", "*/attention"): "",
    ("scope", "layer_?"): "",
    ("scope", "**/layer_3/**"): "",
    ("scope", "layer"): None,
    ("scope", "{n}/attention"): "layer_3",
    ("scope", "a*"): "",
    ("scope", "de{n}er/*"): "cod",
    ("scope", "layer_{n}/mlp"): None,
    ("source", "m_{n}.py:7"): "1",
    ("source", "m_1.py"): "",
    ("source", "/dir/{n}.py"): "m_1",
    ("source", "m_1.py:8"): None,
    ("source", "*r/m_?.py:*"): "",
    ("source", "_1.py"): None,
}


def rule_of(field: str, pattern: str, **options: Any) -> hlotag.Rule:
    value = "{n}" if "{" in pattern else ""
    return hlotag.Rule({"k": f"={value}"}, **{field: pattern}, **options)


@pytest.mark.parametrize(("field", "pattern"), TABLE)
def test_a_pattern_means_the_same_everywhere(field, pattern):
    sine = {"jnp": jnp}
    exec(compile(CODE, FILE, "exec"), sine)
    with hlotag.stage(rules=[rule_of(field, pattern)]), warnings.catch_warnings(action="ignore"):
        text = jax.jit(jax.named_scope(SCOPE)(sine["sine"])).lower(1.0).as_text()
    location = f'loc("jit(f)/{SCOPE}/sin"("{FILE}":{LINE}:3))'
    module = f"func.func @main(%0: tensor<f32>) -> tensor<f32> {{\n%1 = stablehlo.sine %0 : tensor<f32> {location}\n"
    module += "return %1 : tensor<f32>\n}"
    attached = hlotag.run_passes(module, f"hlotag-attach{{rules={{[{rule_of(field, pattern).as_attribute()}]}}}}")
    collective: Any = Inserted(None, "all-gather", SCOPE, "forward", (FILE, LINE, 3))  # type: ignore[arg-type]
    inserted = InsertedRules({"rule 1": rule_of(field, pattern, inserted=True)}).entries_for(collective)

    expected = TABLE[field, pattern]
    entry = f'k = "={expected}"'
    assert [(entry if expected is not None else "k =") in found for found in (text, attached)] == [expected is not None] * 2
    assert inserted == ({} if expected is None else {"k": f"={expected}"})
