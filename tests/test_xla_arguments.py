# SPDX-License-Identifier: Apache-2.0
"""Devices, options and arguments that do not fit a program are refused with what was given, before jaxlib sees them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxlib import _jax

from hlotag import ArgumentError, XlaError, xla
from xla_programs import ADD_HLO, ONE_TO_THREE, SUM, add_on

# --- Devices and options -----------------------------------------------------------------------------------------------------


def options(**values):
    result = xla.CompileOptions()
    for name, value in values.items():
        setattr(result, name, value)
    return result


def assignment(*ids):
    return xla.DeviceAssignment.create(np.array(ids, np.int32))


DEVICES = {
    "too many": (lambda c: c.devices(), {}, "1 replicas of 1 partitions need 1 devices, but there are 2; pass 1, or set"),
    "none": (lambda c: [], {}, "need 1 devices, but there are 0"),
    "too few": (lambda c: c.devices()[:1], {"num_replicas": 2}, "2 replicas of 1 partitions need 2 devices, but there are 1"),
    "more than there are": (lambda c: None, {"num_replicas": 3}, "3 replicas of 1 partitions need 3 devices, but there are 2"),
    "twice": (lambda c: c.devices()[:1] * 2, {"num_replicas": 2}, "a device is given twice"),
    "of another client": (lambda c: jax.devices()[:1], {}, "belongs to another client; this client has"),
    "no list": (lambda c: 3, {}, "devices must be a list, got 3 of type int"),
    "options": (lambda c: xla.CompileOptions(), {}, "expected devices before the options; write options=..."),
    "no device": (lambda c: ["cpu:0"], {}, "'cpu:0' is not a device; this client has"),
    "no replicas": (lambda c: None, {"num_replicas": 0}, "at least 1 replica and 1 partition, not num_replicas=0"),
    "fewer than none": (lambda c: None, {"num_partitions": -1}, "not num_replicas=1, num_partitions=-1"),
    "fewer replicas than the program": (
        lambda c: None,
        {"program": ADD_HLO.replace("HloModule add_vectors", "HloModule m, replica_count=2"), "profile_version": 1},
        "the program is for num_replicas=2, but options have 1; set options.num_replicas = 2",
    ),
    "another assignment": (
        lambda c: None,
        {"device_assignment": assignment([0], [1])},
        "device_assignment is .*; set it to None",
    ),
    "an assignment of other devices": (
        lambda c: c.devices()[:1],
        {"device_assignment": assignment([1])},
        r"device_assignment is .*\{1\}\}, but the devices are \[.*id=0\)\]; pass only one of them",
    ),
    "an assignment in another order": (
        lambda c: c.devices(),
        {"device_assignment": assignment([1], [0]), "num_replicas": 2},
        r"device_assignment is .*\{1 0\}\}, but the devices are",
    ),
    "an assignment of no device": (lambda c: None, {"device_assignment": assignment([7])}, "7 is not a device; this client has"),
}


@pytest.mark.parametrize("kind", DEVICES)
def test_devices_that_do_not_fit(client, serialized, kind):
    devices, values, message = DEVICES[kind]
    program, values = values.get("program", ADD_HLO), {name: value for name, value in values.items() if name != "program"}
    with pytest.raises(ArgumentError, match=message):
        client.compile_and_load(program, devices(client), options(**values))
    if not values:
        with pytest.raises(ArgumentError, match=message):
            client.deserialize_executable(serialized, devices(client))


def test_options_that_do_not_fit(client):
    with pytest.raises(ArgumentError, match=r"options must be hlotag\.xla\.CompileOptions, not dict"):
        client.compile_and_load(ADD_HLO, options={"num_replicas": 1})
    with pytest.raises(ArgumentError, match="two names of one parameter"):
        client.compile_and_load(ADD_HLO, None, xla.CompileOptions(), options=xla.CompileOptions())
    for wrong in ("2", 1.5):
        with pytest.raises(ArgumentError, match="num_devices must be 1 or more, not"):
            xla.make_cpu_client(num_devices=wrong)  # pyright: ignore
    with pytest.raises(ArgumentError, match="asynchronous must be True or False, got 2"):
        xla.make_cpu_client(2)  # pyright: ignore
    with pytest.raises(ArgumentError, match="num_devices must be 1 or more, not 0"):
        xla.make_cpu_client(num_devices=0)
    shape = xla.Shape.array_shape(np.dtype("float32"), [3], [0])
    with pytest.raises(XlaError, match="specify 1 argument layouts, but computation has 2 arguments"):
        client.compile_and_load(ADD_HLO, options=options(argument_layouts=[shape]))
    assert client.compile_and_load(ADD_HLO, options=_jax.CompileOptions()).execute(add_on(client))[0].tolist() == SUM


def test_devices_of_the_assignment(client):
    given = options(device_assignment=assignment([1], [0]), num_replicas=2)
    assert client.compile_and_load(ADD_HLO, options=given).local_devices() == client.local_devices()[::-1]


def test_host_callbacks_that_are_no_list(client, serialized):
    for run in (
        lambda: client.compile_and_load(ADD_HLO, host_callbacks=3),
        lambda: client.deserialize_executable(serialized, host_callbacks=3),
    ):
        with pytest.raises(ArgumentError, match="host_callbacks must be a list, got 3 of type int"):
            run()


def test_options_given_are_not_changed(client):
    given = xla.CompileOptions()
    before = given.SerializeAsString()
    client.compile_and_load(ADD_HLO, client.devices()[1], given)
    assert given.SerializeAsString() == before


# --- Arguments ---------------------------------------------------------------------------------------------------------------


def deleted(client):
    array = client.buffer_from_pyval(ONE_TO_THREE)
    array.delete()
    return array


ARGUMENTS = {
    "too few": (lambda c, x: [x], r"the program has 2 parameters \(f32\[3\]\{0\}, f32\[3\]\{0\}\), but got 1 arguments"),
    "too many": (lambda c, x: [x, x, x], "has 2 parameters .* but got 3"),
    "none": (lambda c, x: [], "but got 0"),
    "no list": (lambda c, x: 3, "arguments must be a list of arrays, one per parameter, not int"),
    "dtype": (
        lambda c, x: [x, c.buffer_from_pyval(np.int32([1, 2, 3]))],
        "argument 1 is of dtype int32, but the parameter is f32",
    ),
    "shape": (
        lambda c, x: [x, c.buffer_from_pyval(np.float32([1]))],
        r"argument 1 has the shape \(1,\), but the parameter is f32\[3\]",
    ),
    "rank": (lambda c, x: [x, c.buffer_from_pyval(np.float32([[1, 2, 3]]))], r"the shape \(1, 3\)"),
    "NumPy": (lambda c, x: [ONE_TO_THREE, x], r"argument 0 is of type ndarray; put it on the device: client\.buffer_from_pyval"),
    "device": (
        lambda c, x: [x, c.buffer_from_pyval(ONE_TO_THREE, c.devices()[1])],
        "argument 1 is on .*1.*, but the program runs on",
    ),
    "client": (lambda c, x: [x, jnp.asarray(ONE_TO_THREE)], "argument 1 is on .* of another client"),
    "deleted": (lambda c, x: [deleted(c), x], "argument 0 has been deleted or donated"),
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


def test_tracers_and_keys_are_no_arguments():
    loaded = xla.compile_and_load(ADD_HLO)
    with pytest.raises(ArgumentError, match="argument 0 is being traced"):
        jax.jit(lambda x: loaded.execute([x, x]))(ONE_TO_THREE)
    keys = xla.compile_and_load(jax.jit(lambda key: jax.random.key_data(key)).lower(jax.random.key(0)))
    with pytest.raises(ArgumentError, match=r"pass its data: jax\.random\.key_data"):
        keys.execute([jax.random.key(0)])
    assert keys.execute([jax.random.key_data(jax.random.key(7))])[0].tolist() == [0, 7]


def test_arguments_on_several_devices_that_do_not_fit(client):
    both = client.compile_and_load(ADD_HLO, options=options(num_replicas=2))
    one, other = (client.buffer_from_pyval(ONE_TO_THREE, device) for device in client.devices())
    small = client.buffer_from_pyval(ONE_TO_THREE[:2], client.devices()[1])
    fits = [one, other]
    for given, message in [
        ([fits, [one]], "argument 1 is a list of 1 arrays, but the program runs on 2 devices"),
        ([fits, [other, one]], "argument 1 must have arrays on .*, in this order"),
        ([fits, [one, small]], "argument 1 has arrays of different shapes or dtypes"),
        ([fits, one], "argument 1 is on .*, but the program runs on"),
        ([fits], "has 2 parameters .* but got 1"),
    ]:
        with pytest.raises(ArgumentError, match=message):
            both.execute_sharded(given)
    with pytest.raises(ArgumentError, match="runs on 2 devices; use execute_sharded"):
        both.execute([one, one])
    with pytest.raises(ArgumentError, match=r"runs on .*0.*, not on .*1.*; compile it for that device"):
        client.compile_and_load(ADD_HLO).execute([one, one], client.devices()[1])
