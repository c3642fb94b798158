# SPDX-License-Identifier: Apache-2.0
"""Another JAX is refused with what to install, all that needs no hooks works, and the range is the same everywhere."""

import importlib
import re
import tomllib
from pathlib import Path

import jax
import pytest

import hlotag
from hlotag._compat.supported import REQUIREMENT, explain
from hlotag.mlir.library import SUPPORTED_JAXLIB

# Breaks each hook in turn, in one interpreter: hlotag is imported anew for each.
CHILD = r"""
import sys, warnings
from pathlib import Path

import jax, jax.numpy as jnp, pytest
import hlotag
from hlotag._compat import hooks, supported

MODULE = 'func.func @main(%a: tensor<f32>) -> tensor<f32> { %0 = stablehlo.sine %a : tensor<f32> return %0 : tensor<f32> }'
HLO = 'HloModule jit_f\n\nENTRY main {\n  p = f32[] parameter(0)\n  ROOT s = f32[] sine(p), frontend_attributes={k="v"}\n}\n'
for stage in ("before_optimizations", "cpu_after_optimizations"):
    Path(f"module_0001.jit_f.{stage}.txt").write_text(HLO)

targets = []
construct = hooks.Patch.__init__

def recorded(self, owner, name, *rest, rules=""):
    targets.extend([] if rules else [(owner, name)])
    construct(self, owner, name, *rest, rules=rules)

hooks.Patch.__init__ = recorded
import hlotag.lowering.staging
hooks.Patch.__init__ = construct

def changed(*, nothing_that_was_there):
    raise AssertionError("called")

def forget():
    # `_core` and `_compat` hold state of the process.
    for module in [name for name in sys.modules if name.split(".")[0] == "hlotag"]:
        if not module.startswith(("hlotag._core", "hlotag._compat", "hlotag.errors")):
            del sys.modules[module]

def check(named):
    import hlotag

    for use in (lambda: hlotag.enable(), lambda: hlotag.stage(), lambda: hlotag.audit(jnp.sin, 1.0)):
        with pytest.raises(hlotag.errors.IncompatibleJaxlibError, match=named) as caught:
            use()
        assert all(part in str(caught.value) for part in (jax.__version__, supported.REQUIREMENT)), caught.value
    return hlotag

def passes_and_dumps_work(hlotag):
    from hlotag.audits.dumps import audit_dumps
    from hlotag.passes.rules import attach

    rules = attach([hlotag.Rule({"k": "v"}, op="sine")]) + ",hlotag-finalize"
    assert 'k = "v"' in str(hlotag.run_passes(MODULE, rules))
    assert [tag.value for tag in audit_dumps(Path(".")).tags] == ["v"]

def enabled_by_the_environment(named):
    from hlotag.lowering import environment

    with warnings.catch_warnings(record=True, action="always") as caught:
        environment.start({"HLOTAG_ENABLE": "1"})
    assert named in str(caught[0].message) and "hlotag stays off" in str(caught[0].message)

for owner, name in targets:
    there, original = vars(owner).get(name), getattr(owner, name)
    for way in ("gone", "changed"):
        if way == "changed":
            setattr(owner, name, changed)
        elif there is not None:
            delattr(owner, name)
        else:
            continue
        forget()
        named = name if way == "gone" else "nothing_that_was_there"
        try:
            broken = check(named)
            if owner is targets[0][0]:
                passes_and_dumps_work(broken)
            enabled_by_the_environment(named)
        finally:
            setattr(owner, name, there) if there is not None else delattr(owner, name)
        print(way, f"{getattr(owner, '__name__', owner)}.{name}")
"""


def test_each_hook_broken_in_turn(run_python):
    done = run_python(CHILD)
    broken = [line.split() for line in done.stdout.splitlines()]
    changed, gone = ({place for way, place in broken if way == wanted} for wanted in ("changed", "gone"))
    assert len(changed) == 10 and changed - gone == {"xla_metadata_value.bind_with_trace"}


ROOT = Path(__file__).parent.parent


def test_the_range_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert REQUIREMENT in project["dependencies"]
    assert f"jax{SUPPORTED_JAXLIB}".replace(" ", "") == REQUIREMENT
    for version in ("3.11", "3.12", "3.13"):
        assert f"Programming Language :: Python :: {version}" in project["classifiers"]
        text = (ROOT / f"tools/constraints-{version}.txt").read_text()
        assert re.search(r"^jax(>=|==)", text, re.MULTILINE)


def test_a_jax_without_tags_is_refused(run_python):
    code = "import sys, jax; sys.modules['jax._src.xla_metadata'] = None\nimport hlotag; hlotag.enable()"
    done = run_python(code, may_fail=True)
    error = done.stderr[done.stderr.index("hlotag.errors.IncompatibleJaxlibError") :]
    assert done.returncode == 1 and f"pip install '{REQUIREMENT}'" in error and "xla_metadata" in error


def test_a_python_without_its_lock_is_refused(run_python):
    done = run_python("import sys; sys._is_gil_enabled = lambda: False; import hlotag", may_fail=True)
    assert done.returncode == 1 and "ImportError: hlotag needs" in done.stderr and "PYTHON_GIL=1" in done.stderr


def test_what_jax_lacks_is_explained_and_what_hlotag_lacks_is_not():
    for use, error in [  # Only what JAX lacks is an incompatible JAX; what hlotag lacks is a defect of hlotag's.
        (lambda: jax.no_such_name, hlotag.errors.IncompatibleJaxlibError),
        (lambda: importlib.import_module("jax.no_such_module"), hlotag.errors.IncompatibleJaxlibError),
        (lambda: hlotag.errors.no_such_name, AttributeError),
        (lambda: hlotag.Rule({"k": "v"}, op="sine").no_such_name, AttributeError),
        (lambda: importlib.import_module("hlotag.no_such_module"), ModuleNotFoundError),
    ]:
        with pytest.raises(error, match="no_such") as caught, explain():
            use()
        assert type(caught.value) is error
