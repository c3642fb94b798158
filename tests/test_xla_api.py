# SPDX-License-Identifier: Apache-2.0
"""The compile and execute API on a real program, beyond the examples of docs/xla.md; what does not fit one."""

import copy
import gc
import pickle
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.layout import Format, Layout
from jaxlib import _jax

from hlotag import xla
from hlotag.errors import ArgumentError
from xla_programs import ADD_HLO, NEGATE_HLO, ONE_TO_THREE, SHARDED_HLO, SUM, add_on, lists

# --- Options -----------------------------------------------------------------------------------------------------------------


def test_an_assignment_copies_options_and_views_follow():
    source, target = xla.CompileOptions(), xla.CompileOptions()
    debug = target.executable_build_options.debug_options
    source.tuple_arguments, source.env_option_overrides = True, [("xla_backend_optimization_level", 1)]
    source.executable_build_options.compilation_environments_from_serialized_proto(b"")
    source.executable_build_options.num_partitions = 3
    target.num_replicas, target.profile_version = 2, 9
    target.executable_build_options.use_spmd_partitioning = True
    target.executable_build_options = source.executable_build_options
    source.num_partitions = 4
    assert target.executable_build_options.use_spmd_partitioning is False
    debug.xla_dump_to = "/later"
    assert (target.num_replicas, target.num_partitions, target.profile_version) == (1, 3, 9)
    assert target.executable_build_options.debug_options.xla_dump_to == "/later"
    for made in (pickle.loads(pickle.dumps(source)), copy.copy(source), copy.deepcopy(source)):
        assert made.num_partitions == 4 and made.tuple_arguments is made.parameter_is_tupled_arguments is True
        assert made.env_option_overrides == source.env_option_overrides


def test_bad_options(client):
    for options in (xla.CompileOptions(), xla.ExecutableBuildOptions(), xla.DebugOptions()):
        with pytest.raises(AttributeError, match="no_such"):
            options.no_such = 1
        with pytest.raises(AttributeError, match="no_such"):
            _ = options.no_such
    options = xla.CompileOptions()
    options.env_option_overrides = [("xla_no_such_flag", "1")]
    with pytest.raises(xla.XlaRuntimeError, match="No such compile option: 'xla_no_such_flag'"):
        client.compile_and_load(ADD_HLO, options=options)


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


# --- Client ------------------------------------------------------------------------------------------------------------------


def test_clients_and_devices_in_any_form(client):
    assert client.platform == "cpu" and client.device_count() == 2
    assert xla.Client(client).jaxlib_object is client.jaxlib_object
    assert xla.Client("cpu").devices() == xla.Client().devices() == jax.devices("cpu")
    _, last = client.local_devices()
    for devices in ([last], (last,), xla.DeviceList((last,)), last):
        (result,) = client.compile_and_load(ADD_HLO, devices).execute(add_on(client, last), last)
        assert result.tolist() == SUM and result.devices() == {last}


def test_functions_and_names_of_the_module():
    x = jnp.arange(3.0)
    assert xla.compile_and_load(ADD_HLO).cost_analysis()["flops"] == 3
    serialized = xla.serialize_executable(xla.compile_and_load(ADD_HLO, client="cpu"))
    # An executable of JAX is wrapped.
    of_jax = xla.LoadedExecutable(jax.jit(lambda x, y: x + y).lower(x, x).compile().runtime_executable())
    for again in (xla.deserialize_executable(serialized), of_jax):
        assert again.execute([x, x])[0].tolist() == [0, 2, 4]
    assert xla.PrimitiveType.F32 and xla.OpSharding and xla.HloPrintOptions()
    with pytest.raises(AttributeError, match="jaxlib has no 'NoSuchThing'"):
        _ = xla.NoSuchThing


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        *[(np.arange(4.0), "float64"), ([[1, 2], [3, 4]], "int64"), (3.0, "float32"), (True, "bool")],
        *[(jnp.arange(3, dtype=jnp.bfloat16), "bfloat16"), (np.zeros((0, 3), np.complex64), "complex64")],
        (np.array([1, 2], ">f4"), "float32"),
    ],
)
def test_buffer_from_pyval(client, value, dtype):
    for device in client.local_devices():
        made = client.buffer_from_pyval(value, device)
        assert made.dtype == dtype and made.devices() == {device}
        assert np.array_equal(np.asarray(made), np.asarray(value))


