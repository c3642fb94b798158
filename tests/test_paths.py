# SPDX-License-Identifier: Apache-2.0
"""Every way that JAX has from a program to a module: tags are in it, and numbers are those of the stage off."""

import re
import warnings
from contextlib import nullcontext

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import io_callback, pallas, topologies
from jax.experimental.custom_partitioning import custom_partitioning
from jax.experimental.xla_metadata import set_xla_metadata
from jax.extend.core import Primitive
from jax.interpreters import mlir
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import hlotag
from hlotag.mlir.modules import new_context, parse_module
from modules import ops_of

pytestmark = pytest.mark.usefixtures("off_afterwards")
X = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)
IN_MODULE = 'mhlo.frontend_attributes = {k = "v"}'
IN_HLO = 'frontend_attributes={k="v"}'
# What is_tagged looks for in a gradient: the forward and the backward pass of the tagged operation.
GRADIENT = {"stablehlo.cosine", "stablehlo.multiply"}


def tagged_names(module):
    """The names of the tagged operations of a lowered program, a module or a module's text."""
    if isinstance(module, str):
        with new_context():
            return tagged_names(parse_module(module))
    return {op.name for op in ops_of(module) if op.entries.get("k") == "v"}


@pytest.fixture
def dumped(tmp_path):
    """The texts of the modules that the stage has made, for paths that show none."""

    def texts():
        # The last file of a module is how its passes left it.
        last = {re.match(r"hlotag\d+", path.name)[0]: path for path in sorted(tmp_path.iterdir())}
        return [path.read_text() for path in last.values()]

    with hlotag.dump_to(tmp_path):
        yield texts


# --- From a program to a module ----------------------------------------------------------------------------------------------


def gradient():
    """A new function, so that no other test has traced it."""
    return jax.grad(lambda x: (set_xla_metadata(jnp.sin(x), k="v") * 2.0).sum())


def spec(platforms=None):
    return jax.export.export(jax.jit(gradient()), platforms=platforms)(X)


def round_trip(exported):
    return jax.export.deserialize(exported.serialize())


WAYS = {
    "lower": lambda: jax.jit(gradient()).lower(X),
    "trace and lower": lambda: jax.jit(gradient()).trace(X).lower(),
    "lower without arguments": lambda: jax.jit(lambda: gradient()(jnp.asarray(X))).lower(),
    "for cpu and tpu": lambda: jax.jit(gradient()).trace(X).lower(lowering_platforms=("cpu", "tpu")),
    "export for several platforms": lambda: spec(("cpu", "tpu", "cuda")).mlir_module(),
    "export of a symbolic shape": lambda: exported(gradient()).mlir_module(),
    "export there and back": lambda: round_trip(spec()).mlir_module(),
    "attached topology": lambda: jax.jit(
        gradient(), in_shardings=NamedSharding(Mesh(topologies.get_attached_topology().devices, ("i",)), P("i"))
    ).lower(jax.ShapeDtypeStruct(X.shape, X.dtype)),
}


@pytest.mark.parametrize("way", WAYS)
def test_tags_are_in_the_module(way):
    with hlotag.stage():
        assert tagged_names(WAYS[way]()) >= GRADIENT
    # What the stage adds, so that the line above can fail.
    assert tagged_names(WAYS[way]()) == set()


RUNS = {
    "jit": lambda f: jax.jit(f)(X),
    "with compiler options": lambda f: jax.jit(f).lower(X).compile({"xla_cpu_enable_fast_math": False})(X),
    "options of jit": lambda f: jax.jit(f, compiler_options={"xla_cpu_enable_fast_math": False})(X),
    "vmap": lambda f: jax.jit(jax.vmap(f))(X),
    "deserialized": lambda f: round_trip(jax.export.export(jax.jit(f))(X)).call(X),
    "exported within a program": lambda f: jax.jit(jax.export.export(jax.jit(f))(X).call)(X),
    "pmap": lambda f: jax.pmap(f)(X),
    "shard_map": lambda f: jax.jit(jax.shard_map(f, mesh=Mesh(jax.devices(), ("i",)), in_specs=P("i"), out_specs=P("i")))(X),
    "automatic sharding": lambda f: jax.jit(f)(jax.device_put(X, NamedSharding(Mesh(jax.devices(), ("i",)), P("i")))),
}


