# SPDX-License-Identifier: Apache-2.0
"""Text and bytes that would end the process are refused; a program is tried in a child process once, and JAX's own never."""

from __future__ import annotations

import subprocess

import jax
import numpy as np
import pytest
from jaxlib import _hlo

import hlotag
from hlotag import ParseError, XlaError
from hlotag.host.modules import to_bytecode
from hlotag.xla import _trial, inputs
from xla_programs import ADD_HLO, ADD_STABLEHLO, SUM, add_on

BRANCH = "branch { a = f32[2] parameter(0)\n b = f32[2] parameter(1)\n ROOT r = f32[2] add(a, b) }\n"
TUPLE = "ENTRY main { p = (f32[2], f32[3]) parameter(0)\n"
FATAL = {
    "tuple index too large": TUPLE + "ROOT g = f32[2] get-tuple-element(p), index=5 }",
    "negative tuple index": TUPLE + "ROOT g = f32[2] get-tuple-element(p), index=-1 }",
    "element of an array": "ENTRY main { p = f32[2] parameter(0)\n ROOT g = f32[2] get-tuple-element(p), index=0 }",
    "signed replica-id": "ENTRY main { ROOT g = s32[] replica-id() }",
    "signed partition-id": "ENTRY main { ROOT g = s32[] partition-id() }",
    "branches of two parameters": BRANCH
    + "ENTRY main { p = pred[] parameter(0)\n x = f32[2] parameter(1)\n"
    + "ROOT c = f32[2] conditional(p, x, x), true_computation=branch, false_computation=branch }",
    "parameters without the second": "ENTRY main { p = f32[4] parameter(0)\n ROOT q = f32[4] parameter(2) }",
    "layout of another parameter count": "ENTRY main { ROOT p = f32[2] parameter(0) }",
    # Which of these ends the process depends on the version; all are refused.
    "reshape": "ENTRY main { p = f32[4] parameter(0)\n ROOT g = f32[3] reshape(p) }",
    "dynamic-reshape": "ENTRY main { p = f32[4] parameter(0)\n n = s32[] parameter(1)\nROOT g = f32[<=3] dynamic-reshape(p, n) }",
    "async-done": "ENTRY main { p = f32[4] parameter(0)\n ROOT g = f32[3] async-done(p) }",
}
HEADERS = {"layout of another parameter count": ", entry_computation_layout={(f32[2]{0}, s32[])->f32[2]{0}}"}


