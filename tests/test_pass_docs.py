# SPDX-License-Identifier: Apache-2.0
"""The reference of passes is what the passes say."""

import importlib.util
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOL = ROOT / "tools" / "generate_pass_docs.py"


def load_tool():
    spec = importlib.util.spec_from_file_location("generate_pass_docs", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date():
    done = subprocess.run([sys.executable, str(TOOL), "--check"], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


def test_every_pass_has_a_summary_a_description_with_an_example_and_described_options():
    tool = load_tool()
    page = tool.render()
    for info in tool.own_passes():
        assert info.summary
        assert not info.summary.endswith(".")
        assert "```mlir" in info.description, info.name
        assert f"\n## {info.name}\n" in page
        for option in info.options:
            assert option.description
            assert not option.description.endswith("."), (info.name, option.name)
