# SPDX-License-Identifier: Apache-2.0
"""register_pass: passes in Python, in pipelines with C++ passes and those of jaxlib, and in the stage."""

import pickle
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.mlir import ir

import hlotag
from hlotag.cli import opt_main
from hlotag.mlir.modules import new_context, parse_module

MODULE = """
module @m {
  func.func public @main(%x: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.sine %x {mhlo.frontend_attributes = {a = "1", b = "2"}} : tensor<f32>
    %dead = stablehlo.cosine %x : tensor<f32>
    return %0 : tensor<f32>
  }
}
"""

seen, kept = [], []


def operations(module, name):
    found = []
    module.operation.walk(lambda op: (found.append(op), ir.WalkResult.ADVANCE)[1])
    return [op for op in found if op.name == name]


@hlotag.register_pass
@dataclass(frozen=True)
class LabelOps:
    """Gives operations a tag.

    More about it.
    """

    op: str = "stablehlo.sine"
    label: str = "label"
    max_uses: int = 3
    ratio: float = 0.5
    loud: bool = False
    keys: tuple[str, ...] = ()
    mode: Literal["keep", "drop"] = field(default="keep", metadata={"description": "what happens to the others"})

    def __call__(self, module: ir.Module) -> None:
        seen.append(self)
        for op in operations(module, self.op):
            op.attributes["mhlo.frontend_attributes"] = ir.DictAttr.get({"label": ir.StringAttr.get(self.label)})


def erase_dead(module):
    for op in operations(module, "stablehlo.cosine"):
        op.erase()


class Unlucky(Exception):
    pass


def fail_late(module):
    erase_dead(module)
    module.operation.attributes["half.done"] = ir.UnitAttr.get()
    kept.extend(operations(module, "stablehlo.sine"))
    raise Unlucky("after a change")


def break_module(module):
    for op in operations(module, "stablehlo.sine"):
        op.attributes["mhlo.frontend_attributes"] = ir.StringAttr.get("no dictionary")
        op.operands[0].owner.add_argument(ir.F32Type.get(), ir.Location.unknown())


def rename_main(module):
    module.body.operations[0].attributes["sym_name"] = ir.StringAttr.get("other")


hlotag.register_pass(erase_dead, name="erase-dead")
for function in (fail_late, break_module, rename_main):
    hlotag.register_pass(function)


@pytest.fixture(autouse=True)
def _forget():
    seen.clear()
    kept.clear()


def test_mixes_with_passes_in_cpp_and_of_jaxlib():
    """Passes in C++ look once which operations there are; a Python pass may change both."""
    result = hlotag.run_passes(MODULE, "hlotag-strip{keys=a},label-ops{op=stablehlo.cosine},erase-dead,cse,hlotag-finalize")
    assert "cosine" not in result and '{b = "2"}' in result
    assert "frontend_attributes" not in hlotag.run_passes(MODULE, ["label-ops{label=x}", "hlotag-strip{keys=l*}", "canonicalize"])

    @hlotag.register_pass
    def put_derived(module):
        erase_dead(module)
        operations(module, "stablehlo.sine")[0].attributes["hlotag.derived"] = ir.DictAttr.get({"a": ir.StringAttr.get("1")})

    result = hlotag.run_passes(MODULE, "hlotag-finalize,put-derived,hlotag-finalize")
    assert "hlotag.derived" not in result and "cosine" not in result


def test_options_are_the_fields():
    options = r'op="a b" label="\"" max-uses=-7 ratio=1e-3 loud keys=x,"y,z" mode=drop'
    hlotag.run_passes(MODULE, f"label-ops{{{options}}},label-ops{{keys={{}}}}")
    assert seen == [LabelOps("a b", '"', -7, 0.001, True, ("x", "y,z"), "drop"), LabelOps()]


def test_listed_with_its_options():
    info = {info.name: info for info in hlotag.list_passes()}["label-ops"]
    assert (info.summary, info.description) == ("Gives operations a tag", "More about it.")
    assert [(o.name, o.type, o.default) for o in info.options][2:] == [
        *[("max-uses", "int", "3"), ("ratio", "float", "0.5"), ("loud", "bool", "false")],
        *[("keys", "list of strings", "{}"), ("mode", "keep|drop", "keep")],
    ]
    assert info.options[-1].description == "what happens to the others"


