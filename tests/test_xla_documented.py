# SPDX-License-Identifier: Apache-2.0
"""Code for the documented compile and execute API runs with only its import changed."""

from __future__ import annotations

import io
from contextlib import redirect_stdout

import jax
import numpy as np
import pytest

from hlotag import ArgumentError, ParseError, UnsupportedError, XlaError, xla
from xla_programs import ADD_HLO, ONE_TO_THREE, SHARDED_HLO, SUM, add_on

BASIC = '''
from jaxlib import xla_client
import numpy as np

client = xla_client.make_cpu_client()
options = xla_client.CompileOptions()

hlo_text = """
HloModule add_vectors

ENTRY main {
  x = f32[3] parameter(0)
  y = f32[3] parameter(1)
  ROOT sum = f32[3] add(x, y)
}
"""
executable = client.compile_and_load(
    computation=hlo_text,
    executable_devices=client.local_devices()[:1],
    compile_options=options,
)

x = client.buffer_from_pyval(np.array([1.0, 2.0, 3.0], dtype=np.float32))
y = client.buffer_from_pyval(np.array([4.0, 5.0, 6.0], dtype=np.float32))
results = executable.execute([x, y])
print(results[0])
'''
OPTIONS = (
    BASIC
    + """
options = xla_client.CompileOptions()
build_options = xla_client.ExecutableBuildOptions()
build_options.num_replicas = 1
build_options.num_partitions = 1
debug_options = xla_client.DebugOptions()
debug_options.xla_cpu_enable_fast_math = True
debug_options.xla_backend_optimization_level = 2
build_options.debug_options = debug_options
options.executable_build_options = build_options

executable = client.compile_and_load(hlo_text, client.local_devices()[:1], options)
stats = executable.get_compiled_memory_stats()
print(stats.argument_size_in_bytes, stats.output_size_in_bytes)
"""
)
SHARDED = (
    BASIC
    + """
devices = client.local_devices()
executable = client.compile_and_load(hlo_text, executable_devices=devices[:2])

a0 = client.buffer_from_pyval(np.array([1.0, 2.0, 3.0], dtype=np.float32), device=devices[0])
b0 = client.buffer_from_pyval(np.array([4.0, 5.0, 6.0], dtype=np.float32), device=devices[0])
a1 = client.buffer_from_pyval(np.array([10.0, 20.0, 30.0], dtype=np.float32), device=devices[1])
b1 = client.buffer_from_pyval(np.array([40.0, 50.0, 60.0], dtype=np.float32), device=devices[1])
results = executable.execute_sharded([[a0, b0], [a1, b1]], with_tokens=True)

for i, arrays in enumerate(results.disassemble_into_single_device_arrays()):
    print(i, arrays[0])
token = results.consume_token()
token.block_until_ready()
"""
)
SERIALIZED = (
    BASIC
    + """
serialized = client.serialize_executable(executable)
loaded = client.deserialize_executable(
    serialized=serialized,
    executable_devices=client.local_devices()[:1],
    options=options,
)
print(loaded.execute([x, y])[0])
"""
)
EXAMPLES = {
    "basic": (BASIC, "[5. 7. 9.]\n"),
    "options": (OPTIONS, "[5. 7. 9.]\n24 12\n"),
    "sharded": (SHARDED, "[5. 7. 9.]\n0 [5. 7. 9.]\n1 [50. 70. 90.]\n"),
    "serialization": (SERIALIZED, "[5. 7. 9.]\n[5. 7. 9.]\n"),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs_with_its_import_changed(name):
    source, expected = EXAMPLES[name]
    lines = ["from hlotag import xla as xla_client" if "xla_client" in s and "import" in s else s for s in source.splitlines()]
    output = io.StringIO()
    with redirect_stdout(output):
        exec("\n".join(lines), {})
    assert output.getvalue() == expected


def lists(arrays):
    return [[array.tolist() for array in inner] for inner in arrays]


def shards(client):
    """Of two arguments on two devices, by device."""
    return [[client.buffer_from_pyval(ONE_TO_THREE * f, device) for f in (1, 2)] for device in client.local_devices()]


TWO_RESULTS = ADD_HLO.replace("ROOT sum", "sum").replace(
    "\n}", "\n  difference = f32[3]{0} subtract(x, y)\n  ROOT both = (f32[3]{0}, f32[3]{0}) tuple(sum, difference)\n}"
)


def test_arguments_by_device_and_by_parameter(client):
    """Results have the order of the arguments."""
    loaded = client.compile_and_load(TWO_RESULTS, client.local_devices())
    (x0, y0), (x1, y1) = shards(client)
    total, difference = [3, 6, 9], [-1, -2, -3]
    by_parameter = loaded.execute_sharded([[x0, x1], [y0, y1]]).disassemble_into_single_device_arrays()
    assert lists(by_parameter) == [[total] * 2, [difference] * 2]
    by_device = loaded.execute_sharded([[x0, y0], [x1, y1]])
    assert lists(by_device.disassemble_prefix_into_single_device_arrays(n=1)) == [[total], [total]]
    assert by_device.consume_with_handlers(handlers=[len]) == [2]
    one = client.compile_and_load("HloModule m\nENTRY e { ROOT x = f32[3] parameter(0) }")
    assert lists(one.execute_sharded([[x0]]).disassemble_into_single_device_arrays()) == [[[1, 2, 3]]]


def test_arguments_that_lie_in_no_order(client):
    loaded = client.compile_and_load(ADD_HLO, client.local_devices())
    (x0, y0), (x1, y1) = shards(client)
    for given in ([[x0, y1], [x1, y0]], [[x1, y1], [x0, y0]], [[x0, y0], [x1]]):
        with pytest.raises(ArgumentError, match=r"argument \d (must have arrays on|is a list of)"):
            loaded.execute_sharded(given)
    y1.delete()
    for given in ([[x0, y0], [x1, y1]], [[x0, x1], [y0, y1]]):
        with pytest.raises(ArgumentError, match=r"the array of argument 1 on .*1 has been deleted or donated"):
            loaded.execute_sharded(given)


def test_errors_are_those_of_xla(client):
    """Code for the documented API catches one class."""
    invalid = client.compile_and_load(ADD_HLO)
    for wrong, kind in [
        (lambda: invalid.execute([]), ArgumentError),
        (lambda: client.deserialize_executable(b"x"), XlaError),
        (lambda: client.compile_and_load("HloModule"), ParseError),
        (lambda: client.compile_and_load("module { func.func @main("), ParseError),
        (lambda: client.compile_and_load(ADD_HLO, None, replicas_of_partitions()), UnsupportedError),
    ]:
        with pytest.raises(kind) as caught:
            wrong()
        error = caught.value
        assert isinstance(error, xla.XlaRuntimeError) and str(error) == error.args[0] == error.error_message


def replicas_of_partitions():
    options = xla.CompileOptions()
    options.num_replicas = options.num_partitions = 2
    return options


def test_signatures(client):
    assert xla.CompileOptions.ParseFromString(s=xla.CompileOptions().SerializeAsString()).num_replicas == 1
    loaded = client.compile_and_load(SHARDED_HLO, client.local_devices()[::-1])
    assert loaded.keep_alive() is None
    halves = [client.buffer_from_pyval(np.float32([1, 2]), device) for device in client.local_devices()[::-1]]
    token = loaded.execute_sharded([halves, halves], with_tokens=True).consume_token()
    for device in client.local_devices():
        assert token.get_token(device_id=device.id).block_until_ready() is None


def test_an_executable_that_is_not_loaded_does_not_run(client):
    unloaded = client.compile(ADD_HLO)
    for name in ("execute", "execute_sharded", "execute_with_token", "local_devices"):
        with pytest.raises(AttributeError, match=f"Executable has no '{name}'"):
            getattr(unloaded, name)


def test_a_portable_executable(client):
    options = xla.CompileOptions()
    options.compile_portable_executable = True
    for device in client.local_devices():
        loaded = client.compile_and_load(ADD_HLO, device, options)
        assert loaded.execute(add_on(client, device), device)[0].tolist() == SUM
    serialized = loaded.serialize()
    again = client.deserialize_executable(serialized, client.local_devices()[0], options)
    assert again.execute(add_on(client))[0].tolist() == SUM


# --- Layouts -----------------------------------------------------------------------------------------------------------------

MATRIX_HLO = "HloModule m\n\nENTRY main { x = f32[2,3] parameter(0)\n ROOT y = f32[2,3] negate(x) }\n"
COLUMNS = xla.Shape.array_shape(np.dtype("float32"), [2, 3], [0, 1])
ROWS = xla.Shape.array_shape(np.dtype("float32"), [2, 3], [1, 0])


def test_arguments_of_another_layout(client):
    from jax.experimental.layout import Format, Layout

    x = client.buffer_from_pyval(np.arange(6, dtype=np.float32).reshape(2, 3))
    options = xla.CompileOptions()
    options.argument_layouts = [COLUMNS]
    by_columns = client.compile_and_load(MATRIX_HLO, options=options)
    with pytest.raises(ArgumentError, match=r"argument 0 has the dimensions \(0, 1\) .*, but the parameter is f32\[2,3\]\{0,1\}"):
        by_columns.execute([x])
    turned = jax.device_put(x, Format(Layout((1, 0)), x.sharding))
    assert by_columns.execute([turned])[0].tolist() == (-np.asarray(x)).tolist()
    with pytest.raises(ArgumentError, match=r"\(1, 0\) from major to minor"):
        client.compile_and_load(MATRIX_HLO).execute([turned])


@pytest.mark.parametrize("compile_", ["compile", "compile_and_load"])
def test_a_layout_of_the_result(client, compile_):
    options = xla.CompileOptions()
    for wanted, error, message in [
        (COLUMNS, UnsupportedError, r"ignores result_layout=f32\[2,3\]\{0,1\} and uses f32\[2,3\]\{1,0\}; leave the option out"),
        (xla.Shape.array_shape(np.dtype("int32"), [2, 3], [1, 0]), ArgumentError, r"result_layout is s32.* result is f32\[2,3\]"),
        (xla.Shape.array_shape(np.dtype("float32"), [7], [0]), ArgumentError, r"result_layout is f32\[7\]"),
    ]:
        options.executable_build_options.result_layout = wanted
        with pytest.raises(error, match=message):
            getattr(client, compile_)(MATRIX_HLO, options=options)
    options.executable_build_options.result_layout = ROWS
    assert getattr(client, compile_)(MATRIX_HLO, options=options).get_output_layouts()
