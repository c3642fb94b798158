# SPDX-License-Identifier: Apache-2.0
"""The keys that compilers read: the catalogue names their readers and no other, and an audit says what became of their tags."""

import importlib
from pathlib import Path

import jax
import key_probes
import pytest

import audit_truth
import hlotag
from hlotag.tagging import keys
from test_effects import ROWS

# By version of jax, what the catalogue names and its compilers do not read.
_NOT_READ = {
    "0.10": {
        *(("gpu", key) for key in ("_xla_collective_matmul", "collective_communication_domain", "collective_group_key")),
        ("gpu", "is_pipelineable"),
        *((name, key) for name in keys.BACKENDS for key in ("xla_disable_while_loop_dce", "xla_preserve_tuple_indices")),
        ("tpu", "xla_disable_while_loop_copies"),
    },
    "0.12": {("gpu", "compilation_unit")},
}


def test_there_is_a_probe_for_each_key():
    assert key_probes.missing() == set()


@pytest.mark.parametrize("key", key_probes.PROBES)
def test_a_key_is_read_by_the_compilers_that_the_catalogue_names(key):
    known = keys.lookup(key)
    assert known is not None
    read = key_probes.PLATFORM in known.seen and (key_probes.PLATFORM, key) not in _NOT_READ[jax.__version__[:4]]
    assert key_probes.is_read(key) is read


@pytest.mark.parametrize(
    "key", [key.name for key in keys.catalogue() if key_probes.PLATFORM in key.late and key_probes.PLATFORM in key.seen]
)
def test_a_key_that_is_given_back_is_read_after_that(key):
    assert key_probes.is_read_late(key) is ((key_probes.PLATFORM, key) not in _NOT_READ[jax.__version__[:4]])


def test_a_key_that_nobody_reads_is_not_seen_to_be_read():
    assert not key_probes.is_read("_mine", key_probes.PROBES["_xla_disable_loop_instr_hoisting"])


# By version of jax, the keys whose text is in no compiler: another version has it, or a probe has seen a reader.
_NO_TEXT = {
    "0.10": {
        *("collective_communication_domain", "collective_group_key", "is_pipelineable", "is_spmd_generated"),
        *(
            "original_sharding",
            "_xla_vocab_size",
            "xla.pdl_launch",
            "xla_disable_while_loop_copies",
            "xla_disable_while_loop_dce",
        ),
        *("xla_log_for_comparison", "xla_preserve_tuple_indices"),
    },
    "0.12": {"_xla_disjoint_read_write_regions", "always_sink", "xla_allow_dce_side_effecting_op"},
}


@pytest.mark.skipif(key_probes.PLATFORM != "tpu", reason="once for all compilers")
def test_the_catalogue_has_the_keys_of_the_compilers(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "tools"))
    compiler_keys = importlib.import_module("compiler_keys")
    assert compiler_keys.absent(compiler_keys.catalogued(), compiler_keys.opened()) == _NO_TEXT[jax.__version__[:4]]
    assert {n for data in compiler_keys.opened() for n in compiler_keys.names_in(data) if not compiler_keys.is_known(n)} == set()
    assert set.intersection(*_NO_TEXT.values()) == set()


@pytest.mark.parametrize("name", ["group", "offload", "must fuse", "fusion limit", "loop that runs once"])
def test_the_states_of_their_tags_are_the_true_ones(name, compiler):
    _, program, arguments, expected = ROWS[name]
    jax.clear_caches()  # What JAX traced before, for another test, has the devices of that.
    with hlotag.stage(hlo=False):
        lowered = compiler.lower(program, *arguments)
    for key in sorted({entry.partition("=")[0] for found in expected.values() for entry in found}):
        case = audit_truth.with_key(lowered, key)
        assert case.tags or key_probes.PLATFORM == "cpu"  # JAX moves nothing there.
        assert audit_truth.differences(case, audit_truth.Truth(case)) == []
