# SPDX-License-Identifier: Apache-2.0
"""Lowering is shown marked copies of equations; the equations themselves are JAX's, and stay as they are."""

from types import SimpleNamespace

import jax

from hlotag import _compat
from hlotag.tagging import marks


def test_a_marker_tells_contexts_of_one_address_apart():
    """Contexts are known by address, so those of equations that are gone must not be."""
    marker = marks.Marker()
    (equation,) = jax.make_jaxpr(lambda x: x + 1)(1.0).jaxpr.eqns
    entries = [{"k": str(number)} for number in range(30)]
    for metadata in entries:
        program = SimpleNamespace(eqns=[equation.replace(ctx=_compat.tracing.with_metadata(equation.ctx, metadata))])
        assert len(list(marker.mark(program).eqns)) == 1
    assert [row.forward for row in marker.table] == entries