def test_buffer_may_be_a_copy_and_has_numbers(client):
    data = np.zeros(1024, np.float32)
    copied = client.buffer_from_pyval(data, force_copy=True).block_until_ready()
    until_call = client.buffer_from_pyval(data, host_buffer_semantics=xla.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL)
    data[:] = 1
    assert copied.sum() == 0 and until_call.sum() == 0
    for bad in (np.array([object()]), np.array(["text"]), None, [[1], [2, 3]]):
        with pytest.raises((xla.XlaRuntimeError, ValueError)):
            client.buffer_from_pyval(bad)


# --- Executables -------------------------------------------------------------------------------------------------------------


def test_queries(client):
    """jaxlib's own, handed through."""
    unloaded, loaded = client.compile(ADD_HLO), client.compile_and_load(ADD_HLO)
    for executable in (unloaded, loaded):
        assert [str(layout) for layout in executable.get_parameter_layouts()] == ["{0}", "{0}"]
    assert loaded.cost_analysis()["flops"] == 3 and loaded.client is client.jaxlib_object
    (result,), token = loaded.execute_with_token(add_on(client))
    assert result.tolist() == SUM and isinstance(token, xla.Token) and token.block_until_ready() is None


def test_a_portable_executable_compiles_and_says_why_it_cannot_run(client):
    options = xla.CompileOptions()
    options.compile_portable_executable = True
    loaded = client.compile_and_load(ADD_HLO, options=options)
    assert loaded.serialize() and client.compile(ADD_HLO, options=options)
    # jaxlib 0.10.2 says it itself.
    with pytest.raises((ArgumentError, xla.XlaRuntimeError), match=r"compile_portable_executable|null device_assignment"):
        loaded.execute(add_on(client))


def test_keep_alive_keeps(client):
    thing, loaded = set(), client.compile_and_load(ADD_HLO)
    alive = weakref.ref(thing)
    loaded.keep_alive(thing)
    del thing
    gc.collect()
    assert alive() is not None and loaded.keep_alive() is None
    del loaded
    gc.collect()
    assert alive() is None


# --- Several devices ---------------------------------------------------------------------------------------------------------


def test_shardings_and_a_global_array(client):
    sharded = client.compile_and_load(SHARDED_HLO, client.local_devices())
    for shardings in (sharded.get_parameter_shardings(), sharded.get_output_shardings()):
        assert [list(sharding.tile_assignment_dimensions) for sharding in shardings] == [[2]] * len(shardings)
    split = jax.sharding.NamedSharding(jax.sharding.Mesh(client.local_devices(), ("d",)), jax.sharding.PartitionSpec("d"))
    x = jax.device_put(np.arange(4, dtype=np.float32), split)
    joined = lambda arrays: jax.make_array_from_single_device_arrays((4,), split, arrays)
    assert sharded.execute_sharded([x, x]).consume_with_handlers([joined])[0].tolist() == [0, 2, 4, 6]


def test_arguments_by_device_and_by_parameter(client):
    """Results have the order of the arguments."""
    two_results = ADD_HLO.replace("ROOT sum", "sum").replace(
        "\n}", "\n  difference = f32[3]{0} subtract(x, y)\n  ROOT both = (f32[3]{0}, f32[3]{0}) tuple(sum, difference)\n}"
    )
    loaded = client.compile_and_load(two_results, client.local_devices())
    (x0, y0), (x1, y1) = [
        [client.buffer_from_pyval(ONE_TO_THREE * f, device) for f in (1, 2)] for device in client.local_devices()
    ]
    total, difference = [3, 6, 9], [-1, -2, -3]
    assert lists(loaded.execute_sharded([[x0, x1], [y0, y1]])) == [[total] * 2, [difference] * 2]
    assert lists(loaded.execute_sharded([[x0, y0], [x1, y1]])) == [[total, difference]] * 2
    assert loaded.execute_sharded([[x0, x1], [y0, y1]]).consume_with_handlers([len], strict=False) == [2]
    one = client.compile_and_load("HloModule m\nENTRY e { ROOT x = f32[3] parameter(0) }")
    assert lists(one.execute_sharded([[x0]])) == [[[1, 2, 3]]]