@pytest.mark.parametrize("run", RUNS)
def test_what_runs_has_the_tags_and_gives_the_same_numbers(run, dumped):
    expected = RUNS[run](gradient())
    with hlotag.stage():
        np.testing.assert_array_equal(RUNS[run](gradient()), expected)
    assert any(tagged_names(text) >= GRADIENT for text in dumped())


def test_operation_by_operation(dumped):
    expected = jnp.sin(X) * 2.0
    jax.clear_caches()  # Of `jnp.sin`, which the line above may have found compiled.
    with hlotag.stage(), hlotag.tagged({"k": "v"}):
        np.testing.assert_array_equal(jnp.sin(X) * 2.0, expected)
    assert "stablehlo.sine" in set().union(*map(tagged_names, dumped()))


def test_the_gradient_of_an_export_has_the_stage_in_which_it_is_serialized():
    def f(x):
        return hlotag.tag(jnp.sin(x), {"k": "v"}, grad={"k": "w"}) * 2.0

    with hlotag.stage():
        exported = jax.export.export(jax.jit(f))(X)
        inside = jax.export.deserialize(exported.serialize(vjp_order=2)).vjp()
    outside = jax.export.deserialize(exported.serialize(vjp_order=2)).vjp()
    texts = [gradient.mlir_module() for first in (inside, outside) for gradient in (first, first.vjp())]
    assert [IN_MODULE.replace('"v"', '"w"') in text for text in texts] == [True, True, False, False]
    assert not any("hlotag" in text.replace(__file__, "") for text in texts)
    for first in (inside, outside):
        np.testing.assert_allclose(first.call(X, X)[0], X * 2 * np.cos(X), rtol=1e-6)


def test_the_stage_at_lowering_decides():
    f = jax.jit(jax.grad(lambda x: hlotag.tag(jnp.sin(x), {"k": "v"}, grad={"k": "w"}).sum()))
    with hlotag.stage():
        traced, alone = f.trace(X), f.lower(X).as_text()
        assert traced.lower().as_text() == alone and IN_MODULE.replace('"v"', '"w"') in alone
    with hlotag.stage("hlotag-resolve,hlotag-strip"):
        assert "frontend_attributes" not in traced.lower().as_text()
    for stage in (hlotag.stage(None), nullcontext()):
        with stage:
            text = traced.lower().as_text(debug_info=True)
        assert IN_MODULE in text and "hlotag" not in text.replace(__file__, ""), "JAX's tags, and no reserved entry"


def test_a_value_tag_where_the_stage_is_off_warns():
    traced = jax.jit(jax.value_and_grad(lambda x: set_xla_metadata(jnp.sin(x), k="v").sum())).trace(X)
    with hlotag.stage(), pytest.warns(hlotag.TagDroppedWarning, match="value tags that were set while hlotag was off"):
        assert tagged_names(traced.lower()) == {"stablehlo.sine"}

    within = jax.jit(hlotag.stage(None)(lambda x: hlotag.tag(jnp.sin(x), {"k": "v"})))
    with (
        hlotag.stage(),
        pytest.warns(hlotag.TagDroppedWarning, match=r"set while hlotag was off.* outside of hlotag.stage\(None\)"),
    ):
        assert tagged_names(within.lower(X)) == {"stablehlo.sine"}


# --- What programs may hold --------------------------------------------------------------------------------------------------


def debug_print(x):
    y = jnp.sin(x)
    jax.debug.print("sum {}", y.sum())
    return y * 2.0


