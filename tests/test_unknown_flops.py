# SPDX-License-Identifier: Apache-2.0
"""Do an audit and a profile name the custom calls whose flops nobody counts?"""

import json

import jax
import jax.numpy as jnp
import pytest

import hlotag
from hlotag import _compat
from hlotag.audits.unknown import note_unknown_work
from hlotag.hlo import HloModule

X = jnp.eye(8)


def decompose(x):
    return jnp.linalg.eigh(x)[0].sum() + jnp.linalg.cholesky(x).sum()


def compare_and_report(x):
    jax.debug.print("{}", x.sum())
    return jax.lax.top_k(x, 2)[0] @ jnp.ones((2, 4))


def of_flops(notes):
    return [note for note in notes if "No flops" in note]


def test_an_audit_names_calls_of_lapack(tmp_path):
    line = decompose.__code__.co_firstlineno + 1
    audit = hlotag.audit(decompose, X, effects=False)
    (note,) = of_flops(audit.notes)
    for target in ("lapack_ssyevd_ffi", "lapack_spotrf_ffi"):
        assert f"{target} (test_unknown_flops.py:{line})" in note
    assert note in json.loads(audit.to_json())["notes"] and "No flops are counted" in audit.summary()
    audit.to_html(tmp_path / "audit.html")
    assert "No flops are counted" in (tmp_path / "audit.html").read_text()


def test_a_profile_names_them(tmp_path):
    profile = hlotag.profile(jax.jit(decompose), X, steps=2, by="source")
    (note,) = of_flops(profile.notes)
    assert "lapack_ssyevd_ffi" in note and "No flops are counted" in str(profile)
    assert "No flops are counted" in profile.to_json()
    profile.to_html(tmp_path / "profile.html")
    assert "No flops are counted" in (tmp_path / "profile.html").read_text()


def test_comparisons_and_functions_of_the_host_are_not_named():
    audit = hlotag.audit(compare_and_report, X, effects=False)
    assert not of_flops(audit.notes)


CALL = """HloModule m
ENTRY main {
  x = f32[64,64] parameter(0)
  ROOT y = f32[64,64] custom-call(x), custom_call_target="TARGET", backend_config="CONFIG"
}
"""
ESTIMATE = r"{\"custom_call_config\":{\"cost_estimate\":{\"flops\":FLOPS,\"transcendentals\":0,\"bytes_accessed\":8}}}"


@pytest.mark.parametrize(
    ("target", "config", "is_named"),
    [
        ("cusolver_syevd_ffi", "", True),
        ("tpu_custom_call", "", True),
        ("tpu_custom_call", ESTIMATE.replace("FLOPS", "12"), False),
        ("tpu_custom_call", ESTIMATE.replace("FLOPS", "0"), False),
        ("AllocateBuffer", "", False),
        ("annotate_device_placement", "", False),
        ("Sharding", "", False),
    ],
)
def test_calls_are_named_unless_they_count_or_move(target, config, is_named):
    text = CALL.replace("TARGET", target).replace("CONFIG", config)
    notes = note_unknown_work(HloModule(_compat.runtime.hlo_from_text(text)))
    assert notes == ([f"No flops are counted for custom calls: {target}."] if is_named else [])