# --- Devices, options and arguments that do not fit a program are refused before jaxlib aborts or ignores them ---


def options(**values):
    result = xla.CompileOptions()
    for name, value in values.items():
        setattr(result, name, value)
    return result


def assigned(*ids, **others):
    return {"device_assignment": xla.DeviceAssignment.create(np.array(ids, np.int32)), **others}


FOR_TWO = ADD_HLO.replace("HloModule add_vectors", "HloModule m, replica_count=2")
DEVICES = {  # the devices, the options, a part of the message
    "too many": (lambda c: c.devices(), {}, "1 replicas of 1 partitions need 1 different devices of this client, not"),
    "none": (lambda c: [], {}, "need 1"),
    "replicas of partitions": (lambda c: None, {"num_replicas": 2, "num_partitions": 2}, "use one mesh for both"),
    "too few": (lambda c: c.devices()[:1], {"num_replicas": 2}, "2 replicas of 1 partitions need 2"),
    "more than there are": (lambda c: None, {"num_replicas": 3}, "need 3"),
    "twice": (lambda c: c.devices()[:1] * 2, {"num_replicas": 2}, "need 2 different"),
    "of another client": (lambda c: jax.devices()[:1], {}, "different devices of this client, not"),
    "no list": (lambda c: 3, {}, "devices must be a list, got 3 of type int"),
    "no device": (lambda c: ["cpu:0"], {}, "different devices of this client"),
    "no replicas": (lambda c: None, {"num_replicas": 0}, "at least 1, not 0 and 1"),
    "fewer than none": (lambda c: None, {"num_partitions": -1}, "at least 1, not 1 and -1"),
    "an assignment of another size": (lambda c: None, assigned([0], [1]), "need 1"),
    "an assignment of no device": (lambda c: None, assigned([7]), r"of this client, not \[7\]"),
}


@pytest.mark.parametrize("kind", DEVICES)
def test_devices_that_do_not_fit(client, serialized, kind):
    devices, values, message = DEVICES[kind]
    with pytest.raises(ArgumentError, match=message):
        client.compile_and_load(ADD_HLO, devices(client), options(**values))
    if not values:
        with pytest.raises(ArgumentError, match=message):
            client.deserialize_executable(serialized, devices(client))


def test_options_that_do_not_fit(client):
    shape = xla.Shape.array_shape(np.dtype("float32"), [3], [0])
    for run, error, message in [
        (lambda: client.compile_and_load(ADD_HLO, options={}), ArgumentError, r"must be hlotag\.xla\.CompileOptions, not dict"),
        (lambda: client.compile_and_load(FOR_TWO, None, options()), ArgumentError, r"set options\.num_replicas = 2"),
        (lambda: client.compile(ADD_HLO, options=options(argument_layouts=[shape])), xla.XlaRuntimeError, "1 argument layouts"),
    ]:
        with pytest.raises(error, match=message):
            run()


def test_options_and_devices_that_fit(client):
    assert client.compile_and_load(ADD_HLO, options=_jax.CompileOptions()).execute(add_on(client))[0].tolist() == SUM
    given = options(**assigned([1], [0], num_replicas=2))
    before = given.SerializeAsString()
    assert client.compile_and_load(ADD_HLO, options=given).local_devices() == client.local_devices()[::-1]
    assert given.SerializeAsString() == before


# --- Arguments ---------------------------------------------------------------------------------------------------------------


