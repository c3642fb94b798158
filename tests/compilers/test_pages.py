# SPDX-License-Identifier: Apache-2.0
"""docs/ahead_of_time.md: its program prints what the page says, with each topology."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from run_page import expect

PAGE = Path(__file__).parents[2] / "docs" / "ahead_of_time.md"
TARGET = Path(__file__).parent / "targets" / "h100.txtpb"


def test_the_program_prints_what_the_page_says(tmp_path):
    page = PAGE.read_text()
    program, said = re.search(r'```py title="train_tpu.py"\n(.*?)```.*?```text\n(.*?)```', page, re.DOTALL).groups()
    if os.environ["HLOTAG_COMPILERS"] == "gpu":
        topology = re.search(r"```py\n(from pathlib .*?)```", page, re.DOTALL)[1]
        program = re.sub(r"topology = .*\n", lambda _: topology, program)
        (tmp_path / "h100.txtpb").write_text(TARGET.read_text())
        said = "...(cuda)...obeyed  _xla_buffer_placement=pinned_host...obeyed  _xla_buffer_placement=device..."
    (tmp_path / "train_tpu.py").write_text(program)
    command = [sys.executable, "train_tpu.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    expect(done.stdout, said, PAGE.name)
