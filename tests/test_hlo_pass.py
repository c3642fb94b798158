# SPDX-License-Identifier: Apache-2.0
"""The stage inside XLA: tags restored, nothing else changed."""

import re
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.errors import JaxRuntimeError
from jax.extend import xla

import hlo_programs
import hlotag
from hlo_programs import entries_with_fusion as entries
from hlotag.hlo.module import of_executable
from hlotag.lowering import hlo_pass
from hlotag.tagging import keys
from programs import B, W, X, mlp


def tagged_square(x):
    with hlotag.tagged({"k": "v"}):
        return jnp.square(x)


def compiled(function, *arguments, **stage):
    with hlotag.stage(**stage):
        return jax.jit(lambda *a: function(*a)).lower(*arguments).compile()


@pytest.mark.parametrize(
    ("hlo", "found"), [(False, {}), (True, {"k": "v"}), (["k"], {"k": "v"}), (["k*"], {"k": "v"}), (["other"], {})]
)
def test_a_tag_that_xla_drops_is_restored(hlo, found):
    # StableHLO's export to HLO drops the attributes of chlo operations.
    assert entries(compiled(tagged_square, X, hlo=hlo), "multiply") == [found]


@pytest.mark.parametrize("name", ["größe", "日本", "f", "f" * 300, "f" * 20_000])
def test_a_tag_is_restored_whatever_the_program_is_called(name, staged):
    program = lambda x: tagged_square(x)
    program.__name__ = name  # XLA replaces each byte of characters beyond ASCII in the name of its module.
    assert entries(jax.jit(program).lower(X).compile(), "multiply") == [{"k": "v"}]


CHLO = {
    **{name: getattr(lax, name) for name in ("square", "erf", "erfc", "erf_inv", "digamma", "bessel_i1e")},
    **{name: getattr(lax, name) for name in ("sinh", "cosh", "acos", "asinh", "atanh")},
    "top_k": lambda x: lax.top_k(x, 3)[0],
    "next_after": lambda x: lax.nextafter(x, jnp.float32(1.0)),
}


@pytest.mark.parametrize("name", CHLO)
def test_all_that_an_operation_of_chlo_is_expanded_to_has_its_tag(name):
    def tagged(x):
        with hlotag.tagged({"k": "v"}):
            return CHLO[name](x)

    x = np.linspace(-0.9, 0.9, 16, dtype=np.float32)
    with hlotag.stage():
        lowered = jax.jit(tagged).lower(x)
    assert f"chlo.{name}" in lowered.as_text()
    instructions = [i for i in hlo_programs.compiled_instructions(lowered) if not hlo_programs.is_xlas_own(i)]
    assert instructions and [i for i in instructions if i.attributes != {"k": "v"}] == []


@pytest.mark.parametrize(
    "function",
    [
        *(lambda x: jnp.zeros(3) + 1, lambda x: x.ravel().reshape(x.shape), lambda x: x.T.T, lambda x: x[:, :0] * 2),
        lambda x: jnp.broadcast_to(1.0, (3,)),
    ],
    ids=["constant", "reshape", "transpose", "empty", "broadcast"],
)
def test_programs_that_xla_folds_away_compile(function):
    with hlotag.stage(), hlotag.tagged({"k": "v"}):
        on = jax.jit(lambda x: function(x)).lower(X).compile()
    np.testing.assert_array_equal(on(X), function(X))
    assert not any("\x01" in i.op_name for m in of_executable(on) for i in m.instructions())


@pytest.mark.parametrize("written", ["\x01", "\\001", "\\u0001"], ids=["as it is", "as C", "as JSON"])
def test_an_error_of_xlas_names_operations_tags_and_lines(written, staged):
    lowered = jax.jit(tagged_square).lower(X)
    lowered.compile()  # The first compilation of a process also tries XLA with a program of hlotag's.
    module = lowered.compiler_ir()

    def compile_module(backend, module, *args, **kwargs):
        (name,) = re.findall(r'"(\S+/square)"', module.operation.get_asm(enable_debug_info=True).replace("\\01", written))
        raise JaxRuntimeError(f'INTERNAL: %a = add(), metadata={{op_name="{name}"}}')

    with pytest.raises(JaxRuntimeError) as caught:
        hlo_pass._compile_tagged(compile_module, jax.devices()[0].client, module)
    error, told = str(caught.value).splitlines()
    assert error == 'INTERNAL: %a = add(), metadata={op_name="jit(tagged_square)/square"}'
    assert re.fullmatch(r"hlotag: chlo.square with k=v at .*test_hlo_pass.py:\d+:\d+", told)
    assert caught.value.__cause__ is None and caught.value.__suppress_context__


