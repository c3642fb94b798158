# SPDX-License-Identifier: Apache-2.0
"""The forms of a program that can be compiled; other input is refused, and aborts nothing."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.mlir import ir
from jaxlib import _hlo, _jax

import hlotag
from hlotag import _compat, xla
from hlotag.errors import ArgumentError, ParseError
from hlotag.mlir.modules import to_bytecode
from xla_programs import ADD_HLO, ADD_STABLEHLO, ONE_TO_THREE, SUM, add_on, hlo_text, lists

ENTRY = ADD_HLO.split("\n\n", 1)[1]


def hlo_proto():
    return _hlo.hlo_module_from_text(ADD_HLO).as_serialized_hlo_module_proto()


def module():
    with _compat.runtime.ir_context():
        return ir.Module.parse(ADD_STABLEHLO)


def tagged_add(x, y):
    with hlotag.tagged({"owner": "me", "stage": "7"}):
        return x + y


def lowered():
    with hlotag.stage():
        return jax.jit(tagged_add).lower(ONE_TO_THREE, ONE_TO_THREE)


def exported():
    with hlotag.stage():
        return jax.export.export(jax.jit(tagged_add))(ONE_TO_THREE, ONE_TO_THREE)


def computation():
    with hlotag.stage():
        return hlotag.xla.xla_computation(tagged_add)(ONE_TO_THREE, ONE_TO_THREE)


LIKE_AN_ELIDED_CONSTANT = 'add(x, y), metadata={op_name="\\"constant({...})"}'
INPUTS = {
    "HLO text": lambda: ADD_HLO,
    "HLO text that begins with another computation": lambda: f"%other {{ p = f32[] parameter(0) }}\n{ENTRY}",
    "HLO text with a string like an elided constant": lambda: ADD_HLO.replace("add(x, y)", LIKE_AN_ELIDED_CONSTANT),
    "HLO text without a header": lambda: ENTRY,
    "HLO text after a comment": lambda: f"// a comment\n/* and\nanother */\n{ADD_HLO}",
    "HloModuleProto": hlo_proto,
    "HloModuleProto as bytearray": lambda: bytearray(hlo_proto()),
    "HloModule": lambda: _hlo.hlo_module_from_text(ADD_HLO),
    "XlaComputation": lambda: _hlo.XlaComputation(hlo_proto()),
    "HLO text as bytes": ADD_HLO.encode,
    "StableHLO text": lambda: ADD_STABLEHLO,
    "StableHLO text in generic form": lambda: module().operation.get_asm(print_generic_op_form=True),
    "StableHLO text without a module": lambda: ADD_STABLEHLO.split("\n", 1)[1].rsplit("}", 1)[0],
    "StableHLO text with locations": lambda: module().operation.get_asm(enable_debug_info=True),
    "MLIR bytecode": lambda: to_bytecode(module()),
    "portable artifact": lambda: _jax.mlir.serialize_portable_artifact(module(), "1.0.0"),
    "ir.Module": module,
    "Lowered": lowered,
    "Exported": exported,
    "Exported, its artifact": lambda: exported().mlir_module_serialized,
    "xla_computation": computation,
    "a library's Lowered": lambda: SimpleNamespace(lowered=INPUTS["Lowered"]()),
}


@pytest.mark.parametrize("kind", INPUTS)
def test_input(client, kind):
    loaded = client.compile_and_load(INPUTS[kind]())
    assert loaded.execute(add_on(client))[0].tolist() == SUM
    assert 'frontend_attributes={owner="me",stage="7"}' in hlo_text(loaded)


@pytest.mark.parametrize("kind", ["HLO text", "ir.Module", "Lowered", "Exported", "xla_computation"])
def test_pipeline(client, kind):
    """Passes run before XLA sees the program, and on a copy."""
    given = INPUTS[kind]()
    text = hlo_text(client.compile_and_load(given, pipeline="hlotag-strip{keys=owner}"))
    assert 'stage="7"' in text and "owner" not in text
    assert 'owner="me"' in hlo_text(client.compile_and_load(given))
    assert "owner" not in hlo_text(client.compile(given, pipeline=["hlotag-strip{keys=owner}"]))


@pytest.mark.parametrize("tuple_args", [False, True])
@pytest.mark.parametrize("f", [lambda *xs: sum(xs), lambda *xs: (xs[0], sum(xs))])
def test_donated_parameters_keep_their_place(client, f, tuple_args):
    """jaxlib makes leaves of tuples of parameters, and of a tuple of one result."""
    computation = hlotag.xla.xla_computation(f, donate_argnums=1, tuple_args=tuple_args)(*[1.0] * 101)
    for form in (computation, computation.as_hlo_text(), computation.as_serialized_hlo_module_proto()):
        arguments = [client.buffer_from_pyval(np.float32(1)) for _ in range(101)]
        assert client.compile_and_load(form).execute(arguments)[-1] == 101
        assert [i for i, argument in enumerate(arguments) if argument.is_deleted()] == [1]


def test_a_sharded_program_of_jax(client):
    """A Lowered brings its partitions and its partitioner."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("d",))
    split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("d"))
    x = jax.device_put(jnp.arange(4.0), split)
    given = jax.jit(lambda x: jax.lax.with_sharding_constraint(x * 2, split)).lower(x)
    assert lists(xla.compile_and_load(given).execute_sharded([x])) == [[[0, 2], [4, 6]]]


