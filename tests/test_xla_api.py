# SPDX-License-Identifier: Apache-2.0
"""Every name of the compile and execute API: it is there, it works on a real program, and its result is right."""

from __future__ import annotations

import copy
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hlotag import ArgumentError, XlaError, xla
from xla_programs import ADD_HLO, ONE_TO_THREE, SHARDED_HLO, SUM, add_on


@pytest.fixture(scope="module")
def executable(client):
    return client.compile_and_load(ADD_HLO, client.local_devices()[:1])


@pytest.fixture(scope="module")
def unloaded(client):
    return client.compile(ADD_HLO, client.local_devices()[:1])


@pytest.fixture(scope="module")
def sharded(client):
    return client.compile_and_load(SHARDED_HLO, client.local_devices())


@pytest.fixture
def results(client, sharded):
    halves = [client.buffer_from_pyval(np.float32([i, i + 1]), device) for i, device in enumerate(client.local_devices())]
    return sharded.execute_sharded([halves, halves], with_tokens=True)


# --- Options -----------------------------------------------------------------------------------------------------------------

SHAPE = xla.Shape.array_shape(np.dtype("float32"), [3], [0])
ASSIGNMENT = xla.DeviceAssignment.create(np.array([[1]], np.int32))
COMPILE_OPTIONS = {
    "argument_layouts": [SHAPE, SHAPE],
    "parameter_is_tupled_arguments": True,
    "tuple_arguments": True,
    "num_replicas": 3,
    "num_partitions": 5,
    "profile_version": 7,
    "device_assignment": ASSIGNMENT,
    "compile_portable_executable": True,
    "env_option_overrides": [("xla_backend_optimization_level", 1)],
}
BUILD_OPTIONS = {
    "result_layout": SHAPE,
    "fdo_profile": b"profile",
    "num_replicas": 2,
    "num_partitions": 4,
    "device_assignment": ASSIGNMENT,
    "use_spmd_partitioning": True,
    "use_auto_spmd_partitioning": True,
    "auto_spmd_partitioning_mesh_shape": [2, 2],
    "auto_spmd_partitioning_mesh_ids": [3, 2, 1, 0],
    "use_shardy_partitioner": True,
}
DEBUG_OPTIONS = {
    "xla_cpu_enable_fast_math": True,
    "xla_gpu_enable_fast_min_max": True,
    "xla_backend_optimization_level": 2,
    "xla_cpu_enable_xprof_traceme": True,
    "xla_force_host_platform_device_count": 9,
    "xla_dump_to": "/nowhere",
    "xla_dump_hlo_module_re": "jit_.*",
    "xla_dump_hlo_as_text": True,
    "xla_dump_hlo_as_proto": True,
    "xla_detailed_logging": True,
    "xla_enable_dumping": False,
}


def same(one, other):
    return str(one) == str(other) if isinstance(other, xla.Shape | xla.DeviceAssignment) else one == other


def reread(options):
    return xla.CompileOptions.ParseFromString(options.SerializeAsString())


@pytest.mark.parametrize(("name", "value"), COMPILE_OPTIONS.items())
def test_compile_option(name, value):
    options = xla.CompileOptions()
    assert not same(getattr(options, name), value)
    setattr(options, name, value)
    for found in (getattr(options, name), getattr(reread(options), name)):
        assert str(found) == str(value)


@pytest.mark.parametrize(("name", "value"), BUILD_OPTIONS.items())
@pytest.mark.parametrize("how", ["in place", "assigned"])
def test_build_option(name, value, how):
    options = xla.CompileOptions()
    build = options.executable_build_options if how == "in place" else xla.ExecutableBuildOptions()
    assert not same(getattr(build, name), value)
    setattr(build, name, value)
    if how == "assigned":
        options.executable_build_options = build
    for found in (options, reread(options)):
        assert same(getattr(found.executable_build_options, name), value)


