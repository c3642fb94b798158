# SPDX-License-Identifier: Apache-2.0
"""Keys that no compiler reads and that look like one that a compiler reads."""

import linecache
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.xla_metadata import set_xla_metadata

import hlotag
from hlotag.tagging import keys

X = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)


def entered(attrs):
    with hlotag.set_xla_metadata(**attrs):  # THE LINE
        pass


@pytest.mark.parametrize(
    "write",
    [
        lambda attrs: hlotag.tag(X, attrs),  # THE LINE
        lambda attrs: hlotag.tag(X, {"k": "v"}, grad=attrs),  # THE LINE
        lambda attrs: hlotag.tagged(attrs)(jnp.sin),  # THE LINE
        lambda attrs: hlotag.set_xla_metadata(X, **attrs),  # THE LINE
        lambda attrs: hlotag.Rule(attrs, op="sine"),  # THE LINE
        lambda attrs: hlotag.xla_metadata_call(jnp.sin, **attrs),  # THE LINE
        lambda attrs: hlotag.xla_metadata_call2(jnp.sin, {"k": "v"}, ad_metadata=attrs),  # THE LINE
        lambda attrs: jax.make_jaxpr(lambda x: set_xla_metadata(jnp.sin(x), **attrs))(X),  # THE LINE
        entered,
    ],
)
def test_a_key_like_one_that_xla_reads_warns_once_at_the_line_that_tags(write):
    with hlotag.stage(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(2):
            write({"_scheduling_group": "1"})
    assert [(w.category, w.filename) for w in caught] == [(hlotag.KeyIgnored, __file__)]
    assert "'_scheduling_group'" in str(caught[0].message) and "did you mean '_scheduling_group_id'?" in str(caught[0].message)
    assert linecache.getline(__file__, caught[0].lineno).endswith("# THE LINE\n")


@pytest.mark.parametrize(
    ("name", "value", "known"),
    [
        ("group", "7", "_scheduling_group_id"),
        ("compute_type", "host", "_xla_compute_type"),
        ("compute_type", "bfloat16", ""),
        ("must_fuse", "a", "MUST_FUSE"),
        ("inlinable", "false", "inlineable"),
        ("stream", "main", ""),
        ("group", "forward", ""),
        ("remat_group", "7", ""),
        *((name, "1", "") for name in ("layer", "block", "tag", "k", "id", "name", "_scheduling_group_id")),
    ],
)
def test_the_key_that_was_probably_meant(name, value, known):
    assert keys.meant(name, value) == known


def test_a_registered_key_is_not_taken_for_another(monkeypatch):
    monkeypatch.setattr(keys, "_registered", {})
    assert keys.meant("group", "7")
    hlotag.register_key("group")
    assert not keys.meant("group", "7")
