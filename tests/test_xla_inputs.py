# SPDX-License-Identifier: Apache-2.0
"""What can be compiled is recognized by what it is; what cannot is refused with what it looks like, and nothing aborts."""

from __future__ import annotations

import dataclasses
import gzip
import pickle
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.mlir import ir
from jaxlib import _hlo, _jax

import hlotag
from hlotag import ArgumentError, ParseError, UnsupportedError, XlaError, _compat, xla
from hlotag.host.modules import to_bytecode
from hlotag.passes.rules import with_rules
from hlotag.xla import _stamp
from xla_programs import ADD_HLO, ADD_STABLEHLO, ONE_TO_THREE, SUM, add_on

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
        return hlotag.xla_computation(tagged_add)(ONE_TO_THREE, ONE_TO_THREE)


INPUTS = {
    "HLO text": lambda: ADD_HLO,
    "HLO text that begins with another computation": lambda: f"%other {{ p = f32[] parameter(0) }}\n{ENTRY}",
    "HLO text with a string like an elided constant": lambda: ADD_HLO.replace(
        "add(x, y)", 'add(x, y), metadata={op_name="\\"constant({...})"}'
    ),
    "HLO text as bytes": ADD_HLO.encode,
    "HLO text without a header": lambda: ENTRY,
    "HLO text after a comment": lambda: f"// a comment\n/* and\nanother */\n{ADD_HLO}",
    "HloModuleProto": hlo_proto,
    "HloModuleProto as bytearray": lambda: bytearray(hlo_proto()),
    "HloProto, as XLA dumps it": lambda: b"\x0a" + bytes([len(hlo_proto()) % 128 | 128, len(hlo_proto()) // 128]) + hlo_proto(),
    "HloModule": lambda: _hlo.hlo_module_from_text(ADD_HLO),
    "XlaComputation": lambda: _hlo.XlaComputation(hlo_proto()),
    "StableHLO text": lambda: ADD_STABLEHLO,
    "StableHLO text as bytes": ADD_STABLEHLO.encode,
    "StableHLO text without a module": lambda: ADD_STABLEHLO.split("\n", 1)[1].rsplit("}", 1)[0],
    "StableHLO text in generic form": lambda: module().operation.get_asm(print_generic_op_form=True),
    "StableHLO text with locations": lambda: module().operation.get_asm(enable_debug_info=True),
    "MLIR bytecode": lambda: to_bytecode(module()),
    "portable artifact": lambda: _jax.mlir.serialize_portable_artifact(module(), "1.0.0"),
    "ir.Module": module,
    "Lowered": lowered,
    "Lowered, as text": lambda: lowered().as_text(),
    "Lowered, as HLO text": lambda: lowered().as_text("hlo"),
    "Exported": exported,
    "Exported, its artifact": lambda: exported().mlir_module_serialized,
    "xla_computation": computation,
    "xla_computation, as HLO text": lambda: computation().as_hlo_text(),
}


@pytest.mark.parametrize("kind", INPUTS)
def test_input(client, kind):
    loaded = client.compile_and_load(INPUTS[kind]())
    assert loaded.execute(add_on(client))[0].tolist() == SUM
    assert 'frontend_attributes={owner="me",stage="7"}' in loaded.hlo_modules()[0].to_string()


@pytest.mark.parametrize(
    "kind", ["HLO text", "HloModuleProto", "StableHLO text", "ir.Module", "Lowered", "Exported", "xla_computation"]
)
def test_pipeline(client, kind):
    """Passes run before XLA sees the program, and on a copy."""
    given = INPUTS[kind]()
    loaded = client.compile_and_load(given, pipeline="hlotag-strip{keys=owner}")
    text = loaded.hlo_modules()[0].to_string()
    assert 'stage="7"' in text and "owner" not in text
    assert 'owner="me"' in client.compile_and_load(given).hlo_modules()[0].to_string()
    assert "owner" not in client.compile(given, pipeline=["hlotag-strip{keys=owner}"]).hlo_modules()[0].to_string()


def test_pipeline_attaches_by_rule(client):
    rule = hlotag.Rule({"by": "rule"}, op="stablehlo.add")
    loaded = client.compile_and_load(ADD_HLO, pipeline=with_rules("hlotag-attach", [rule]))
    assert 'by="rule"' in loaded.hlo_modules()[0].to_string()


def test_bad_pipeline(client):
    with pytest.raises(ArgumentError, match="hlotag-stripp"):
        client.compile_and_load(ADD_HLO, pipeline="hlotag-stripp")


def test_text_to_text_keeps_frontend_attributes(client):
    """HLO text -> executable -> HLO text -> executable."""
    once = client.compile_and_load(ADD_HLO).hlo_modules()[0].to_string()
    loaded = client.compile_and_load(INPUTS["xla_computation, as HLO text"]().replace('stage="7"', 'stage="8",third="x y"'))
    again = loaded.hlo_modules()[0].to_string()
    assert 'owner="me",stage="7"' in once and 'owner="me",stage="8",third="x y"' in again


def test_a_parameter_in_a_string_is_none(client):
    quoted = ADD_HLO.replace('owner="me"', 'owner="parameter(9) }"')
    assert client.compile_and_load(quoted).execute(add_on(client))[0].tolist() == SUM


def test_header_of_hlo_says_replicas_and_partitions(client):
    both = ADD_HLO.replace("HloModule add_vectors", "HloModule add_vectors, replica_count=2")
    loaded = client.compile_and_load(both)
    assert loaded.local_devices() == client.local_devices()
    assert "replica_count=2" in loaded.hlo_modules()[0].to_string()


def test_donated_parameters_of_hlo(client):
    donating = ADD_HLO.replace("HloModule add_vectors", "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }")
    x, y = add_on(client)
    assert client.compile_and_load(donating).execute([x, y])[0].tolist() == SUM
    assert x.is_deleted() and not y.is_deleted()


@pytest.mark.parametrize("tuple_args", [False, True])
@pytest.mark.parametrize("f", [lambda *xs: sum(xs), lambda *xs: (xs[0], sum(xs))])
def test_donated_parameters_keep_their_place(client, f, tuple_args):
    """jaxlib makes leaves of tuples of parameters, and of a tuple of one result."""
    computation = hlotag.xla_computation(f, donate_argnums=1, tuple_args=tuple_args)(*[1.0] * 101)
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
    loaded = xla.compile_and_load(given)
    results = loaded.execute_sharded([x]).disassemble_into_single_device_arrays()
    assert [[array.tolist() for array in devices] for devices in results] == [[[0, 2], [4, 6]]]


# --- Portable artifacts, and executables in other processes -------------------------------------------------------------------


def test_portable_artifact_to_jax_and_back(client, tmp_path, run_python):
    """What JAX exported, hlotag compiles in another process; what hlotag's passes changed, JAX calls."""
    (tmp_path / "artifact").write_bytes(exported().mlir_module_serialized)
    changed = hlotag.run_passes(exported(), "hlotag-strip{keys=owner}")
    (tmp_path / "exported").write_bytes(changed.serialize())
    done = run_python(
        "import jax, numpy as np, pathlib; from hlotag import xla\n"
        "x = np.float32([1, 2, 3]); client = xla.make_cpu_client(num_devices=1)\n"
        "loaded = client.compile_and_load(pathlib.Path('artifact').read_bytes())\n"
        "buffer = client.buffer_from_pyval(x)\n"
        "print(loaded.execute([buffer, buffer])[0].tolist(), 'owner=\"me\"' in loaded.get_hlo_text())\n"
        "exported = jax.export.deserialize(bytearray(pathlib.Path('exported').read_bytes()))\n"
        "print(exported.call(x, x).tolist(), 'owner' in exported.mlir_module())\n"
    )
    assert done.stdout.split("\n")[:2] == ["[2.0, 4.0, 6.0] True", "[2.0, 4.0, 6.0] False"], done.stderr


def test_executable_in_another_process(client, tmp_path, run_python):
    f = lambda x: (jnp.tanh(x) @ x, jnp.linalg.norm(x), jax.lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) * i, x))
    x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)
    loaded = client.compile_and_load(jax.jit(f).lower(x))
    here = [np.asarray(result) for result in loaded.execute([client.buffer_from_pyval(x)])]
    (tmp_path / "executable").write_bytes(client.serialize_executable(loaded))
    np.save(tmp_path / "x.npy", x)
    done = run_python(
        "import numpy as np, pathlib; from hlotag import xla\n"
        "client = xla.make_cpu_client(num_devices=2); device = client.local_devices()[1]\n"
        "loaded = client.deserialize_executable(pathlib.Path('executable').read_bytes(), [device])\n"
        "results = loaded.execute([client.buffer_from_pyval(np.load('x.npy'), device)])\n"
        "np.savez('there.npz', *results)\n"
    )
    assert done.returncode == 0, done.stderr
    there = np.load(tmp_path / "there.npz")
    for number, result in enumerate(here):
        assert np.array_equal(result, there[f"arr_{number}"])