@pytest.mark.parametrize(("name", "value"), DEBUG_OPTIONS.items())
@pytest.mark.parametrize("how", ["in place", "assigned"])
def test_debug_option(name, value, how):
    options = xla.CompileOptions()
    debug = options.executable_build_options.debug_options if how == "in place" else xla.DebugOptions()
    setattr(debug, name, value)
    if how == "assigned":
        build = xla.ExecutableBuildOptions()
        build.debug_options = debug
        options.executable_build_options = build
    for found in (options, reread(options)):
        assert getattr(found.executable_build_options.debug_options, name) == value


def test_assigned_options_keep_what_has_no_name():
    """Options that were read may have fields that jaxlib shows nowhere; they are assigned with the rest."""
    source, target = xla.CompileOptions(), xla.CompileOptions()
    source.executable_build_options.compilation_environments_from_serialized_proto(b"")
    source.executable_build_options.num_partitions = 3
    target.num_replicas = 2
    target.profile_version = 9
    target.executable_build_options = source.executable_build_options
    assert (target.num_replicas, target.num_partitions, target.profile_version) == (1, 3, 9)
    assert target.executable_build_options._message() == source.executable_build_options._message()


def test_assigned_options_are_a_copy_and_views_follow():
    options, build = xla.CompileOptions(), xla.ExecutableBuildOptions()
    debug = options.executable_build_options.debug_options
    options.executable_build_options = build
    build.num_replicas = 4
    assert options.num_replicas == 1
    debug.xla_dump_to = "/later"
    assert options.executable_build_options.debug_options.xla_dump_to == "/later"


@pytest.mark.parametrize("make", [pickle.dumps, copy.copy, copy.deepcopy])
def test_options_are_copied(make):
    options = xla.CompileOptions()
    options.num_replicas = 6
    made = make(options)
    assert (pickle.loads(made) if isinstance(made, bytes) else made).num_replicas == 6


@pytest.mark.parametrize("kind", [xla.CompileOptions, xla.ExecutableBuildOptions, xla.DebugOptions])
def test_unknown_option(kind):
    known = next(name for name in dir(kind()) if name.startswith(("num", "xla_dump_to")))
    with pytest.raises(AttributeError, match=f"no option '{known}s'; did you mean .*{known}"):
        setattr(kind(), f"{known}s", 1)
    with pytest.raises(AttributeError, match="no option"):
        getattr(kind(), f"{known}s")


def test_option_of_the_wrong_type():
    with pytest.raises(TypeError, match="num_replicas must be a value like 1, not 'two'"):
        xla.CompileOptions().num_replicas = "two"
    with pytest.raises(TypeError, match=r"must be an hlotag\.xla\.ExecutableBuildOptions, not .*DebugOptions"):
        xla.CompileOptions().executable_build_options = xla.DebugOptions()


@pytest.mark.parametrize("bad", [b"hello", b"\xff\xff", xla.CompileOptions().SerializeAsString()[:-5]])
def test_bytes_that_are_no_options(bad):
    with pytest.raises(XlaError, match=r"are not an xla\.CompileOptionsProto: .*serialize it again"):
        xla.CompileOptions.ParseFromString(bad)
    with pytest.raises(XlaError, match=r"are not an xla\.CompilationEnvironmentsProto"):
        xla.ExecutableBuildOptions().compilation_environments_from_serialized_proto(bad)


def test_options_reach_xla(client, tmp_path):
    """Dumps of one compilation, without XLA_FLAGS: by each of the two ways."""
    for number, way in enumerate(("debug_options", "env_option_overrides")):
        folder, options = tmp_path / way, xla.CompileOptions()
        if way == "debug_options":
            options.executable_build_options.debug_options.xla_dump_to = str(folder)
            options.executable_build_options.debug_options.xla_dump_hlo_as_text = True
        else:
            options.env_option_overrides = [("xla_dump_to", str(folder)), ("xla_dump_hlo_as_text", True)]
        client.compile_and_load(ADD_HLO.replace("add_vectors", f"dumped_{number}"), compile_options=options)
        assert [file.name for file in folder.glob(f"*dumped_{number}*before_optimizations.txt")]