REFUSED = """
import jax, jax.numpy as jnp, hlotag
hlotag.enable()

@jax.jit
def f(x):
    return jax.ffi.ffi_call("no_such", x)(hlotag.tag(x + 1, {"k": "v"}))

f(jnp.ones(4))
"""


def test_an_error_of_xlas_has_no_frame_of_hlotags(run_python):
    finished = run_python(REFUSED, may_fail=True)
    assert "NOT_FOUND" in finished.stderr and finished.stderr.count("  File ") == 1


@pytest.mark.parametrize("programs", [1, 6], ids=["equal", "different"])
def test_programs_compiled_at_the_same_time(programs):
    count = 6
    at_once = threading.Barrier(count)

    def compile_one(number):
        def f(x):
            with hlotag.tagged({"k": str(number % programs)}):
                return jnp.square(x)

        with hlotag.stage():
            lowered = jax.jit(f).lower(X)
            at_once.wait()
            return entries(lowered.compile(), "multiply")

    with ThreadPoolExecutor(count) as threads:
        assert list(threads.map(compile_one, range(count))) == [[{"k": str(number % programs)}] for number in range(count)]


def test_what_stages_are_for_is_part_of_jaxs_cache_keys():
    f = jax.jit(tagged_square)
    for hlo in (False, True, False):
        with hlotag.stage(hlo=hlo):
            assert entries(f.lower(X).compile(), "multiply") == [{"k": "v"} if hlo else {}]


@pytest.mark.parametrize(("function", "arguments"), [(mlp, (X, W, B)), (lambda x: jnp.linalg.eigh(x @ x.T), (X,))])
def test_a_program_without_tags_is_compiled_as_ever(function, arguments):
    with hlo_pass.recorded() as records:
        compiled(function, *arguments)
    assert records == []


quiet = pytest.mark.filterwarnings("ignore:hlotag. XLA for 'cpu' loses:hlotag.TagDroppedWarning")
PINNED = jax.sharding.SingleDeviceSharding(jax.devices()[0], memory_kind="pinned_host")


@quiet
@pytest.mark.parametrize(
    ("options", "function"),
    [
        ({"out_shardings": PINNED}, tagged_square),
        ({}, lambda x: jax.device_put(tagged_square(x), PINNED)),
        ({}, lambda x: (jax.device_put(x, PINNED), tagged_square(x))),
    ],
)
def test_results_stay_in_the_hosts_memory(options, function):
    def kinds():
        return jax.tree.map(lambda result: result.sharding.memory_kind, jax.jit(lambda x: function(x), **options)(X))

    without = kinds()
    with hlotag.stage():
        assert kinds() == without


@quiet
def test_arguments_stay_in_the_hosts_memory(staged):
    program = jax.jit(lambda x: tagged_square(jax.device_put(x, jax.sharding.SingleDeviceSharding(jax.devices()[0]))))
    in_host = jax.device_put(X, PINNED)
    assert "S(5)" in program.lower(in_host).compile().as_text()
    np.testing.assert_allclose(program(in_host), X * X)


@pytest.mark.parametrize(
    ("keys", "hlo", "name"),
    [
        (["k"], True, "jit(<lambda>)/{k=v}/sin"),
        (["*"], True, "jit(<lambda>)/{j=a_b,k=v}/sin"),
        (["k"], False, "jit(<lambda>)/{k=v}/sin"),
        (["other"], True, "jit(<lambda>)/sin"),
        ([], True, "jit(<lambda>)/sin"),
    ],
)
def test_chosen_tags_are_in_the_names_that_profilers_show(keys, hlo, name, tmp_path):
    def f(x):
        with hlotag.tagged({"k": "v", "j": "a/b"}):
            return jnp.sin(x)

    executable = compiled(f, X, hlo=hlo, op_names=keys)
    assert [i.op_name for m in of_executable(executable) for i in m.instructions() if i.opcode == "sine"] == [name]
    with jax.profiler.trace(str(tmp_path)):
        executable(X)[0].block_until_ready()
    (written,) = tmp_path.rglob("*.xplane.pb")
    assert name.encode() in written.read_bytes()


