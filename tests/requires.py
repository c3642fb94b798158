# SPDX-License-Identifier: Apache-2.0
"""What a test needs of the machine. Without it the test is skipped; with CI=true it fails, so that nothing is left out unseen."""

import importlib.util
import os
import shutil
from typing import NoReturn

import pytest


def unmet(reason: str) -> NoReturn:
    """Ends the test that calls it.

    Args:
        reason: What is missing, and how to get it.
    """
    if os.environ.get("CI") == "true":
        pytest.fail(f"with CI=true nothing is skipped: {reason}")
    pytest.skip(reason)


def tool(name: str, package: str) -> str:
    """The path of a program; `package` is Debian's that has it."""
    path = shutil.which(name)
    return path if path is not None else unmet(f"there is no {name}: apt-get install {package}")


def libraries(*names: str, extra: str) -> None:
    """Importable modules, which an extra of hlotag's brings."""
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing:
        unmet(f"there is no {', '.join(missing)}: pip install 'hlotag[{extra}]'")