def test_unknown_flag(client):
    options = xla.CompileOptions()
    options.env_option_overrides = [("xla_no_such_flag", "1")]
    with pytest.raises(XlaError, match="cannot compile the program: No such compile option: 'xla_no_such_flag'"):
        client.compile_and_load(ADD_HLO, options=options)


# --- Client ------------------------------------------------------------------------------------------------------------------


def test_client_names(client):
    assert client.platform == "cpu"
    assert client.local_devices() == client.devices() and client.device_count() == 2
    assert xla.Client(client) == client and len({xla.Client(client), client}) == 1
    assert "cpu, 2 devices" in repr(client)


def test_client_of_jax():
    assert xla.Client("cpu").devices() == jax.devices("cpu")
    assert xla.Client(jax.devices()[0].client) == xla.Client()
    x = jnp.arange(3.0)
    assert xla.compile_and_load(ADD_HLO).execute([x, x])[0].tolist() == [0, 2, 4]
    with pytest.raises(TypeError, match="jaxlib client or the name of a platform"):
        xla.Client(3)


@pytest.mark.parametrize("devices", [list, tuple, lambda d: xla.DeviceList(tuple(d)), lambda d: d[0], lambda d: None])
def test_devices_in_any_form(client, devices):
    loaded = client.compile_and_load(ADD_HLO, devices(client.local_devices()[:1]))
    assert loaded.local_devices() == client.local_devices()[:1]
    assert loaded.execute(add_on(client))[0].tolist() == SUM


def test_another_device(client):
    device = client.local_devices()[1]
    loaded = client.compile_and_load(ADD_HLO, [device])
    (result,) = loaded.execute(add_on(client, device), device)
    assert result.tolist() == SUM and result.devices() == {device}


def test_other_names_are_those_of_jaxlib():
    assert xla.PrimitiveType.F32 and xla.OpSharding and xla.HloPrintOptions()
    with pytest.raises(AttributeError, match="jaxlib has no 'NoSuchThing'"):
        _ = xla.NoSuchThing


def test_functions_of_the_module():
    x = jnp.arange(3.0)
    assert xla.compile(ADD_HLO).cost_analysis()["flops"] == 3
    serialized = xla.serialize_executable(xla.compile_and_load(ADD_HLO, client="cpu"))
    assert xla.deserialize_executable(serialized).execute([x, x])[0].tolist() == [0, 2, 4]


def test_host_callbacks(client):
    """The parameter is there for platforms that need it; the CPU's callbacks come with the program."""
    assert client.compile_and_load(ADD_HLO, host_callbacks=[]).execute(add_on(client))[0].tolist() == SUM
    seen = []
    lowered = jax.jit(lambda x: jax.pure_callback(lambda v: seen.append(v) or v * 2, x, x)).lower(jnp.float32(0))
    loaded = xla.compile_and_load(lowered)
    del lowered
    assert loaded.execute([jnp.float32(21)])[0] == 42 and len(seen) == 1


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (ONE_TO_THREE, "float32"),
        (np.arange(4.0), "float64"),
        (np.arange(4), "int64"),
        ([[1, 2], [3, 4]], "int64"),
        (3.0, "float32"),
        (True, "bool"),
        (jnp.arange(3, dtype=jnp.bfloat16), "bfloat16"),
        (np.zeros((0, 3), np.complex64), "complex64"),
    ],
)
def test_buffer_from_pyval(client, value, dtype):
    for device in client.local_devices():
        made = client.buffer_from_pyval(value, device)
        assert made.dtype == dtype and made.devices() == {device}
        assert np.array_equal(np.asarray(made), np.asarray(value))


def test_buffer_may_be_a_copy(client):
    data = np.zeros(1024, np.float32)
    copied = client.buffer_from_pyval(data, force_copy=True).block_until_ready()
    until_call = client.buffer_from_pyval(data, host_buffer_semantics=xla.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL)
    data[:] = 1
    assert copied.sum() == 0 and until_call.sum() == 0