def callbacks(x):
    y = jax.pure_callback(np.cosh, jax.ShapeDtypeStruct(x.shape, x.dtype), jnp.sin(x))
    return y + io_callback(np.tanh, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


def ordered_effects(x):
    for _ in range(2):
        x = io_callback(np.tanh, jax.ShapeDtypeStruct(x.shape, x.dtype), jnp.sin(x), ordered=True)
        jax.debug.print("{}", x[0, 0], ordered=True)
    return x


def custom_batching(x):
    batched = jax.custom_batching.custom_vmap(jnp.sin)
    batched.def_vmap(lambda axis_size, in_batched, x: (jnp.sin(x) * jnp.cos(x), True))
    return jax.vmap(batched)(x) + batched(x[0])


def partitioned(x):
    sine = custom_partitioning(lambda x: jnp.sin(x))
    sine.def_partition(
        partition=lambda mesh, arguments, result: (mesh, jnp.sin, arguments[0].sharding, (arguments[0].sharding,)),
        infer_sharding_from_operands=lambda mesh, arguments, result: arguments[0].sharding,
        sharding_rule="i j -> i j",
    )
    return sine(lax.with_sharding_constraint(x, NamedSharding(Mesh(jax.devices(), ("i",)), P("i")))) * 2.0


def kernel(x):
    def run(x_ref, o_ref):
        o_ref[...] = jnp.sin(x_ref[...]) * 2.0

    return pallas.pallas_call(run, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), interpret=True)(x)


PROGRAMS = {
    debug_print: {"stablehlo.sine", "stablehlo.custom_call"},
    callbacks: {"stablehlo.sine", "stablehlo.custom_call"},
    ordered_effects: {"stablehlo.sine", "stablehlo.custom_call"},
    custom_batching: {"stablehlo.sine", "stablehlo.cosine"},
    partitioned: {"stablehlo.custom_call", "stablehlo.multiply"},
    kernel: {"stablehlo.while", "stablehlo.sine"},
}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_programs(program, capfd):
    def step(x):
        with hlotag.tagged({"k": "v"}):
            return program(x)

    results, printed = [], []
    for pipeline in (None, hlotag.passes.DEFAULT_PIPELINE):
        with hlotag.stage(pipeline):
            results.append(jax.jit(step)(X))
            jax.effects_barrier()
            printed.append(capfd.readouterr().out)
    np.testing.assert_array_equal(*results)
    assert printed[0] == printed[1] and bool(printed[0]) == (program in (debug_print, ordered_effects))
    with hlotag.stage():
        lowered = jax.jit(step).lower(X)
        assert tagged_names(lowered) >= PROGRAMS[program]
        assert IN_HLO in lowered.compile().as_text()


def test_donated_buffers():
    f = jax.jit(gradient(), donate_argnums=0)
    expected = jax.jit(gradient())(X)
    with hlotag.stage(), warnings.catch_warnings(action="error"):
        lowered = f.lower(X)
        assert "tf.aliasing_output" in lowered.as_text() and tagged_names(lowered) >= GRADIENT
        x = jnp.asarray(X) + 0.0
        np.testing.assert_array_equal(f(x), expected)
        assert x.is_deleted()


def test_inputs_and_outputs_keep_their_shardings():
    sharding = NamedSharding(Mesh(jax.devices(), ("i",)), P("i"))
    outputs = []
    for pipeline in (None, hlotag.passes.DEFAULT_PIPELINE):
        with hlotag.stage(pipeline):
            f = jax.jit(gradient(), in_shardings=sharding, out_shardings=sharding)
            outputs.append((f(X).sharding, f.lower(X).compile().memory_analysis().temp_size_in_bytes))
    assert outputs[0] == outputs[1] and outputs[0][0] == sharding


# --- Lowering rules of others --------------------------------------------------------------------------------------------------


def tagged_sine(x):
    with hlotag.tagged({"k": "v"}):
        return jnp.sin(x)


@pytest.mark.parametrize("lowers_another", [False, True])
def test_a_rule_that_lowers_a_jaxpr(lowers_another):
    """It may lower another program first, without the stage."""
    call, others = Primitive(f"call_{lowers_another}"), []
    call.def_abstract_eval(lambda x, jaxpr: jaxpr.out_avals[0])

    def lower(context, x, *, jaxpr):
        if lowers_another:
            with hlotag.stage(None):
                others.append(jax.jit(lambda x: tagged_sine(x)).lower(X).as_text(debug_info=True))
        names = {"dim_var_values": context.dim_var_values, "const_lowering": context.const_lowering, "outer_traceback": None}
        parts = context.module_context, jaxpr.jaxpr, context.name_stack, context.tokens_in, ()
        return mlir.jaxpr_subcomp(*parts, x, **names)[0]

    mlir.register_lowering(call, lower)
    with hlotag.stage():
        jaxpr = jax.make_jaxpr(tagged_sine)(X)
        lowered = jax.jit(lambda x: call.bind(x, jaxpr=jaxpr) + 1.0).lower(X)
    assert tagged_names(lowered) == {"stablehlo.sine"}
    assert [("hlotag" in text, IN_MODULE in text) for text in others] == [(False, True)] * lowers_another


