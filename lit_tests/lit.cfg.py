# SPDX-License-Identifier: Apache-2.0
"""How lit runs the tests: `lit lit_tests` from an environment that hlotag is installed in."""

import glob
import os
import re
import shutil
import sys

import lit.formats

config.name = "hlotag"
# lit's own shell: no bash needed, and `not` is built in.
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".hlo", ".py"]
config.excludes = ["lit.cfg.py", "Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(os.path.dirname(config.test_source_root), "build", "lit")


def find_filecheck() -> str:
    """LLVM's FileCheck if there is one, else its clone from PyPI in this environment."""
    by_version = sorted(
        glob.glob("/usr/lib/llvm-*/bin/FileCheck"), key=lambda path: int(re.findall(r"llvm-(\d+)", path)[0]), reverse=True
    )
    for candidate in ["FileCheck", "FileCheck-22", *by_version, os.path.join(os.path.dirname(sys.executable), "filecheck")]:
        found = shutil.which(candidate)
        if found:
            return found
    lit_config.fatal("no FileCheck: install LLVM's, or `pip install filecheck`")
    raise AssertionError("fatal() does not return")


filecheck = find_filecheck()
if os.path.basename(filecheck) == "filecheck":
    # The clone knows no such option; the tests are exact without it, but for text between the matches of loose ones.
    config.substitutions.append((r"--implicit-check-not=('[^']*'|\S+)", ""))


def quoted(path: str) -> str:
    return f'"{path}"' if " " in path else path


scripts = os.path.dirname(sys.executable)
hlotag_opt = quoted(os.path.join(scripts, "hlotag-opt"))
if "mlir_opt_plugin" in lit_config.params:
    # The passes under mlir-opt too, and a comparison of both. The other tests are about hlotag-opt itself, and about JAX.
    driver = os.path.join(os.path.dirname(config.test_source_root), "tools", "mlir_opt_driver.py")
    hlotag_opt = f"{quoted(sys.executable)} {quoted(driver)}"
    config.name += "-mlir-opt"
    config.available_features.add("mlir-opt")
    config.excludes += ["hlo", "jax", "opt"]
    config.test_exec_root += "-mlir-opt"
    config.environment["HLOTAG_MLIR_OPT_PLUGIN"] = os.path.abspath(lit_config.params["mlir_opt_plugin"])
    config.environment["HLOTAG_MLIR_OPT"] = shutil.which("mlir-opt-22") or "/usr/lib/llvm-22/bin/mlir-opt"
verify = os.path.join(os.path.dirname(config.test_source_root), "tools", "verify_diagnostics.py")
config.substitutions += [
    (r"\bhlotag-opt\b(?=.*--verify-diagnostics)", f"{quoted(sys.executable)} {quoted(verify)}"),
    (r"\bhlotag-opt\b", hlotag_opt),
    # A variable without a leading $ is forgotten at the next CHECK-LABEL, so no test matches by what another one left.
    (r"\bFileCheck\b", f"{quoted(filecheck)} --enable-var-scope"),
    ("%python", quoted(sys.executable)),
    ("%hlo", f"{quoted(sys.executable)} {quoted(os.path.join(config.test_source_root, 'hlo', 'Inputs', 'hlo.py'))}"),
]
config.environment["PATH"] = os.pathsep.join([scripts, os.environ.get("PATH", "")])
# What the tests print must not depend on the machine.
config.environment.update({"PYTHONHASHSEED": "0", "JAX_PLATFORMS": "cpu"})
for name in ("HLOTAG_CACHE_DIR", "XDG_CACHE_HOME", "HOME", "PYTHONPATH"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
