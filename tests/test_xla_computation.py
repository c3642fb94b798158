# SPDX-License-Identifier: Apache-2.0
"""`xla_computation`: parameters, collectives and tags, beyond the examples of docs/xla.md."""

import collections
import functools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import hlotag
from hlotag import xla
from hlotag.errors import ArgumentError
from xla_programs import lists


@pytest.fixture(scope="module")
def client():
    return xla.make_cpu_client(num_devices=8)


def on_replicas(client, computation, *arguments, devices=None):
    """Runs a computation, argument[i] on replica i; the results as [output][replica]."""
    loaded = client.compile_and_load(computation, devices and client.local_devices()[:devices])
    shards = [list(map(client.buffer_from_pyval, argument, loaded.local_devices())) for argument in arguments]
    results = loaded.execute_sharded(shards).disassemble_into_single_device_arrays()
    return [np.stack([np.asarray(array) for array in devices]) for devices in results]


def cosine(x):
    return jnp.sin(jnp.cos(x))


def test_the_function_is_wrapped():
    made = hlotag.xla.xla_computation(jax.jit(cosine))
    assert made.__name__ == "cosine" and made(3.0).name() == "xla_computation_cosine"
    assert "xla_computation_unknown" in hlotag.xla.xla_computation(functools.partial(jnp.add, 1.0))(2.0).as_hlo_text()
    with pytest.raises(ArgumentError, match="takes a function, not 3"):
        hlotag.xla.xla_computation(3)
    with pytest.raises(ZeroDivisionError):
        hlotag.xla.xla_computation(lambda x: 1 // 0)(1.0)


# --- Arguments ---------------------------------------------------------------------------------------------------------------

DUCK = types.SimpleNamespace(shape=(2, 3), dtype=np.dtype(np.float32))
ARGUMENTS = {
    "duck": (DUCK, "f32[2,3]"),
    "duck with lists and names": (types.SimpleNamespace(shape=[2], dtype="int32"), "s32[2]"),
    "ShapeDtypeStruct": (jax.ShapeDtypeStruct((2, 3), jnp.bfloat16), "bf16[2,3]"),
    "NumPy": (np.zeros((2,), np.uint8), "u8[2]"),
    "NumPy, 64 bits": (np.zeros((2,), np.float64), "f32[2]"),  # as jax.jit takes it
    "JAX": (jnp.zeros((2,), bool), "pred[2]"),
    "int": (2, "s32[]"),
}


@pytest.mark.parametrize("kind", ARGUMENTS)
def test_argument(kind):
    given, expected = ARGUMENTS[kind]
    computation = hlotag.xla.xla_computation(lambda unused, x: x, instantiate_const_outputs=True)(1.0, given)
    assert [str(shape).split("{")[0] for shape in computation.program_shape().parameter_shapes()] == ["f32[]", expected]


Pair = collections.namedtuple("Pair", "first second")


def test_pytrees_and_keywords():
    """Parameters are the leaves, positional arguments first; keywords by name; None is nothing."""

    def f(tree, pair, *, b, a):
        return {"sum": tree["x"] + pair.second[0], "others": [a, b]}

    shapes = [jax.ShapeDtypeStruct((n,), np.float32) for n in range(6)]
    tree = {"y": shapes[1], "x": shapes[2], "none": None}
    computation, out = hlotag.xla.xla_computation(f, return_shape=True)(
        tree, Pair(shapes[3], [shapes[2]]), b=shapes[4], a=shapes[5]
    )
    assert str(computation.program_shape()) == (
        "(p0: f32[2], p1: f32[1], p2: f32[3], p3: f32[2], p4: f32[5], p5: f32[4]) -> (f32[5], f32[4], f32[2])"
    )
    assert jax.tree.map(lambda leaf: leaf.shape, out) == {"sum": (2,), "others": [(5,), (4,)]}


@pytest.mark.parametrize("count", [100, 101])
@pytest.mark.parametrize("tuple_args", [None, True, False])
def test_tuple(client, count, tuple_args):
    """Only when asked for, however many arguments there are. Either form runs."""
    computation = hlotag.xla.xla_computation(lambda *xs: sum(xs), tuple_args=tuple_args)(*[1.0] * count)
    assert len(computation.program_shape().parameter_shapes()) == (1 if tuple_args else count)
    assert on_replicas(client, computation, *[[np.float32(i)] for i in range(count)])[0] == sum(range(count))


def test_static_arguments():
    f = lambda n, x, name: (x * n, {"name" + name: x})
    computation, out = hlotag.xla.xla_computation(f, static_argnums=(0, -1), return_shape=True)(3, 2.0, "d")
    assert str(computation.program_shape()) == "(p0: f32[]) -> (f32[], f32[])" and list(out[1]) == ["named"]
    assert "constant(3)" in computation.as_hlo_text()
    for static in ([0, 2], np.array([0, 2]), (np.int64(0), np.int32(-1))):
        assert "constant(4)" in hlotag.xla.xla_computation(f, static_argnums=static)(4, 2.0, "d").as_hlo_text()


@pytest.mark.parametrize(
    ("backend", "call"), [("cpu", "lapack"), ("gpu", "cusolver"), ("cuda", "cusolver"), ("rocm", "hipsolver"), ("tpu", "Qr")]
)
def test_backend_need_not_be_there(backend, call):
    f = lambda x: (jnp.linalg.qr(x), lax.psum(x, "i"))
    text = hlotag.xla.xla_computation(f, axis_env=[("i", 2)], backend=backend)(np.ones((3, 3), np.float32)).as_hlo_text()
    assert call in text and "replica_groups={{0,1}}" in text


BAD = {
    "static_argnums out of range": ({"static_argnums": 2}, r"argument numbers \[2\] do not fit a call with 1 positional"),
    "donate_argnums out of range": ({"donate_argnums": (-2,)}, r"\[-2\] do not fit"),
    "axis_env of no size": ({"axis_env": [("i", 0)]}, "a size of at least 1"),
    "axis_env twice": ({"axis_env": [("i", 2), ("i", 2)]}, "each name once"),
    "backend": ({"backend": "npu"}, "backend must be 'cpu', .* got 'npu'"),
    "in_parts of axes": ({"in_parts": (P("x"),)}, "in_parts, number 0: .* must have the number of parts .*in_shardings"),
    "in_parts of too many dimensions": ({"in_parts": (P(2, 2),)}, "must have the number of parts of each of 1 dimensions"),
    "in_parts of another structure": ({"in_parts": (None, None)}, "in_parts must be a pytree prefix"),
    "parts that differ": ({"in_parts": (P(2),), "out_parts": P(4)}, r"all have the same number of parts, not \[2, 4\]"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_parameter(kind):
    parameters, message = BAD[kind]
    with pytest.raises(ArgumentError, match=message):
        hlotag.xla.xla_computation(lambda x: x, **parameters)(np.zeros(4, np.float32))


# --- Collectives over axis_env -----------------------------------------------------------------------------------------------

ROWS = np.arange(16, dtype=np.float32).reshape(4, 4) ** 2  # row i is on replica i
TURN = [(0, 1), (1, 2), (2, 3), (3, 0)]
GROUPS = [[0, 1], [2, 3]]


def in_groups(rows):
    return np.repeat([rows[:2].sum(0), rows[2:].sum(0)], 2, 0)


def on_all(row):
    return np.tile(row, (4, 1))


COLLECTIVES = {  # the function; XLA's operation; its result on all replicas, from all rows
    "psum": (lambda x: lax.psum(x, "i"), "all-reduce", lambda r: on_all(r.sum(0))),
    "psum in groups": (lambda x: lax.psum(x, "i", axis_index_groups=GROUPS), "all-reduce", in_groups),
    "all_gather": (lambda x: lax.all_gather(x, "i"), "all-gather", lambda r: np.tile(r, (4, 1, 1))),
    "all_to_all": (lambda x: lax.all_to_all(x, "i", 0, 0), "all-to-all", lambda r: r.T),
    "ppermute": (lambda x: lax.ppermute(x, "i", TURN), "collective-permute", lambda r: np.roll(r, 1, 0)),
    "psum_scatter": (lambda x: lax.psum_scatter(x, "i"), "reduce-scatter", lambda r: r.sum(0)),
    "axis_index": (lambda x: x + lax.axis_index("i"), "replica-id", lambda r: r + np.arange(4)[:, None]),
    "two axes": (lambda x: x + lax.axis_index(("j", "i")), "replica-id", lambda r: r + np.array([0, 2, 1, 3])[:, None]),
    "the gradient of psum": (jax.grad(lambda x: lax.psum((x**3).sum(), "i")), "multiply", None),
    "psum in a loop": (lambda x: lax.fori_loop(0, 2, lambda _, c: lax.psum(c, "i"), x), "while", lambda r: on_all(4 * r.sum(0))),
}


@pytest.mark.parametrize("kind", COLLECTIVES)
def test_collective(client, kind):
    """The operation is over replicas, without channels, and its numbers are right."""
    f, operation, expected = COLLECTIVES[kind]
    axes = (["i", np.int64(2)], ("j", 2)) if kind == "two axes" else [("i", 4)]
    computation = hlotag.xla.xla_computation(f, axis_env=axes)(ROWS[0])
    text = computation.as_hlo_text()
    assert f" {operation}(" in text and "channel_id" not in text and "partition-id" not in text
    assert computation.num_replicas == 4
    (result,) = on_replicas(client, computation, ROWS)
    if expected is not None:
        np.testing.assert_allclose(result, expected(ROWS))


def test_replica_groups(client):
    """Text and bytes do not say how many replicas there are: too few are refused, and enough give the sum."""
    computation = hlotag.xla.xla_computation(lambda x: x - lax.psum(x, "i"), axis_env=[("i", 4)])(2)
    assert "replica_groups={{0,1,2,3}}" in computation.as_hlo_text()
    for form in (computation.as_hlo_text(), computation.as_serialized_hlo_module_proto()):
        with pytest.raises(ArgumentError, match=r"all_reduce names replica or partition 3, but the program is compiled for 1"):
            client.compile_and_load(form)
        with pytest.raises(ArgumentError, match="compiled for 3"):
            client.compile_and_load(form, client.local_devices()[:3])
        assert on_replicas(client, form, np.arange(4, dtype=np.int32), devices=4)[0].tolist() == [-6, -5, -4, -3]


# --- Partitions --------------------------------------------------------------------------------------------------------------

MATRIX = np.arange(16, dtype=np.float32).reshape(4, 4)


def test_parts(client):
    f = lambda x, tree: (x @ tree["a"], tree["b"])
    tree = {"a": MATRIX, "b": MATRIX[0], "none": None}
    make = hlotag.xla.xla_computation(f, in_parts=(P(2, 1), {"a": None, "b": P(2), "none": None}), out_parts=(P(1, 2), P(None)))
    computation = make(MATRIX, tree)
    shardings = [line.split("sharding=")[1] for line in computation.as_hlo_text().splitlines() if "parameter(" in line]
    assert shardings == ["{devices=[2,1]<=[2]}", "{replicated}", "{devices=[2]<=[2]}"]
    assert "sharding={{devices=[1,2]<=[2]}, {replicated}}" in computation.as_hlo_text()
    assert computation.num_partitions == 2
    halves = [MATRIX[:2], MATRIX[2:]], [MATRIX, MATRIX], [MATRIX[0, :2], MATRIX[0, 2:]]
    product, row = on_replicas(client, computation, *halves)
    assert np.array_equal(np.concatenate(product, axis=1), MATRIX @ MATRIX) and np.array_equal(row[0], MATRIX[0])


@pytest.mark.parametrize("tuple_args", [False, True])
def test_parts_of_a_prefix(client, tuple_args):
    """One entry for all of an argument, or of the output; static arguments have none."""
    make = hlotag.xla.xla_computation(
        lambda n, pair: (pair[0] * n, pair[1] + n), static_argnums=0, in_parts=(P(4),), out_parts=P(4), tuple_args=tuple_args
    )
    computation = make(3, (MATRIX, MATRIX[0], None))
    assert computation.num_partitions == 4
    parts = list(np.split(MATRIX, 4)), list(np.split(MATRIX[0], 4))
    product, total = on_replicas(client, computation, *parts)
    assert np.array_equal(np.concatenate(product), MATRIX * 3) and np.array_equal(np.concatenate(total), MATRIX[0] + 3)


def test_replicas_of_partitions(client):
    """The program is made; jaxlib cannot run it, and its way of saying so is to end the process."""
    f = lambda x: lax.psum(x, "i")
    computation = hlotag.xla.xla_computation(f, axis_env=[("i", 2)], in_parts=(P(2),), out_parts=P(2))(np.zeros(4, np.float32))
    assert (computation.num_replicas, computation.num_partitions) == (2, 2)
    with pytest.raises(ArgumentError, match=r"2 replicas of 2 partitions.*use one mesh for both, with jax\.shard_map"):
        client.compile_and_load(computation)


def test_a_function_with_a_mesh_of_its_own():
    """shard_map and sharding constraints: as many partitions as the mesh has devices."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("d",))
    split = jax.sharding.NamedSharding(mesh, P("d"))
    x = jax.device_put(np.arange(4, dtype=np.float32), split)
    total = jax.shard_map(lambda x: lax.psum(x, "d"), mesh=mesh, in_specs=P("d"), out_specs=P())
    computation = hlotag.xla.xla_computation(lambda x: lax.with_sharding_constraint(x, split) + total(x).sum())(x)
    assert computation.num_partitions == 2
    loaded = xla.compile_and_load(computation)
    (parameter,) = loaded._parameters
    given = x if tuple(parameter.dimensions()) == (2,) else jax.device_put(x, jax.sharding.NamedSharding(mesh, P()))
    ((one, other),) = lists(loaded.execute_sharded([given]))
    assert (one + other if len(one) == 2 else one) == [6, 7, 8, 9]