def test_a_sharded_executable_is_deserialized(client):
    both = ADD_HLO.replace("HloModule add_vectors", "HloModule add_vectors, replica_count=2")
    loaded = client.deserialize_executable(client.compile_and_load(both).serialize(), client.local_devices()[::-1])
    assert loaded.local_devices() == client.local_devices()[::-1]
    data = [client.buffer_from_pyval(ONE_TO_THREE * i, device) for i, device in enumerate(loaded.local_devices())]
    assert lists(loaded.execute_sharded([data, data])) == [[[0, 0, 0], [2, 4, 6]]]
    with pytest.raises(ArgumentError, match="2 replicas of 1 partitions need 2 different devices"):
        client.deserialize_executable(loaded.serialize(), client.local_devices()[:1])


# --- Input that cannot be compiled -------------------------------------------------------------------------------------------

SYNTAX, NOT_HLO = "the HLO text has a syntax error: was parsing", "cannot be read as an HloModuleProto .*; pass HLO text"
REFUSED = {
    "empty text": (" \n", SYNTAX),
    "prose": ("add two vectors", SYNTAX),
    "truncated proto": (hlo_proto()[:-40], NOT_HLO),
    "another proto": (xla.CompileOptions().SerializeAsString(), NOT_HLO),
    "random bytes": (bytes(range(128, 200)), NOT_HLO),
    "a function": (jnp.sin, r"cannot compile a .*: pass HLO text.*; lower a function: jax\.jit\(f\)\.lower"),
    "syntax error in HLO": (ADD_HLO.replace("add(x, y)", "add(x, y"), r"(?s)has a syntax error: was parsing 6:.*ROOT sum = .*\^"),
    "elided constants": (ADD_HLO.replace("parameter(1)", "constant({...})"), r"numbers: constant\(.*print_large_constants=True"),
    "HLO of wrong shapes": (ADD_HLO.replace("sum = f32[3]{0}", "sum = f32[4]{0}"), r'loc\("sum"\): error: .* the same shape'),
    "HLO that XLA refuses without a place": (
        "HloModule m\nb { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT r = f32[] add(p, q) }\nENTRY main {\n"
        " p = pred[] parameter(0)\n x = f32[] parameter(1)\n"
        "ROOT c = f32[] conditional(p, x), true_computation=b, false_computation=b }",
        "has a syntax error: XLA gives no reason",
    ),
    "syntax error in StableHLO": (
        ADD_STABLEHLO.replace("stablehlo.add", "stablehlo.addd"),
        r"<StableHLO text>:3:12: error: .*addd.*\n    %sum = stablehlo\.addd",
    ),
    "truncated bytecode": (to_bytecode(module())[:-50], "<MLIR bytecode>"),
    "truncated artifact": (exported().mlir_module_serialized[:-50], r"cannot be read: (?s:.*)written for StableHLO 1\."),
    # XLA would end the process.
    "a header with replicas": (ADD_HLO.replace("HloModule add_vectors", "HloModule m, replica_count=-1"), "not -1 and 1"),
    "no main": ("module {}", "must have a main function"),
    "another pass": ("module {}", "hlotag-stripp"),
}


