# SPDX-License-Identifier: Apache-2.0
"""A JAX that changed what hlotag hooks into: an error that names the part, and all that needs no hooks works."""

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
        with pytest.raises(hlotag.IncompatibleJaxlibError, match=named) as caught:
            use()
        assert all(part in str(caught.value) for part in (jax.__version__, supported.REQUIREMENT)), caught.value
    return hlotag

def passes_and_dumps_work(hlotag):
    from hlotag.audits.dumps import audit_dumps
    from hlotag.passes.rules import attach

    rules = attach([hlotag.Rule({"k": "v"}, op="sine")]) + ",hlotag-verify"
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