@pytest.fixture(autouse=True)
def nothing_is_known(monkeypatch, tmp_path):
    monkeypatch.setenv("HLOTAG_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(_trial, "_passed", set())


@pytest.fixture
def children(monkeypatch):
    """The child processes that are started."""
    started = []
    run = subprocess.run
    monkeypatch.setattr(_trial.subprocess, "run", lambda *args, **options: started.append(args) or run(*args, **options))
    return started


@pytest.mark.parametrize("kind", FATAL)
def test_what_would_end_the_process_is_refused(client, kind):
    with pytest.raises(ParseError, match=r"would end the process when XLA reads it: .|has a syntax error: ."):
        client.compile_and_load(f"HloModule m{HEADERS.get(kind, '')}\n\n{FATAL[kind]}\n")


def test_a_message_has_the_words_of_xla(client):
    with pytest.raises(ParseError, match=r"(?s)replica-id must have a shape of u32\[\], but s32\[\] is.*Correct the instruction"):
        client.compile_and_load(f"HloModule m\n\n{FATAL['signed replica-id']}\n")


def test_objects_of_jaxlib_are_tried_too(client):
    made = _hlo.hlo_module_from_text(f"HloModule m\n\n{FATAL['negative tuple index']}\n")
    for given in (made, _hlo.XlaComputation(made.as_serialized_hlo_module_proto()), made.as_serialized_hlo_module_proto()):
        with pytest.raises(ParseError, match="would end the process when XLA reads it: SIGSEGV"):
            client.compile_and_load(given)


def test_damaged_bytecode_is_tried(client, children):
    with hlotag.host.modules.new_context():
        bytecode = to_bytecode(hlotag.host.modules.parse_module(ADD_STABLEHLO))
    assert client.compile_and_load(bytecode).execute(add_on(client))[0].tolist() == SUM
    assert len(children) == 2  # to read and to compile


def test_a_program_that_dies_while_it_is_compiled_is_refused(client, monkeypatch):
    monkeypatch.setattr(_trial, "why_not", lambda task, **_: "" if task == "read" else "Check failed: x")
    with pytest.raises(XlaError, match="would end the process when XLA compiles it: Check failed: x\nCorrect"):
        client.compile_and_load(ADD_HLO)


def test_a_program_is_tried_once(client, children, monkeypatch):
    for expected in (2, 2):
        client.compile_and_load(ADD_HLO)
        assert len(children) == expected
    monkeypatch.setattr(_trial, "_passed", set())  # as in another process
    client.compile_and_load(ADD_HLO)
    assert len(children) == 2
    client.compile_and_load(ADD_HLO.replace("sum", "total"))
    assert len(children) == 4


def test_the_memory_has_an_end(monkeypatch, tmp_path):
    monkeypatch.setattr(_trial, "_REMEMBERED", 3)
    for number in range(5):
        _trial._remember(f"{number:064}")
    assert (tmp_path / "xla-trials").read_text().split() == [f"{number:064}" for number in (2, 3, 4)]


def test_what_jax_made_is_not_tried(client, children):
    x = np.float32([1, 2, 3])
    for given in (
        jax.jit(lambda x: x + 1).lower(x),
        jax.export.export(jax.jit(lambda x: x + 1))(x),
        hlotag.xla_computation(lambda x: x + 1)(x),
    ):
        assert client.compile_and_load(given).execute([client.buffer_from_pyval(x)])[0].tolist() == [2, 3, 4]
    assert not children


def test_without_an_interpreter_there_is_no_trial(client, children, monkeypatch):
    monkeypatch.setattr(_trial.sys, "executable", "")
    assert client.compile_and_load(ADD_HLO).execute(add_on(client))[0].tolist() == SUM
    assert not children


def test_a_child_that_could_not_begin_says_nothing(tmp_path, monkeypatch):
    """Its verdict is not remembered either."""
    monkeypatch.setattr(_trial, "_SCRIPT", tmp_path / "absent.py")
    inputs.read(ADD_HLO)
    assert not _trial._passed and not (tmp_path / "xla-trials").exists()


@pytest.mark.parametrize("count", ["replica_count=-1", "num_partitions=-2", "num_partitions=0"])
def test_counts_of_a_header(client, count):
    with pytest.raises(ParseError, match=f"must be at least 1, but the HLO text has {count}"):
        client.compile_and_load(ADD_HLO.replace("HloModule add_vectors", f"HloModule m, {count}"))


@pytest.mark.parametrize(
    "layout", ["(f32[4]{0}, f32[3]{0})->f32[3]{0}", "(f32[3]{0}, s32[3]{0})->f32[3]{0}", "(f32[3]{0}, f32[3]{0})->f32[9]{0}"]
)
def test_a_layout_that_contradicts_the_program(client, layout):
    text = ADD_HLO.replace("add_vectors", f"m, entry_computation_layout={{{layout}}}")
    with pytest.raises(ParseError, match=r"(parameters|results) in entry_computation_layout are f32.*, but the program has f32"):
        client.compile_and_load(text)


def test_a_syntax_error_without_a_place(client):
    text = FATAL["branches of two parameters"].replace("(p, x, x)", "(p, x)")
    with pytest.raises(ParseError, match=r"has a syntax error: \S"):
        client.compile_and_load(f"HloModule m\n\n{text}\n")
