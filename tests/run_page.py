# SPDX-License-Identifier: Apache-2.0
"""Runs the code of a Markdown page from top to bottom, in the current directory: `python run_page.py PAGE.md`.

    ```python          one program for the whole page
    ```console         lines after `$ ` are run by a shell, with this Python's commands; the others are what they print
    ```output          what the python block before has printed
    ```any title="F"   written to F, and not run

Lines with `target.py:v5e` or `target.py:h100` are run where HLOTAG_COMPILERS is tpu or gpu.

`...` stands for any text in what is printed. Anything else in a fence is for the reader only.
"""

import contextlib
import doctest
import io
import os
import subprocess
import sys
from pathlib import Path

from markdown_it import MarkdownIt


class WrongPageError(Exception):
    """The page and what its code does differ."""


def expect(found: str, expected: str, where: str) -> None:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    if not doctest.OutputChecker().check_output(expected.strip() + "\n", found.strip() + "\n", flags):
        raise WrongPageError(f"{where}: expected\n{expected}\nfound\n{found}")


def run_console(text: str, where: str) -> None:
    for chunk in ("\n" + text.replace("\\\n", "")).split("\n$ ")[1:]:
        command, _, expected = chunk.partition("\n")
        if is_elsewhere(command):
            continue
        done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
        if expected.strip():
            expect(done.stdout + done.stderr, expected, where)
        elif done.returncode:
            raise WrongPageError(f"{where}: `{command}` ended with {done.returncode}\n{done.stdout}{done.stderr}")


def is_elsewhere(command: str) -> bool:
    """Whether a command takes a compiler that is not installed here."""
    needed = {"target.py:v5e": "tpu", "target.py:h100": "gpu"}
    return any(name in command and os.environ.get("HLOTAG_COMPILERS") != kind for name, kind in needed.items())


def run_page(page: Path) -> int:
    namespace: dict[str, object] = {"__name__": "__main__"}
    printed, blocks = "", 0
    for token in MarkdownIt().parse(page.read_text()):
        if token.type != "fence" or token.map is None:
            continue
        language, _, rest = token.info.strip().partition(" ")
        where = f"{page.name}:{token.map[0] + 1}"
        if rest.startswith("title="):
            Path(rest.removeprefix("title=").strip('"')).write_text(token.content)
        elif language == "python":
            out = io.StringIO()
            # Blank lines in front, so that a traceback has the page's own line numbers.
            code = compile("\n" * (token.map[0] + 1) + token.content, str(page), "exec")
            with contextlib.redirect_stdout(out):
                exec(code, namespace)
            printed = out.getvalue()
        elif language == "output":
            expect(printed, token.content, where)
        elif language == "console":
            run_console(token.content, where)
        else:
            continue
        blocks += 1
    return blocks


if __name__ == "__main__":
    sys.path.insert(0, "")  # A block may import what another wrote.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    print(run_page(Path(sys.argv[1]).resolve()), "blocks")