@pytest.mark.parametrize("before", ["", "hlotag-strip,", "canonicalize,", "hlotag-strip,cse,label-ops,"])
def test_a_failure_undoes_the_whole_pipeline(before):
    with new_context():
        module = parse_module(MODULE)
        text = module.operation.get_asm(enable_debug_info=True)
        with pytest.raises(
            hlotag.errors.PassError, match=r"pass 'fail-late' failed\n.*error: .*Unlucky: after a change"
        ) as caught:
            hlotag.run_passes(module, before + "fail-late,hlotag-finalize")
        assert module.operation.get_asm(enable_debug_info=True) == text
        error, cause = caught.value, caught.value.__cause__
        assert error.pass_name == pickle.loads(pickle.dumps(error)).pass_name == "fail-late" and isinstance(cause, Unlucky)
        assert [frame.name for frame in traceback.extract_tb(cause.__traceback__)] == ["fail_late"]
        assert kept[0].name == "stablehlo.sine"  # what the pass kept can still be looked at


def test_what_a_pass_leaves_is_verified():
    with pytest.raises(hlotag.errors.PassError, match="pass 'break-module' failed"):
        hlotag.run_passes(MODULE, "break-module")


def test_an_interrupt_goes_through_a_pass():
    @hlotag.register_pass
    def interrupted(module):
        erase_dead(module)
        raise KeyboardInterrupt

    with new_context():
        module = parse_module(MODULE)
        with pytest.raises(KeyboardInterrupt):
            hlotag.run_passes(module, "interrupted")
        assert "cosine" in str(module)


def test_a_pass_may_run_passes():
    @hlotag.register_pass
    def nested(module):
        hlotag.run_passes(module, "hlotag-strip{keys=a},erase-dead")
        with pytest.raises(hlotag.errors.PassError):
            hlotag.run_passes(module, "fail-late")

    result = hlotag.run_passes(MODULE, "nested,label-ops{op=none}")
    assert "cosine" not in result and '{b = "2"}' in result


def test_a_pass_that_is_defined_again_replaces_the_old_one():
    """As when a notebook's cell is run again, with a change."""

    def define(option, default):
        @dataclass(frozen=True)
        class Cell:
            text: option = default  # pyright: ignore[reportInvalidTypeForm]

            def __call__(self, module):
                module.operation.attributes["test.kind"] = ir.StringAttr.get(repr(self.text))

        return hlotag.register_pass(Cell, name="cell")

    define(str, "1")
    with hlotag.stage("hlotag-resolve,cell"):
        assert "test.kind = \"'1'\"" in jax.jit(jnp.sin).lower(1.0).as_text()
    define(float, 1.0)
    assert 'test.kind = "2.5"' in hlotag.run_passes(MODULE, "cell{text=2.5}")
    with hlotag.stage("hlotag-resolve,cell"):
        assert 'test.kind = "1.0"' in jax.jit(jnp.sin).lower(1.0).as_text()


def made(*fields, frozen=True, has_call=True):
    """A class of a pass with options."""
    namespace = {"__call__": lambda self, module: None} if has_call else {}
    return make_dataclass("Made", fields, frozen=frozen, namespace=namespace)


@pytest.mark.parametrize(
    ("pass_", "reason"),
    [
        (made(frozen=False), "frozen dataclass"),
        (made(("limit", int)), r"Made\.limit: an option needs a default"),
        (made(("limit", dict, field(default_factory=dict))), r"Made\.limit: an option is a bool, int"),
        (made(has_call=False), "__call__"),
        (made(("limit", int, "3")), "the default '3' is not of type int"),
        (3, "function or a frozen dataclass"),
    ],
)
def test_classes_that_are_refused(pass_, reason):
    with pytest.raises(TypeError, match=reason):
        hlotag.register_pass(pass_)


def test_names_that_are_refused():
    for name in ("erase-dead", "hlotag-strip", "hlotag-new", "func.func", "With Space", ""):
        with pytest.raises(hlotag.errors.ArgumentError, match=r"already a pass|reserved|no name for a pass"):
            hlotag.register_pass(print, name=name)


