# SPDX-License-Identifier: Apache-2.0
"""Audits of what the compilers for GPU and TPU make of a program."""

from __future__ import annotations

import jax
import pytest

import hlo_programs
import hlotag
from compilers import Compiler
from hlotag.audit import Audit, TagState


def audited(compiler: Compiler, name: str, **options) -> Audit:
    function, arguments = hlo_programs.program(name)
    jax.clear_caches()  # What JAX traced before, for another test, has the devices of that.
    with hlotag.stage(rules=[hlotag.Rule({"k": "v"}, op="*")], **options):
        return hlotag.audit(compiler.lower(function, *arguments))


def test_no_tag_is_lost(compiler):
    before, after = (audited(compiler, "mix", hlo=hlo) for hlo in (False, True))
    assert before.lost
    assert after.lost == []
    assert [tag for tag in after.tags if tag.state == TagState.RESTORED]


@pytest.mark.parametrize("name", ["mlp", "rnn"])
def test_the_modules_that_the_compiler_dumps_are_read(compiler, name):
    assert audited(compiler, name).notes == []
