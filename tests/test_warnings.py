# SPDX-License-Identifier: Apache-2.0
"""Warnings name the line of the user's that they are about."""

import warnings

import jax
import jax.numpy as jnp

import hlotag
from hlotag.lowering import hlo_stage, staging
from programs import X


def fail_once(run):
    """`run_passes` that fails the first time."""
    failures = [hlotag.PassError("p", [])]

    def failing(*args, **options):
        if failures:
            raise failures.pop()
        return run(*args, **options)

    return failing


def test_warnings_point_at_lines_of_the_user(monkeypatch, set_xla_metadata):
    monkeypatch.setattr(hlo_stage, "_warned", set())

    def lower(function):
        return jax.jit(function).lower(X)

    def scheduled(x):
        y = set_xla_metadata(jnp.sin(x), _scheduling_group_id=1)
        return set_xla_metadata(jnp.tan(jnp.cos(y)), _scheduling_group_id=1)

    lines = scheduled.__code__.co_firstlineno + 1, lower.__code__.co_firstlineno + 1
    before = jax.jit(lambda x: set_xla_metadata(jnp.sin(x), k="v")).trace(X)
    try:
        hlotag.enable(on_error="warn")
        with warnings.catch_warnings(record=True, action="always") as caught:
            lower(scheduled)
            lower(lambda x: set_xla_metadata(x, k="v") + 1)
            before.lower()
            hlotag.enable(f"{hlotag.DEFAULT_PIPELINE},hlotag-verify", on_error="warn")
            monkeypatch.setattr(staging, "run_or_raise", fail_once(staging.run_or_raise))
            lower(lambda x: jnp.sin(x))
            lower(lambda x: set_xla_metadata(jnp.sin(x), k="v")).compile({"xla_disable_all_hlo_passes": True})
    finally:
        hlotag.disable()
    assert len(caught) == 5 and {warning.filename for warning in caught} == {__file__}
    assert caught[0].lineno in range(lines[0], lines[0] + 2) and caught[3].lineno == lines[1]
