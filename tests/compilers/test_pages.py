# SPDX-License-Identifier: Apache-2.0
"""The how-tos' programs, compiled by docs/ahead_of_time.md's target.py, print what the pages say."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import pytest

ROOT = Path(__file__).parents[2]
BOTH = ["offload", "scheduling_groups"]
PAGES = {"tpu": [*BOTH, "must_fuse"], "gpu": BOTH, "cpu": []}[os.environ["HLOTAG_COMPILERS"]]
if jax.__version_info__ < (0, 12):  # What the page says of groups is jax 0.12's.
    PAGES = [page for page in PAGES if page != "scheduling_groups"]


@pytest.mark.parametrize("page", PAGES)
def test_the_page_is_right_with_this_compiler(page, tmp_path):
    text = (ROOT / "docs" / "ahead_of_time.md").read_text()
    (tmp_path / "target.py").write_text(re.search(r'```python title="target.py"\n(.*?)```', text, re.DOTALL)[1])
    shutil.copy(ROOT / "docs" / "targets" / "h100.txtpb", tmp_path)
    command = [sys.executable, str(ROOT / "tests" / "run_page.py"), str(ROOT / "docs" / f"{page}.md")]
    environment = os.environ | {"COLUMNS": "80"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