def test_buffers_of_other_representations(client):
    with pytest.raises(ArgumentError, match=r"dtype >f4 are not in native order; pass x\.astype\('float32'\)"):
        client.buffer_from_pyval(np.array([1, 2], ">f4"))
    with pytest.raises(ArgumentError, match=r"a masked array would lose its mask; pass argument\.filled"):
        client.buffer_from_pyval(np.ma.array([1.0, 2.0], mask=[False, True]))


@pytest.mark.parametrize("bad", [np.array([object()]), np.array(["text"]), None, [[1], [2, 3]]])
def test_buffer_of_no_numbers(client, bad):
    with pytest.raises((ArgumentError, XlaError, ValueError)):
        client.buffer_from_pyval(bad)


# --- Executables -------------------------------------------------------------------------------------------------------------


def hlo_text(executable):
    return executable.hlo_modules()[0].to_string()


QUERIES = {
    "hlo_modules": lambda e: len(e.hlo_modules()) == 1 and hlo_text(e).count('frontend_attributes={owner="me",stage="7"}') >= 1,
    "get_output_memory_kinds": lambda e: e.get_output_memory_kinds() == [["device"]],
    "get_output_shardings": lambda e: e.get_output_shardings() is None,
    "get_parameter_shardings": lambda e: e.get_parameter_shardings() is None,
    "get_parameter_layouts": lambda e: [str(layout) for layout in e.get_parameter_layouts()] == ["{0}", "{0}"],
    "get_output_layouts": lambda e: [str(layout) for layout in e.get_output_layouts()] == ["{0}"],
    "get_compiled_memory_stats": lambda e: (
        (stats := e.get_compiled_memory_stats()).argument_size_in_bytes == 24
        and stats.output_size_in_bytes == 12
        and isinstance(stats, xla.CompiledMemoryStats)
    ),
    "serialize": lambda e: isinstance(e.serialize(), bytes) and len(e.serialize()) > 1000,
    "cost_analysis": lambda e: (cost := e.cost_analysis())["flops"] == 3 and cost["bytes accessed"] == 36,
}
LOADED = {
    "client": lambda e, c: e.client == c,
    "traceback": lambda e, c: "test_xla_api" in str(e.traceback),
    "fingerprint": lambda e, c: e.fingerprint is None or isinstance(e.fingerprint, bytes | str),
    "local_devices": lambda e, c: e.local_devices() == c.local_devices()[:1],
    "size_of_generated_code_in_bytes": lambda e, c: e.size_of_generated_code_in_bytes() == 0,  # the CPU's does not say
    "execute": lambda e, c: [r.tolist() for r in e.execute(add_on(c))] == [SUM],
    "execute_with_token": lambda e, c: (
        (pair := e.execute_with_token(add_on(c)))[0][0].tolist() == SUM
        and isinstance(pair[1], xla.Token)
        and pair[1].block_until_ready() is None
    ),
    "execute_sharded": lambda e, c: e.execute_sharded(add_on(c)).disassemble_into_single_device_arrays()[0][0].tolist() == SUM,
    "keep_alive": lambda e, c: e.keep_alive(object()) is None,
    "get_hlo_text": lambda e, c: 'owner="me"' in e.get_hlo_text(),  # jaxlib's own, handed through
}


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("kind", ["executable", "unloaded"])
def test_executable(request, kind, name):
    it = request.getfixturevalue(kind)
    assert isinstance(it, xla.Executable) and isinstance(it, xla.LoadedExecutable) == (kind == "executable")
    assert QUERIES[name](it)


@pytest.mark.parametrize("name", LOADED)
def test_loaded_executable(client, executable, name):
    assert LOADED[name](executable, client)


def test_keep_alive_keeps(client):
    import gc
    import weakref

    class Thing:
        pass

    thing, loaded = Thing(), client.compile_and_load(ADD_HLO)
    alive = weakref.ref(thing)
    loaded.keep_alive(thing)
    del thing
    gc.collect()
    assert alive() is not None
    del loaded
    gc.collect()
    assert alive() is None