def test_jaxlib_reads_what_hlotag_serialized(client, serialized):
    """The stamp is behind jaxlib's own bytes; bytes without it are read too."""
    raw = client.jaxlib_object
    loaded = raw.deserialize_executable(serialized, client.local_devices()[:1])
    assert loaded.execute(add_on(client))[0].tolist() == SUM
    unstamped = raw.compile_and_load(ADD_STABLEHLO, client.local_devices()[:1]).serialize()
    assert client.deserialize_executable(unstamped).execute(add_on(client))[0].tolist() == SUM


def test_unloaded_executable_is_loaded_later(client):
    loaded = client.deserialize_executable(client.compile(ADD_HLO).serialize())
    assert loaded.execute(add_on(client))[0].tolist() == SUM


def test_a_deserialized_executable_is_serialized_again(client, serialized):
    """jaxlib's own bytes of one cannot be loaded; the ones that it was made from can."""
    again = client.deserialize_executable(serialized).serialize()
    assert client.deserialize_executable(again).execute(add_on(client))[0].tolist() == SUM


def test_a_sharded_executable_is_deserialized(client):
    both = ADD_HLO.replace("HloModule add_vectors", "HloModule add_vectors, replica_count=2")
    loaded = client.deserialize_executable(client.compile_and_load(both).serialize(), client.local_devices()[::-1])
    assert loaded.local_devices() == client.local_devices()[::-1]
    data = [client.buffer_from_pyval(ONE_TO_THREE * i, device) for i, device in enumerate(loaded.local_devices())]
    assert [a.tolist() for a in loaded.execute_sharded([data, data]).disassemble_into_single_device_arrays()[0]] == [
        [0] * 3,
        [2, 4, 6],
    ]
    with pytest.raises(ArgumentError, match="2 replicas of 1 partitions need 2 devices, but there are 1"):
        client.deserialize_executable(loaded.serialize(), client.local_devices()[:1])


