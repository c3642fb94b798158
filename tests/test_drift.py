# SPDX-License-Identifier: Apache-2.0
"""A jaxlib whose functions are not what they should be: noticed in a child process, and refused."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from hlotag.mlir.library import find_library

pytestmark = pytest.mark.slow

RunPython = Callable[..., subprocess.CompletedProcess[str]]

# What comes before the connection, and what the error has to say.
DOCTORED = {
    "swapped functions": (
        "a, b = 'mlirLocationCallSiteGetCallee', 'mlirLocationCallSiteGetCaller'\noffsets.update({a: offsets[b], b: offsets[a]})",
        r"failed \(exit status 1\):\n    the passes gave a wrong result\n +found: .*\n +expected: ",
    ),
    "offset outside": ("offsets['mlirOperationVerify'] = 64", "could not be resolved"),
}

PREPARE = """
import json, sys
from hlotag import _core
from hlotag.mlir import library, symbols, trial
found = library.find_library()
library.TRIED = ()
read = symbols.read_symbols
offsets = read(found.path, _core.required_symbols())
symbols.read_symbols = lambda path, names: read(path, names) if path != found.path else offsets
import hlotag
"""

CONNECT = """
module = "func.func public @main() { return {mhlo.frontend_attributes = {a = \\"1\\"}} }"
reasons = []
for _ in range(2):
    try:
        assert "frontend_attributes" not in hlotag.run_passes(module, "canonicalize,hlotag-strip")
    except hlotag.errors.IncompatibleJaxlibError as error:
        assert "found: jaxlib" in str(error) and "what to do: install jaxlib from PyPI" in str(error)
        assert not _core.is_installed()
        reasons.append(str(error).split("reason: ")[1].split("\\n  supported")[0])
assert len(set(reasons)) <= 1 and len(reasons) in (0, 2)
print(json.dumps(reasons[:1]))
"""


def refusals(run_python: RunPython, doctor: str, **environment: str) -> list[str]:
    """Runs a pipeline twice after `doctor`; returns why jaxlib was refused, if it was."""
    done = run_python(PREPARE + doctor + CONNECT, **environment)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("case", DOCTORED)
def test_another_jaxlib_is_refused_with_the_reason(run_python: RunPython, case: str) -> None:
    doctor, text = DOCTORED[case]
    (reason,) = refusals(run_python, doctor)
    assert re.search(text, reason)


def link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


@pytest.fixture
def own_jaxlib(tmp_path: Path) -> tuple[Path, Path]:
    """A folder with a jaxlib of its own, to be put first in PYTHONPATH, and the library in it, which may be replaced."""
    library = Path(find_library().path)
    copy = tmp_path / "site" / "jaxlib"
    shutil.copytree(library.parent, copy, copy_function=link, ignore=shutil.ignore_patterns("__pycache__", "include"))
    return copy.parent, copy / library.name


def test_a_library_that_is_replaced_while_the_process_runs(run_python: RunPython, own_jaxlib: tuple[Path, Path]) -> None:
    site, library = own_jaxlib
    replace = f"""
assert found.path == {str(library)!r}
import os, shutil
shutil.copy2(found.path, found.path + ".new")
os.replace(found.path + ".new", found.path)
trial.run = lambda *args: None  # a trial in a new process says how the new library works, and not this one
"""
    path = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])
    (reason,) = refusals(run_python, replace, PYTHONPATH=path)
    assert "is not the file that this process has loaded: it was replaced since; restart the process" in reason
