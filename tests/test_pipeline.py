# SPDX-License-Identifier: Apache-2.0
"""run_passes and list_passes: what goes in, what comes out, and every way to fail."""

import pytest
from jaxlib.mlir.dialects import stablehlo

from hlotag import errors
from hlotag.mlir.modules import new_context, parse_module, to_bytecode
from hlotag.passes.pipeline import run_passes

MODULE = """
module @m attributes {some.attr = 1 : i32} {
  func.func public @main(%x: tensor<f32> loc("x")) -> tensor<f32> {
    %0 = stablehlo.sine %x {mhlo.frontend_attributes = {a = "1", b = "2"}} : tensor<f32> loc("jit(f)/sin"("f.py":3:4))
    %dead = stablehlo.cosine %x : tensor<f32> loc("jit(f)/cos")
    return %0 : tensor<f32>
  }
}
"""
NOT_A_DICTIONARY = MODULE.replace(
    ': tensor<f32> loc("jit(f)/cos")', '{mhlo.frontend_attributes = "k"} : tensor<f32> loc("g.py":5:6)'
).replace("return %0", "return %dead")


def full_text(module):
    return module.operation.get_asm(enable_debug_info=True)


def test_a_module_is_changed_in_place():
    with new_context():
        module = parse_module(MODULE)
        before = full_text(module)
        run_passes(module, "")
        assert full_text(module) == before
        assert run_passes(module, "hlotag-strip{keys=a}") is module
        assert 'mhlo.frontend_attributes = {b = "2"}' in str(module)


def test_runs_that_change_nothing_keep_no_copy():
    with new_context() as context:
        module = parse_module(MODULE)
        run_passes(module, "canonicalize")
        count = context._get_live_module_count()
        for _ in range(3):
            run_passes(module, "canonicalize")
        assert context._get_live_module_count() == count <= 2


def test_a_pipeline_may_leave_the_dialect_of_functions():
    stablehlo.register_stablehlo_passes()
    assert "vhlo.func_v1" in run_passes(MODULE, "hlotag-strip,stablehlo-legalize-to-vhlo")


def test_text_with_locations_keeps_them_and_other_text_gets_none():
    result = run_passes(MODULE, "hlotag-strip")
    assert 'loc("f.py":3:4)' in result and "frontend_attributes" not in result
    result = run_passes("func.func private @f()", "hlotag-strip")
    assert "func.func private @f()" in result and "loc(" not in result
    only_looks_so = """
    func.func private @alloc(tensor<f32>)
    func.func @loc(%x: tensor<f32>) attributes {a = "loc(1)"} {
      %a = memref.alloc() : memref<4xi32>
      call @alloc(%x) : (tensor<f32>) -> ()
      return
    }"""
    assert "#loc" not in run_passes(only_looks_so, "hlotag-strip")


def operations(module):
    return list(module.body.operations[0].regions[0].blocks[0].operations)


def test_operations_that_python_holds_outlive_passes_of_mlir():
    with new_context():
        module = parse_module(MODULE)
        held = operations(module)
        before = [str(op) for op in held]
        run_passes(run_passes(module, "canonicalize"), "canonicalize,hlotag-strip")
        kept = [parse_module(MODULE) for _ in range(50)]  # takes memory that is free
        assert [str(op) for op in operations(module)] == ["%0 = stablehlo.sine %arg0 : tensor<f32>", before[-1]]
        assert [str(op) for op in held] == before and kept


@pytest.mark.parametrize(
    "text",
    [
        'func.func private @f(!mpmd.mesh_tensor<"m", tensor<4xf32>>)',
        "%0 = affine.apply affine_map<() -> (3)>()",
        "%0 = complex.constant [1.0 : f32, 2.0 : f32] : complex<f32>",
        "%0 = ub.poison : i32",
    ],
)
def test_dialects_of_jax_are_known(text):
    assert "module" in run_passes(text, "hlotag-strip")


def test_bytecode_in_bytecode_out():
    with new_context():
        bytecode = to_bytecode(parse_module(MODULE))
    result = run_passes(bytecode, "hlotag-strip{keys=b}")
    assert isinstance(result, bytes)
    with new_context():
        assert 'mhlo.frontend_attributes = {a = "1"}' in str(parse_module(result))


@pytest.mark.parametrize(
    "text",
    [
        "hlotag-strip,hlotag-strip{keys=*}",
        "hlotag-strip{keys=a},hlotag-resolve",
        "func.func(cse),hlotag-strip{keys=a},hlotag-strip",
        "canonicalize,hlotag-strip,hlotag-resolve",
    ],
)
def test_failing_pass_leaves_the_module_as_it_was(text):
    with new_context():
        module = parse_module(NOT_A_DICTIONARY.replace("some.attr = 1 : i32", "hlotag.tags = 3 : i32"))
        before = full_text(module), to_bytecode(module), operations(module)
        with pytest.raises(errors.PassError) as caught:
            run_passes(module, text)
        assert (full_text(module), to_bytecode(module), operations(module)) == before and module.operation.verify()
    assert caught.value.pass_name.startswith("hlotag-")
    assert "g.py:5:6" in str(caught.value) or "hlotag.tags" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no-such-pass", r"does not refer to a registered pass.*\nno-such-pass\n\^\Z"),
        ("cse\0,canonicalize", r"pipeline 'cse\\x00,canonicalize' has a zero byte at offset 3"),
        ("canonicalize{nope=1}", "no such option nope"),
        (["hlotag-strip", None], "must be a string or a sequence"),
    ],
)
def test_bad_pipelines(text, message):
    with new_context():
        module = parse_module(MODULE)
        before = full_text(module)
        with pytest.raises(errors.ArgumentError, match=message):
            run_passes(module, text)
        assert full_text(module) == before


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("module {\n  nonsense\n}", r"<module>:2:3: error: custom op 'nonsense' is unknown[^\n]*\n  nonsense\n  \^"),
        ("module {", "<module>:1:7: error: expected"),
        (b"module {}", r"not MLIR bytecode, which begins with b'ML\\xefR': they begin with b'module \{'; pass text"),
        (b"", "not MLIR bytecode, .* there are none; pass text"),
        (b"ML\xefRgarbage", "bytecode version"),
        ("func.func @f(%x: i32) -> i64 { return %x : i32 }", "doesn't match function result type"),
    ],
)
def test_malformed_modules(source, message):
    with pytest.raises(errors.ParseError, match=message):
        run_passes(source, "hlotag-strip")
