# SPDX-License-Identifier: Apache-2.0
"""Lowering is shown one marked equation, which is changed for the next: JAX must have used up each before it asks for another."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import jax
import pytest
from jax.experimental.xla_metadata import set_xla_metadata
from jax.extend.core import jaxpr_as_fun

import hlotag
from hlotag import _compat
from programs import FORWARD_MODE, PROGRAMS, TRANSFORMS


def emptied(marked_equations: Callable) -> Callable[..., Iterator[Any]]:
    """Shows a copy of each marked equation, and takes all out of it when the next is asked for: who uses it then raises."""

    def run(equations, *args):
        for shown, equation in zip(marked_equations(equations, *args), equations, strict=True):
            if shown is equation:
                yield equation
                continue
            marked = copy.copy(shown)
            marked.source_info = source = copy.copy(shown.source_info)
            source.name_stack = names = copy.copy(source.name_stack)
            yield marked
            for part in (names, source, marked):
                for name in part.__slots__:
                    object.__delattr__(part, name)

    return run


def lowered(program: str, transform: str) -> str:
    function, args = PROGRAMS[program]

    def tagged(*args):
        with set_xla_metadata(block="tagged"):
            return hlotag.tag(function(*args), {"value": "tagged"}) ** 2

    with hlotag.stage():
        return jax.jit(TRANSFORMS[transform](tagged)).lower(*args).as_text(debug_info=True)


# JAX itself refuses forward mode of a custom_vjp function.
CASES = [(p, t) for p in PROGRAMS for t in ("value_and_grad", "hessian") if not (p == "custom_vjp" and t in FORWARD_MODE)]


@pytest.mark.parametrize(("program", "transform"), CASES)
def test_jax_uses_a_marked_equation_up_before_it_asks_for_the_next(monkeypatch, program, transform):
    texts = []
    for show in (_compat.marked_equations, emptied(_compat.marked_equations)):
        monkeypatch.setattr(_compat, "marked_equations", show)
        texts.append(lowered(program, transform))
    plain, emptied_meanwhile = texts
    assert "tagged" in plain
    assert emptied_meanwhile == plain


def test_a_marked_equation_that_is_kept_is_noticed(monkeypatch):
    show = emptied(_compat.marked_equations)
    monkeypatch.setattr(_compat, "marked_equations", lambda *args: iter(list(show(*args))))
    with pytest.raises(AttributeError):
        lowered("mlp", "value_and_grad")


def test_equations_stay_as_they_are():
    with hlotag.stage(), set_xla_metadata(k="v"):
        jaxpr = jax.make_jaxpr(lambda x: jax.numpy.sin(x) * 2)(1.0)

    def parts():
        return [(id(e), *(id(getattr(e, name)) for name in e.__slots__), str(e.source_info.name_stack)) for e in jaxpr.eqns]

    before = parts()
    with hlotag.stage():
        text = jax.jit(jaxpr_as_fun(jaxpr)).lower(1.0).as_text()
    assert 'k = "v"' in text
    assert parts() == before


def test_what_is_no_equation_is_refused():
    with pytest.raises(TypeError, match=r"expected an equation of JAX's, got <object object"):
        list(_compat.marked_equations([object()], lambda _: None, lambda: None))