def test_sharded_queries(sharded, client):
    assert sharded.local_devices() == client.local_devices()
    for shardings in (sharded.get_parameter_shardings(), sharded.get_output_shardings()):
        assert [list(sharding.tile_assignment_dimensions) for sharding in shardings] == [[2]] * len(shardings)
    assert "num_partitions=2" in hlo_text(sharded)


def test_an_executable_of_jax_is_wrapped():
    compiled = jax.jit(lambda x: x * 2).lower(jnp.arange(3.0)).compile()
    loaded = xla.LoadedExecutable(compiled.runtime_executable())
    assert loaded.execute([jnp.arange(3.0)])[0].tolist() == [0, 2, 4]
    assert xla.deserialize_executable(loaded.serialize()).execute([jnp.arange(3.0)])[0].tolist() == [0, 2, 4]
    with pytest.raises(TypeError, match="must be jaxlib's loaded executable"):
        xla.LoadedExecutable(compiled)


# --- Results -----------------------------------------------------------------------------------------------------------------

ADDED = [[[0, 2], [2, 4]]]


def lists(results):
    return [[array.tolist() for array in devices] for devices in results]


def test_results_are_taken_device_by_device(results):
    assert isinstance(results, xla.ExecuteResults) and len(results) == 1
    assert lists(results.disassemble_into_single_device_arrays()) == ADDED
    with pytest.raises(ArgumentError, match="results can be taken once"):
        results.disassemble_into_single_device_arrays()


def test_a_prefix_of_the_results(results):
    assert results.disassemble_prefix_into_single_device_arrays(0) == [] and len(results) == 1
    with pytest.raises(ArgumentError, match="there are 1 results, so the first 2 cannot be taken"):
        results.disassemble_prefix_into_single_device_arrays(2)
    with pytest.raises(ArgumentError, match="the first -1 cannot"):
        results.disassemble_prefix_into_single_device_arrays(-1)
    assert lists(results.disassemble_prefix_into_single_device_arrays(1)) == ADDED


def test_handlers(results):
    with pytest.raises(ArgumentError, match="1 results left, and 2 handlers"):
        results.consume_with_handlers([len, len])
    with pytest.raises(ArgumentError, match="1 results left, and 0 handlers"):
        results.consume_with_handlers([])
    with pytest.raises(ArgumentError, match="1 results left, and 2 handlers"):
        results.consume_with_handlers([len, len], strict=False)
    assert results.consume_with_handlers([lambda arrays: sum(float(a.sum()) for a in arrays)]) == [8]


def test_fewer_handlers(client):
    results = client.compile_and_load(
        "module { func.func @main(%x: tensor<f32>) -> (tensor<f32>, tensor<f32>) { return %x, %x : tensor<f32>, tensor<f32> } }"
    ).execute_sharded([client.buffer_from_pyval(np.float32(3))])
    assert results.consume_with_handlers([lambda arrays: arrays[0].item()], strict=False) == [3]


def test_tokens(results, client, sharded):
    token = results.consume_token()
    assert isinstance(token, xla.ShardedToken) and token.block_until_ready() is None
    assert all(isinstance(token.get_token(i), xla.Token) and token.get_token(i).block_until_ready() is None for i in range(2))
    assert token.get_token(device_id=1).block_until_ready() is None
    for bad in (2, -1):
        with pytest.raises(IndexError, match=rf"tokens for the devices \[0, 1\], and none for {bad}"):
            token.get_token(bad)
    with pytest.raises(ArgumentError, match="taken once"):
        results.consume_token()
    data = [client.buffer_from_pyval(np.float32([0, 0]), device) for device in client.local_devices()]
    with pytest.raises(ArgumentError, match="with_tokens=True"):
        sharded.execute_sharded([data, data]).consume_token()


def test_a_global_array(client, sharded):
    mesh = jax.sharding.Mesh(client.local_devices(), ("d",))
    split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("d"))
    x = jax.device_put(np.arange(4, dtype=np.float32), split)
    results = sharded.execute_sharded([x, x])
    (whole,) = results.consume_with_handlers([lambda arrays: jax.make_array_from_single_device_arrays((4,), split, arrays)])
    assert whole.tolist() == [0, 2, 4, 6]