TESTS = str(Path(__file__).parent)
CACHED = """
import os, jax, numpy as np
import hlotag
from hlo_programs import entries_with_fusion
import jax.numpy as jnp
from jax import monitoring

hits = []
monitoring.register_event_listener(lambda event, **_: hits.append(event) if event.endswith("cache_hits") else None)
jax.config.update("jax_compilation_cache_dir", os.environ["CACHE"])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)

def f(x):
    with hlotag.tagged({"k": os.environ["FIRST"]}):
        y = jnp.square(x)
    with hlotag.tagged({"k": os.environ["SECOND"]}):
        return jnp.square(jnp.sin(y))

with hlotag.stage(hlo=os.environ["HLO"] == "1"):
    executable = jax.jit(f).lower(np.ones(3, np.float32)).compile()
found = [entries.get("k") for entries in entries_with_fusion(executable, "multiply")]
assert "\\x01" not in executable.as_text()
print(len(hits), *sorted(map(str, found)))
"""


def test_executables_of_the_disk_cache_have_the_programs_tags(run_python, tmp_path):
    def run(first, second, hlo="1", code=CACHED):
        variables = {"PYTHONPATH": TESTS, "CACHE": str(tmp_path / "cache"), "FIRST": first, "SECOND": second, "HLO": hlo}
        return run_python(code, **variables).stdout.strip()

    assert run("a", "b") == "0 a b"
    assert run("c", "b") == "0 b c"
    assert run("a", "b", hlo="0") == "0 None None"
    # Locations are not in the key; the tags are the program's all the same.
    assert run("a", "b", code="\n\n\n" + CACHED.replace("def f", "def g").replace("jit(f)", "jit(g)")).endswith(" a b")
    assert run("a", "b", code="\n\n\n" + CACHED) == "1 a b"


@pytest.mark.parametrize(("hlo", "left"), [(True, {"shown", "inlineable"}), (["a*"], {"shown", "inlineable", 'b,"c\\'})])
def test_xla_sees_no_hidden_key(hlo, left, monkeypatch):
    monkeypatch.setattr(keys, "_registered", {})
    hlotag.register_key("shown", compiler=True)
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("i",))
    tags = {"a": "1", 'b,"c\\': "2", "shown": "3", "inlineable": "true"}

    @jax.shard_map(mesh=mesh, in_specs=jax.P("i"), out_specs=jax.P())
    def total(x):
        with hlotag.tagged(tags):
            return lax.psum(x, "i")

    with hlotag.stage(hlo=hlo), hlo_pass.recorded() as records:
        lowered = jax.jit(total).lower(jnp.arange(8.0))
        executable = lowered.compile()
    (record,) = records
    assert {key for i in record.before.instructions() for key in i.attributes} == left
    assert entries(executable, "all-reduce") == [tags]
    assert 'a = "1"' in lowered.as_text()


def test_callbacks_of_others_are_kept():
    called = []
    xla.register_hlo_module_transformation(lambda _: called.append(1), name="others", platforms="cpu")
    try:
        assert entries(compiled(tagged_square, X + 1), "multiply") == [{"k": "v"}]
        assert called
        hlotag.disable()
        called.clear()
        jax.jit(jnp.cos).lower(X).compile()
        assert called
    finally:
        assert xla.clear_hlo_module_transformation("others", platforms="cpu")


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_during_compilation_is_an_interrupt(monkeypatch):
    def interrupted(*_):
        signal.raise_signal(signal.SIGINT)

    def program(x):
        with hlotag.tagged({"k": "interrupted"}):
            return jnp.sin(x) * 2

    with monkeypatch.context() as patch:
        patch.setattr(hlo_pass._Restoration, "__call__", interrupted)
        with pytest.raises(KeyboardInterrupt):
            compiled(program, X)
    assert entries(compiled(program, X), "multiply") == [{"k": "interrupted"}]


def test_a_callback_may_be_removed_while_xla_runs_it(run_python):
    """XLA then drops its reference on a thread without the interpreter's lock."""
    run_python(
        """
import jax, jax.numpy as jnp
from hlotag._compat.transformations import PipelineStage, register_transformation

def callback(module):
    removers.pop()()

removers = [register_transformation(jax.devices()[0].client, callback, name="a", stage=PipelineStage.POST_SCHEDULER)]
del callback
jax.jit(jnp.sin)(1.0)
assert not removers
"""
    )