# --- Input that cannot be compiled -------------------------------------------------------------------------------------------

REFUSED = {
    "empty text": ("", "the text is empty; pass HLO text"),
    "blank text": (" \n ", "the text is empty"),
    "no bytes": (b"", "the text is empty"),
    "prose": ("add two vectors", "neither HLO nor MLIR: HLO begins with HloModule, but this with 'add two vectors'"),
    "a jaxpr": (str(jax.make_jaxpr(jnp.sin)(1.0)), r"looks like a jaxpr; lower the function instead: jax\.jit"),
    "a file name": ("/tmp/module_0001.jit_f.before_optimizations.txt", "looks like a file name; .*read_bytes"),
    "LLVM IR": ('; ModuleID = "f"\ndefine void @f()', "looks like LLVM IR"),
    "a dot graph": (_hlo.XlaComputation(hlo_proto()).as_hlo_dot_graph(), "a graph for Graphviz"),
    "a proto in text form": ('name: "m"\ncomputations {', "an HloModuleProto in text form; serialize it"),
    "truncated proto": (hlo_proto()[:-40], "look like a truncated or damaged HloModuleProto; serialize it again"),
    "half a proto": (hlo_proto()[: len(hlo_proto()) // 2], "look like a truncated or damaged HloModuleProto"),
    "another proto": (xla.CompileOptions().SerializeAsString(), r"are not an HloModuleProto: .*; pass HLO text"),
    "random bytes": (bytes(range(128, 200)), r"are not an HloModuleProto: they begin with b'\\x80"),
    "gzip": (gzip.compress(ADD_HLO.encode()), r"a gzip file; decompress it first: gzip\.decompress"),
    "a pickle": (pickle.dumps(ADD_HLO), "a pickled object; unpickle it first"),
    "machine code": (b"\x7fELF\x02\x01\x01\x00", "machine code"),
    "a path": (Path("module.txt"), r"pass the file's contents: path\.read_bytes"),
    "a function": (jnp.sin, r"lower it first: .*lower"),
    "a plain function": (lambda x: x, r"lower it first: jax\.jit\(f\)\.lower"),
    "nothing": (None, "cannot compile a NoneType: pass HLO text"),
    "a number": (3, "cannot compile a int"),
    "syntax error in HLO": (ADD_HLO.replace("add(x, y)", "add(x, y"), r"(?s)has a syntax error: was parsing 6:.*ROOT sum = .*\^"),
    "unknown opcode": (ADD_HLO.replace("add(", "addd("), r"(?s)syntax error: was parsing 6:.*Unknown opcode: addd.*\^"),
    "no entry": ("HloModule m", "syntax error"),
    "elided constants": (
        ADD_HLO.replace("parameter(1)", "constant({...})"),
        r"a constant without its numbers: constant\(\{\.\.\.\}\); print it with as_hlo_text\(print_large_constants=True\)",
    ),
    "a parameter twice": (ADD_HLO.replace("parameter(1)", "parameter(0)"), "Duplicate parameter number 0"),
    "HLO of wrong shapes": (
        ADD_HLO.replace("sum = f32[3]{0}", "sum = f32[4]{0}"),
        r"(?s)the HLO is not valid:\nline 6: error: 'stablehlo.add' op requires the same shape.*\n  ROOT sum = f32\[4\]",
    ),
    "syntax error in StableHLO": (
        ADD_STABLEHLO.replace("stablehlo.add", "stablehlo.addd"),
        r"<StableHLO text>:3:12: error: .*addd.*\n    %sum = stablehlo\.addd",
    ),
    "StableHLO of wrong types": (ADD_STABLEHLO.replace("return %sum", "return"), "(?s)<StableHLO text>:4:.*error"),
    "truncated bytecode": (to_bytecode(module())[:-50], "<MLIR bytecode>"),
    "bytecode magic alone": (b"ML\xefR", "<MLIR bytecode>"),
    "truncated artifact": (exported().mlir_module_serialized[:-50], r"cannot be read: (?s:.*)written for StableHLO 1\."),
    "a serialized export": (bytes(exported().serialize()), r"serialized jax\.export\.Exported; pass jax\.export\.deserialize"),
    "a compiled program": (jax.jit(jnp.sin).lower(1.0).compile(), "it is compiled already"),
    "a traced program": (jax.jit(jnp.sin).trace(1.0), "lower it first"),
    "an export for any size": (
        jax.export.export(jax.jit(jnp.sin))(jax.ShapeDtypeStruct(jax.export.symbolic_shape("n"), "float32")),
        r"for arguments of any size \(.*n.*\); lower it instead: jax\.jit\(exported\.call\)",
    ),
    "an export for two platforms": (
        jax.export.export(jax.jit(jnp.sin), platforms=["cpu", "tpu"])(1.0),
        r"for several platforms \(cpu, tpu\)",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_refused(client, kind):
    given, message = REFUSED[kind]
    with pytest.raises((ParseError, TypeError), match=message):
        client.compile_and_load(given)


def test_refused_executable(client, serialized):
    with pytest.raises(ParseError, match="serialized executable, which is compiled already; use deserialize_executable"):
        client.compile_and_load(serialized)


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
    branch = "branch { a = f32[2] parameter(0)\n b = f32[2] parameter(1)\n ROOT r = f32[2] add(a, b) }\n"
    main = "ROOT c = f32[2] conditional(p, x), true_computation=branch, false_computation=branch }"
    with pytest.raises(ParseError, match=r"has a syntax error: \S"):
        client.compile_and_load(f"HloModule m\n{branch}ENTRY main {{ p = pred[] parameter(0)\n x = f32[2] parameter(1)\n{main}\n")


def test_no_child_process_reads_a_text(client, monkeypatch):
    monkeypatch.setattr("subprocess.Popen", None)
    client.compile_and_load(ADD_HLO)


def test_module_that_is_not_valid(client):
    broken = module()
    broken.body.operations[0].attributes["function_type"] = ir.TypeAttr.parse("() -> ()", broken.context)
    with pytest.raises(ParseError, match=r"the ir\.Module is not valid"):
        client.compile_and_load(broken)


CRASHING = {  # what XLA, when given it, ends the process with
    "recursion": (
        "module { func.func @main(%x: tensor<f32>) -> tensor<f32> {"
        " %y = func.call @other(%x) : (tensor<f32>) -> tensor<f32> return %y : tensor<f32> }"
        " func.func @other(%x: tensor<f32>) -> tensor<f32> {"
        " %y = func.call @main(%x) : (tensor<f32>) -> tensor<f32> return %y : tensor<f32> } }",
        "the program calls itself: .*main -> .*; XLA has no recursion",
    ),
    "no body": ("module { func.func private @main(tensor<f32>) -> tensor<f32> }", "the function @main has no body"),
    "replicas": (
        'module attributes {mhlo.num_replicas = "x"} { func.func @main() { return } }',
        'num_replicas must be an integer of at least 1, not "x"',
    ),
    "partitions": (
        "module attributes {mhlo.num_partitions = -3 : i32} { func.func @main() { return } }",
        "num_partitions must be an integer of at least 1, not -3",
    ),
}


@pytest.mark.parametrize("kind", CRASHING)
def test_refused_before_xla_sees_it(client, kind):
    text, message = CRASHING[kind]
    with pytest.raises(ParseError, match=message):
        client.compile_and_load(text)


def test_functions_of_python_are_not_in_text_or_bytes():
    """jaxlib calls the functions by number, and ends the process where there are none."""
    x = jnp.arange(3.0)
    given = jax.jit(lambda x: jax.pure_callback(lambda v: v * 2, x, x)).lower(x)
    for text in (given.as_text(), given.as_text("hlo"), given.compiler_ir("stablehlo")):
        with pytest.raises(
            ArgumentError, match=r"calls Python functions, which are not in its text; pass the jax\.stages\.Lowered"
        ):
            xla.compile_and_load(text)
    loaded = xla.compile_and_load(given)
    with pytest.raises(XlaError, match="calls Python functions, which are not in its bytes; pass them as host_callbacks"):
        xla.deserialize_executable(loaded.serialize())
    callbacks = _compat.runtime.compile_arguments(given)["host_callbacks"]
    for again in (
        xla.compile_and_load(given.as_text(), host_callbacks=callbacks),
        xla.deserialize_executable(loaded.serialize(), host_callbacks=callbacks),
        xla.compile_and_load(hlotag.xla_computation(lambda x: jax.pure_callback(lambda v: v * 2, x, x))(x)),
    ):
        assert again.execute([x])[0].tolist() == [0, 2, 4]


@pytest.mark.parametrize("text", ["module {}", "module { func.func @other() { return } }"])
def test_module_without_main(client, text):
    with pytest.raises(XlaError, match=r"(?s)cannot compile the program: .*main.*Look at the program"):
        client.compile_and_load(text)


# --- Serialized executables --------------------------------------------------------------------------------------------------


def test_serialized_executables_that_cannot_be_loaded(client, serialized):
    damaged = bytearray(serialized)
    damaged[len(damaged) // 3] ^= 255
    executable, stamp = _stamp.unstamped(serialized)
    other = _stamp.stamped(executable, dataclasses.replace(stamp, jaxlib="0.1.2"))
    elsewhere = _stamp.stamped(executable, dataclasses.replace(stamp, platform="tpu 7"))
    for given, message in [
        (b"", "cannot load these 0 bytes as an executable"),
        (b"hello", "cannot load these 5 bytes .*\nPass all bytes that"),
        (serialized[: len(serialized) // 2], "cannot load these"),
        (serialized[:-3], "cannot load these"),
        (serialized[10:], "is damaged: its checksum does not match; serialize it again"),
        (bytes(damaged), "is damaged"),
        (serialized.replace(b'"num_replicas": 1', b'"num_replicas": 2'), "is damaged"),
        (other, r"compiled by jaxlib 0\.1\.2 for cpu .*, but this is jaxlib .*; compile the program here, or save it"),
        (elsewhere, "for tpu 7, but this is jaxlib .* on cpu"),
    ]:
        with pytest.raises(XlaError, match=message):
            client.deserialize_executable(given)
    with pytest.raises(ArgumentError, match="serialized must be bytes, not str"):
        client.deserialize_executable("text")


def test_what_cannot_be_serialized_says_so(client, monkeypatch):
    class Refusing:
        def serialize(self):
            raise jax.errors.JaxRuntimeError("INTERNAL: LessThan is not serializable")

    with pytest.raises(
        UnsupportedError, match=r"(?s)cannot serialize this executable: LessThan is not.*Save the program instead"
    ):
        xla.Executable(Refusing(), client.jaxlib_object).serialize()
