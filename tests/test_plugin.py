# SPDX-License-Identifier: Apache-2.0
"""Passes in C++ from outside: examples/plugin is built against the installed headers, loaded and run."""

import shlex
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import hlotag
import requires
from hlotag.cli import opt_main
from hlotag.mlir.modules import new_context, parse_module

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[1] / "examples" / "plugin"
MODULE = """
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {a = "1", b = "2"}} : tensor<f32>
  %dead = stablehlo.cosine %x {mhlo.frontend_attributes = {a = "3"}} : tensor<f32>
  return %0 : tensor<f32>
}
"""


@pytest.fixture(autouse=True, scope="module")
def compiler_and_headers():
    requires.headers()


def compile_library(sources, output, *flags):
    command = ["c++", "-std=c++17", "-fPIC", "-shared", "-fvisibility=hidden", f"-I{hlotag.get_include()}", *flags]
    done = subprocess.run([*command, *map(str, sources), "-o", str(output)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return output


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The example, built as its CMakeLists.txt says."""
    requires.tool("cmake", "cmake")
    folder, flags = tmp_path_factory.mktemp("plugin"), "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror"
    for command in (["-S", EXAMPLE, "-B", folder, f"-DPython_EXECUTABLE={sys.executable}", flags], ["--build", folder, "-j2"]):
        done = subprocess.run(["cmake", *map(str, command)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder / "librename_key.so"


@pytest.fixture(scope="module")
def loaded(library):
    assert hlotag.load_pass_plugin(library) == ("rename-key",)
    return library


def test_runs_among_passes_of_hlotag_and_jaxlib(loaded):
    assert hlotag.load_pass_plugin(str(loaded)) == ("rename-key",)  # Loading again does nothing.
    result = hlotag.run_passes(MODULE, "canonicalize,rename-key{from=a to=c},hlotag-strip{keys=b},cse")
    assert 'mhlo.frontend_attributes = {c = "1"}' in result and "cosine" not in result


def test_is_listed_and_its_options_are_checked(loaded):
    info = {info.name: info for info in hlotag.list_passes()}["rename-key"]
    assert info.summary == "Rename a tag"
    assert [(o.name, o.type, o.description) for o in info.options] == [
        ("from", "string", "the tag to rename"),
        ("to", "string", "its new name"),
    ]
    with pytest.raises(hlotag.ArgumentError, match=r"unknown option 'form' of rename-key; its options: from \(string\)"):
        hlotag.run_passes(MODULE, "rename-key{form=a}")


def test_a_failure_undoes_the_whole_pipeline_and_has_a_place(loaded):
    with new_context():
        module = parse_module(MODULE)
        before = str(module)
        with pytest.raises(hlotag.PassError, match="pass 'rename-key' failed") as caught:
            hlotag.run_passes(module, "canonicalize,rename-key{from=a to=b}")
        assert str(module) == before
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.message == "the operation already has a tag 'b'"
    assert (diagnostic.severity, diagnostic.line) == ("error", 3)


def test_flag_of_hlotag_opt(loaded, tmp_path, capfd):
    file = str(tmp_path / "m.mlir")
    Path(file).write_text(MODULE)
    assert opt_main([file, f"--load-pass-plugin={loaded}", "--rename-key=from=a to=c"]) == 0
    assert 'c = "1"' in capfd.readouterr().out
    assert opt_main([file, f"--load-pass-plugin={file}"]) == 1
    assert "hlotag-opt: error: " in capfd.readouterr().err


def test_the_command_that_replays_a_failure_loads_the_plugin(loaded, run_python, monkeypatch, tmp_path):
    monkeypatch.setenv("HLOTAG_REPRODUCER_DIR", str(tmp_path))
    program = jax.jit(lambda x: hlotag.set_xla_metadata(jnp.sin(x), a="1", b="2"))
    with hlotag.stage("hlotag-resolve,rename-key{from=a to=b}"), pytest.raises(hlotag.PassError) as caught:
        program.lower(jnp.ones(3))
    program, *arguments = shlex.split(str(caught.value).splitlines()[-1])
    assert program == "hlotag-opt"
    replayed = run_python(f"import sys; from hlotag.cli import opt_main; sys.exit(opt_main({arguments!r}))", may_fail=True)
    assert replayed.returncode == 1 and "the operation already has a tag 'b'" in replayed.stderr


def test_by_the_entry_point_of_an_installed_package(library, tmp_path, run_python):
    info = tmp_path / "my_passes-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-passes\nVersion: 1.0\n")
    names = "rename = my_passes:path\nconstant = my_passes:PATH\nbroken = my_passes:missing\n"
    (info / "entry_points.txt").write_text(f"[hlotag.passes]\n{names}")
    (tmp_path / "my_passes.py").write_text(f"PATH = {str(library)!r}\ndef path():\n    return PATH\n")
    code = """
import sys; sys.path.insert(0, ".")
import hlotag
print(hlotag.load_pass_plugin('rename'), hlotag.load_pass_plugin('constant'))
for name in 'broken', 'absent':
    try: hlotag.load_pass_plugin(name)
    except hlotag.ArgumentError as error: print(error)
"""
    names, broken, absent = run_python(code).stdout.splitlines()
    assert names == "('rename-key',) ('rename-key',)"
    assert "my_passes:missing) failed: AttributeError" in broken
    assert "'absent' is neither a file nor an entry point" in absent and "broken, constant, rename" in absent


PLUGIN = """
#include <hlotag/plugin/abi.h>
static void add(const HlotagHost *host) {
  HlotagPass one = {"one-more", "", "", 0, nullptr, nullptr, nullptr};
  HlotagPass taken = {"hlotag-strip", "", "", 0, nullptr, nullptr, nullptr};
  host->addPass(host->state, &one);
  host->addPass(host->state, &taken);
}
static void null_text(const HlotagHost *host) noexcept {
  static const char *const no[] = {"false", nullptr};
  HlotagOption option = {nullptr, "bool", no, ""};
  HlotagPass one = {"one-more", "", "", 1, &option, nullptr, nullptr};
  host->addPass(host->state, &one);
}
static void refuse(const HlotagHost *host) { host->fail(host->state, "not today"); }
static void wrong_type(const HlotagHost *host) {
  if (!host->function("mlirOperationGetContext", "int (void)") && !host->function("system", "int (const char *)") &&
      host->function("mlirOperationGetContext", "MlirContext (MlirOperation)"))
    host->fail(host->state, "types are compared");
}
static const HlotagPlugin plugin = {ABI, "bad", "2.0", REGISTER};
extern "C" __attribute__((visibility("default"))) const HlotagPlugin *hlotagGetPassPlugin() { return RESULT; }
"""


@pytest.mark.parametrize(
    ("version", "register", "result", "reason"),
    [
        ("999", "add", "&plugin", "built for version 999 of hlotag's plugin interface.*build it again"),
        ("HLOTAG_PLUGIN_ABI", "add", "&plugin", r"\(bad 2.0\): 'hlotag-strip' is no name.*reserved"),
        ("HLOTAG_PLUGIN_ABI", "refuse", "&plugin", r"\(bad 2.0\): not today"),
        ("HLOTAG_PLUGIN_ABI", "null_text", "&plugin", r"\(bad 2.0\): .*null"),
        ("HLOTAG_PLUGIN_ABI", "wrong_type", "&plugin", "types are compared"),
        ("HLOTAG_PLUGIN_ABI", "add", "nullptr", "returned null"),
    ],
)
def test_plugins_that_are_refused(tmp_path, version, register, result, reason):
    source = tmp_path / "bad.cpp"
    source.write_text(PLUGIN)
    bad = compile_library([source], tmp_path / "bad.so", f"-DABI={version}", f"-DREGISTER={register}", f"-DRESULT={result}")
    with pytest.raises(hlotag.ArgumentError, match=reason):
        hlotag.load_pass_plugin(bad)
    assert "one-more" not in {info.name for info in hlotag.list_passes()}


def test_files_that_are_no_plugins(tmp_path, library):
    def compiled(name, source):
        (tmp_path / "source.cpp").write_text(source)
        return compile_library([tmp_path / "source.cpp"], tmp_path / name)

    def written(name, content):
        (tmp_path / name).write_bytes(content)
        return tmp_path / name

    undefined = 'extern "C" int nowhere_to_be_found(); int use = nowhere_to_be_found();'
    for path, reason in [
        (compiled("empty.so", ""), "not an hlotag plugin: it has no function hlotagGetPassPlugin"),
        (compiled("undefined.so", undefined), "nowhere_to_be_found"),
        (written("text.so", b"not a library"), "is not a 64-bit, little-endian ELF file"),
        (written("cut.so", library.read_bytes()[:10000]), "is truncated"),
        (written("stub.so", library.read_bytes()[:100]), "is truncated"),
        (tmp_path / "absent.so", "there is no such file"),
        (tmp_path, "there is no such file"),
    ]:
        with pytest.raises(hlotag.ArgumentError, match=reason):
            hlotag.load_pass_plugin(path)
