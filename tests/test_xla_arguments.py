# SPDX-License-Identifier: Apache-2.0
"""Devices, options and arguments that do not fit a program are refused before jaxlib aborts or ignores them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.layout import Format, Layout
from jaxlib import _jax

from hlotag import ArgumentError, xla
from xla_programs import ADD_HLO, NEGATE_HLO, ONE_TO_THREE, SUM, add_on


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
