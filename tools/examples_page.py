# SPDX-License-Identifier: Apache-2.0
"""Makes docs/examples.md, with the pictures in docs/images/examples: each example is run, and its output and picture taken.

python tools/examples_page.py           # all of them
python tools/examples_page.py --check   # fails if the page is of other examples than there are, or of another wording
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
EXAMPLES, PAGE, IMAGES = ROOT / "examples", ROOT / "docs" / "examples.md", ROOT / "docs" / "images" / "examples"
# Those that are shown elsewhere: a module that the others share, and what docs/distributed.md and the demo are about.
ELSEWHERE = {"show", "distributed", "train_step"}
HEAD = """<!-- Made by tools/examples_page.py; do not edit. -->
# Examples

Programs as others write them, on small sizes: `pip install 'hlotag[examples]'`, then `python examples/NAME.py`.

Each is tagged by rules from outside or in its own lines. `show`, a module beside them, runs the step by JAX alone and
with hlotag, compares the results bit for bit, prints the audit, and draws it.
"""


def names() -> list[str]:
    return sorted({path.stem for path in EXAMPLES.glob("*.py")} - ELSEWHERE)


def about(name: str) -> str:
    """What an example says of itself."""
    text = ast.get_docstring(ast.parse((EXAMPLES / f"{name}.py").read_text(encoding="utf-8")))
    assert text, f"{name} has no docstring"
    return text


def heading(name: str) -> str:
    return f"## {name}\n\n{about(name)}\n"


def code(name: str) -> str:
    """The example's program, without its license line and docstring."""
    source = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    docstring = ast.parse(source).body[0]
    lines = source.splitlines()[docstring.end_lineno :]
    return "\n".join(["```py", *lines[1:], "```", ""])


def run(name: str, folder: Path) -> str:
    """Runs an example; returns what it printed."""
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "COLUMNS": "100"}
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), "--out", str(folder)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout


def section(name: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        said = run(name, Path(folder)).replace(f"{folder}/", "")
        IMAGES.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(folder) / f"{name}.png", IMAGES)
    print(f"{name}: ok", flush=True)
    picture = f"![What became of the tags of {name}](images/examples/{name}.png)"
    return f"{heading(name)}\n{code(name)}\n```text\n{said.rstrip()}\n```\n\n{picture}\n"


def problems() -> list[str]:
    """What of the page is not as the examples are; outputs depend on JAX's version and are not looked at."""
    page = PAGE.read_text(encoding="utf-8")
    found = [f"{name} is not there, or is another program" for name in names() if heading(name) + "\n" + code(name) not in page]
    found += [f"{name} has no picture" for name in names() if not (IMAGES / f"{name}.png").exists()]
    return found + [f"{path.stem} is no example" for path in IMAGES.glob("*") if path.stem not in names()]


def main() -> int:
    if "--check" in sys.argv:
        found = problems()
        print("\n".join([*found, "run: python tools/examples_page.py"]) if found else "ok")
        return bool(found)
    PAGE.write_text("\n".join([HEAD, *map(section, names())]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