# --- Other processes --------------------------------------------------------------------------------------------------

WORKER = """
import multiprocessing, pickle, sys
import jax, jax.numpy as jnp, numpy as np
import hlotag

def f(x):
    with hlotag.tagged({"k": "v"}):
        return jnp.square(x).sum()

def work(queue, function):
    lowered = jax.jit(jax.grad(function)).lower(np.ones(3, np.float32))
    queue.put((lowered.as_text().count('k = "v"'), lowered.compile().as_text().count('k="v"') > 0, hlotag.active() is not None))

if __name__ == "__main__":
    hlotag.enable()
    context = multiprocessing.get_context(sys.argv[1])
    queue = context.Queue()
    worker = context.Process(target=work, args=(queue, f))
    worker.start()
    print(*queue.get(timeout=120))
    worker.join()
"""


@pytest.mark.parametrize(("method", "is_on"), [("spawn", False), ("forkserver", False), ("fork", True)])
def test_a_worker_has_the_stage_if_it_is_a_copy_of_the_process(run_python, tmp_path, method, is_on):
    program = tmp_path / "worker.py"
    program.write_text(WORKER)
    # A process that JAX has started threads in cannot be forked, with hlotag or without: the fork is before.
    finished = run_python(
        f"import runpy, sys; sys.argv = ['worker.py', {method!r}]; runpy.run_path('worker.py', run_name='__main__')"
    )
    *counts, on = finished.stdout.split()
    # Without the stage, only what JAX itself tags: not the square, and nothing derived.
    assert (counts, on) == (["4", "True"] if is_on else ["3", "True"], str(is_on))


# Exports with symbolic shapes, everything in them tagged: JAX makes parts of their modules outside of what the stage wraps,
# and StableHLO refuses tags on some of their operations.

SEED = np.array([1, 2, 3, 4], np.uint32)
OF_ANY_SIZE = {
    "gradient": lambda x: jax.grad(lambda x: (jnp.tanh(x @ x.T) ** 2).sum())(x),
    "dynamic_top_k": lambda x: lax.top_k(x.T, x.shape[0])[0],
    "dynamic_approx_top_k": lambda x: lax.approx_max_k(x.T, x.shape[0])[0],
    "dynamic_reduce_window": lambda x: jnp.cumsum(x, 0),
    "dynamic_rng_bit_generator": lambda x: lax.rng_bit_generator(SEED, x.shape)[1],
    "loop over a symbolic dimension": lambda x: lax.fori_loop(0, x.shape[0], lambda i, sums: sums + x[i], x[0]),
}


def exported(program):
    jax.clear_caches()
    (b,) = jax.export.symbolic_shape("b", constraints=["b >= 4"])
    made = jax.export.export(jax.jit(program))(jax.ShapeDtypeStruct((b, 6), np.float32))
    return jax.export.deserialize(made.serialize())


def results(program):
    made = exported(program)
    five, seven = (np.linspace(-1, 1, 6 * n, dtype=np.float32).reshape(n, 6) for n in (5, 7))
    return [np.asarray(made.call(five)), np.asarray(jax.jit(made.call)(seven))]


@pytest.mark.parametrize("name", OF_ANY_SIZE)
def test_tagged_programs_compile_and_give_what_they_gave(name):
    expected = results(OF_ANY_SIZE[name])
    with hlotag.stage(rules=[hlotag.Rule({"rule": "v"}, op="*", grad={"rule": "g"})]):
        by_rule = results(OF_ANY_SIZE[name])
    with hlotag.stage(), hlotag.tagged({"block": "v"}, grad={"block": "g"}):
        by_block, text = results(OF_ANY_SIZE[name]), exported(OF_ANY_SIZE[name]).mlir_module()
    for found in (by_rule, by_block):
        assert all(np.array_equal(a, b) for a, b in zip(expected, found, strict=True))
    assert 'block = "v"' in text and ('block = "g"' in text or name != "gradient")
    assert "hlotag." not in text, "nothing reserved is in what JAX adds to an export"