ARGUMENTS = {
    "too few": (lambda c, x: [x], r"the program has 2 parameters \(f32\[3\]\{0\}, f32\[3\]\{0\}\), but got 1 arguments"),
    "too many": (lambda c, x: [x, x, x], "has 2 parameters .* but got 3"),
    "none": (lambda c, x: [], "but got 0"),
    "dtype": (lambda c, x: [x, c.buffer_from_pyval(np.int32([1, 2, 3]))], "1 is of dtype int32, but the parameter is f32"),
    "shape": (lambda c, x: [x, c.buffer_from_pyval(np.float32([1]))], r"shape \(1,\) .* but the parameter is f32\[3\]"),
    "rank": (lambda c, x: [x, c.buffer_from_pyval(np.float32([[1, 2, 3]]))], r"the shape \(1, 3\)"),
    "device": (lambda c, x: [x, c.buffer_from_pyval(ONE_TO_THREE, c.devices()[1])], "argument 1 is on .*1.*, but the program"),
    "client": (lambda c, x: [x, jnp.asarray(ONE_TO_THREE)], "argument 1 is on .* of another client"),
}


@pytest.mark.parametrize("kind", ARGUMENTS)
def test_arguments_that_do_not_fit(client, kind):
    arguments, message = ARGUMENTS[kind]
    loaded = client.compile_and_load(ADD_HLO)
    given = arguments(client, client.buffer_from_pyval(ONE_TO_THREE))
    for run in (loaded.execute, loaded.execute_with_token, loaded.execute_sharded):
        with pytest.raises(ArgumentError, match=message):
            run(given)
    assert loaded.execute(add_on(client))[0].tolist() == SUM


def test_keys_are_no_arguments():
    keys = xla.compile_and_load(jax.jit(lambda key: jax.random.key_data(key)).lower(jax.random.key(0)))
    with pytest.raises(ArgumentError, match=r"pass jax\.random\.key_data"):
        keys.execute([jax.random.key(0)])
    assert keys.execute([jax.random.key_data(jax.random.key(7))])[0].tolist() == [0, 7]


def test_arguments_on_several_devices_that_do_not_fit(client):
    both = client.compile_and_load(ADD_HLO, options=options(num_replicas=2))
    (x0, y0), (x1, y1) = [[client.buffer_from_pyval(ONE_TO_THREE, d) for _ in range(2)] for d in client.devices()]
    small = client.buffer_from_pyval(ONE_TO_THREE[:2], client.devices()[1])
    for given, message in [
        ([[x0, x1], [y0]], "an argument must have one array on each of .*, in this order"),
        ([[x0, x1], [y1, y0]], "in this order"),
        ([[x0, y1], [x1, y0]], "in this order"),
        ([[x1, y1], [x0, y0]], "in this order"),
        ([[x0, x1], [y0, small]], "of one shape"),
        ([[x0, x1], y0], "argument 1 is on .*, but the program runs on"),
        ([[x0, x1]], "has 2 parameters .* but got 1"),
    ]:
        with pytest.raises(ArgumentError, match=message):
            both.execute_sharded(given)


def test_arguments_of_another_layout(client):
    x = client.buffer_from_pyval(np.arange(6, dtype=np.float32).reshape(2, 3))
    layouts = [xla.Shape.array_shape(np.dtype("float32"), [2, 3], [0, 1])]
    by_columns = client.compile_and_load(NEGATE_HLO, options=options(argument_layouts=layouts))
    with pytest.raises(ArgumentError, match=r"argument 0 has the dimensions \(0, 1\) .*, but the parameter is f32\[2,3\]\{0,1\}"):
        by_columns.execute([x])
    turned = jax.device_put(x, Format(Layout((1, 0)), x.sharding))
    assert by_columns.execute([turned])[0].tolist() == (-np.asarray(x)).tolist()
    with pytest.raises(ArgumentError, match=r"\(1, 0\) from major to minor"):
        client.compile_and_load(NEGATE_HLO).execute([turned])
