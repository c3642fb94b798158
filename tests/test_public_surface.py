# SPDX-License-Identifier: Apache-2.0
"""What `hlotag` shows: public names, the types of results, and one kind of error for a bad argument."""

import inspect

import numpy as np
import pytest

import hlotag
from hlotag.tagging import keys

X = np.ones((2, 2), np.float32)


def test_dir_has_public_names_only():
    names = dir(hlotag)
    assert not [name for name in names if name.startswith("_")]
    modules = {name for name in names if inspect.ismodule(getattr(hlotag, name))}
    assert modules == {"audits", "profiles", "xla"} and set(hlotag.__all__) == set(names) and hlotag.__version__


def test_types_of_results_are_public(monkeypatch):
    monkeypatch.setattr(keys, "_registered", {})
    assert isinstance(hlotag.list_passes()[0], hlotag.PassInfo)
    options = [option for info in hlotag.list_passes() for option in info.options]
    assert isinstance(options[0], hlotag.PassOption)
    assert isinstance(hlotag.register_key("a_key_of_the_public_surface"), hlotag.Key)
    with pytest.raises(hlotag.PassError) as raised:
        hlotag.run_passes("module attributes {hlotag.tags = 3 : i32} {}", "hlotag-resolve")
    assert all(isinstance(diagnostic, hlotag.Diagnostic) for diagnostic in raised.value.diagnostics)


def test_the_parts_of_an_audit_are_public():
    with hlotag.stage():
        audit = hlotag.audit(lambda x: hlotag.tag(x @ x, {"k": "v"}), X)
    (tag,) = audit.tags
    assert (type(audit), type(tag), type(tag.state)) == (hlotag.Audit, hlotag.Tag, hlotag.TagState)
    assert isinstance(tag.op, hlotag.Op) and all(isinstance(step, hlotag.Step) for step in tag.steps)