def test_in_the_stage_and_in_its_keys():
    def f(x):
        return jnp.sin(x) * 2

    jitted = jax.jit(f)
    x = jnp.ones(3)
    for label in ("one", "two", "one"):
        seen.clear()
        with hlotag.stage(f"{hlotag.passes.DEFAULT_PIPELINE},label-ops{{label={label}}}"):
            assert not seen  # asked whether it exists, not tried out
            assert f'label = "{label}"' in jitted.lower(x).as_text()
            np.testing.assert_array_equal(jitted(x), f(x))
    assert "label" not in jitted.lower(x).as_text()
    with pytest.raises(hlotag.errors.ArgumentError, match="not-registered"), hlotag.stage("not-registered"):
        pass


def test_an_error_has_the_line_of_the_pass():
    place = f"    in fail_late at {__file__}:{fail_late.__code__.co_firstlineno + 4}"
    text = "\n".join(MODULE.strip().splitlines()[1:-1])  # The module around it has no place in the text.
    with pytest.raises(hlotag.errors.PassError) as caught:
        hlotag.run_passes(text, "fail-late")
    assert str(caught.value).splitlines()[1:3] == [f"  error: {__name__}.Unlucky: after a change", place]


def test_the_entry_point_of_a_program_must_stay(tmp_path, monkeypatch):
    monkeypatch.setenv("HLOTAG_REPRODUCER_DIR", str(tmp_path))
    message = "type of the program's entry point from .*3xf32.* to nothing"
    with pytest.raises(hlotag.errors.PassError, match=message):
        hlotag.run_passes(jax.jit(jnp.sin).lower(jnp.ones(3)), "rename-main")

    def f(x):
        return hlotag.tag(jnp.sin(x), {"k": "v"})

    with pytest.raises(hlotag.errors.PassError, match=message) as caught, hlotag.stage("rename-main"):
        jax.jit(f).lower(np.ones(3, np.float32))
    assert "@main" in Path(caught.value.reproducer).read_text()
    with pytest.warns(hlotag.PassFailedWarning, match=message), hlotag.stage("rename-main", on_error="warn"):
        assert 'k = "v"' in jax.jit(f).lower(np.ones(3, np.float32)).as_text()


def test_threads():
    def work(label):
        return all(f'"{label}"' in hlotag.run_passes(MODULE, f"label-ops{{label={label}}},cse") for _ in range(20))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, [f"t{i}" for i in range(8)])) == [True] * 8


PASSES_FILE = """
import dataclasses
import hlotag
from helper import prefix

@hlotag.register_pass
@dataclasses.dataclass(frozen=True)
class LabelModule:
    label: str = "none"

    def __call__(self, module):
        from jax.extend.mlir import ir
        print("in the pass")
        module.operation.attributes["sym_name"] = ir.StringAttr.get(prefix + self.label)
print("registered")
"""


def test_passes_of_a_file_on_the_command_line(tmp_path, capfd):
    (tmp_path / "helper.py").write_text("prefix = 'p_'")
    (tmp_path / "passes_of_a_file.py").write_text(PASSES_FILE)
    (tmp_path / "m.mlir").write_text(MODULE)
    arguments = [str(tmp_path / "m.mlir"), f"--load-pass-plugin={tmp_path}/passes_of_a_file.py"]
    for flag in ("--label-module=label=cli", "--pass-pipeline=hlotag-strip,label-module{label=cli}"):
        assert opt_main([*arguments, flag]) == 0
        out, err = capfd.readouterr()
        assert "module @p_cli" in out and "registered\n" in err and "in the pass\n" in err and out.startswith("module")
    assert opt_main([*arguments, "--label-module=labl=cli"]) == 1
    assert "unknown option 'labl' of label-module" in capfd.readouterr().err


def test_a_file_that_fails(tmp_path, capfd):
    file = tmp_path / "no_passes.py"
    file.write_text("1 / 0")
    assert opt_main([f"--load-pass-plugin={file}"]) == 1
    assert "the program failed, as the traceback says" in capfd.readouterr().err