REFUSED |= {
    # XLA ends the process if it is given one of these.
    "recursion": (
        "module { func.func @main() { func.call @other() : () -> () return } "
        "func.func @other() { func.call @main() : () -> () return } }",
        "the program calls itself: .*main -> .*",
    ),
    "no body": ("module { func.func private @main(tensor<f32>) -> tensor<f32> }", "the function @main has no body"),
    "replicas": ('module attributes {mhlo.num_replicas = "x"} { func.func @main() { return } }', 'must be integers, not "x"'),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_refused(client, kind):
    given, message = REFUSED[kind]
    with pytest.raises((ParseError, ArgumentError, xla.XlaRuntimeError), match=message):
        client.compile_and_load(given, pipeline="hlotag-stripp" if kind == "another pass" else None)


def test_an_invalid_module_is_refused(client):
    broken = module()
    broken.body.operations[0].attributes["function_type"] = ir.TypeAttr.parse("() -> ()", broken.context)
    with pytest.raises(ParseError, match=r"the ir\.Module is not valid"):
        client.compile_and_load(broken)


def test_functions_of_python_are_not_in_text_or_bytes():
    """jaxlib calls the functions by number, and ends the process where there are none."""
    x, seen = jnp.arange(3.0), []
    double = lambda x: jax.pure_callback(lambda v: seen.append(v) or v * 2, x, x)
    given = jax.jit(double).lower(x)
    for text in (given.as_text(), given.as_text("hlo"), given.compiler_ir("stablehlo")):
        with pytest.raises(ArgumentError, match=r"calls Python functions, .* pass the jax\.stages\.Lowered"):
            xla.compile_and_load(text)
    loaded = xla.compile_and_load(given)
    with pytest.raises(ArgumentError, match="calls Python functions, which are not in its bytes; pass them as host_callbacks"):
        xla.deserialize_executable(loaded.serialize())
    callbacks = _compat.runtime.compile_arguments(given)["host_callbacks"]
    for again in (
        loaded,
        xla.compile_and_load(given.as_text(), host_callbacks=callbacks),
        xla.deserialize_executable(loaded.serialize(), host_callbacks=callbacks),
        xla.compile_and_load(hlotag.xla.xla_computation(double)(x)),
    ):
        assert again.execute([x])[0].tolist() == [0, 2, 4]
    assert len(seen) == 4


# One product with a sparse matrix, which JAX has for CPU and lowers only on request.
SPARSE_HLO = """HloModule m
ENTRY e {
  data = f32[1]{0} parameter(0)
  rows = s32[2]{0} parameter(1)
  column = s32[1]{0} parameter(2)
  x = f32[1]{0} parameter(3)
  ROOT y = f32[1]{0} custom-call(data, rows, column, x), custom_call_target="cpu_csr_sparse_dense_ffi",
    api_version=API_VERSION_TYPED_FFI
}"""


def test_c_functions_of_jaxlib_are_there_in_a_fresh_process(run_python, tmp_path):
    lowered = jax.jit(jnp.linalg.cholesky).lower(jnp.eye(2))
    (tmp_path / "serialized").write_bytes(xla.serialize_executable(xla.compile_and_load(lowered)))
    (tmp_path / "exported").write_bytes(jax.export.export(jax.jit(jnp.linalg.cholesky))(jnp.eye(2)).serialize())
    (tmp_path / "text").write_text(lowered.compiler_ir("hlo").as_hlo_text())
    programs = {
        "xla.deserialize_executable(open('serialized', 'rb').read())": "[jnp.eye(2)]",
        "xla.compile_and_load(export.deserialize(bytearray(open('exported', 'rb').read())))": "[jnp.eye(2)]",
        "xla.compile_and_load(open('text').read())": "[jnp.eye(2)]",
        f"xla.compile_and_load({SPARSE_HLO!r})": "[jnp.ones(1), jnp.array([0, 1]), jnp.zeros(1, int), jnp.full(1, 3.0)]",
    }
    for program, arguments in programs.items():
        code = (
            f"import jax.numpy as jnp\nfrom jax import export\nfrom hlotag import xla\nprint({program}.execute({arguments})[0])"
        )
        assert run_python(code).stdout in ("[[1. 0.]\n [0. 1.]]\n", "[3.]\n")
