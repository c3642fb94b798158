# SPDX-License-Identifier: Apache-2.0
"""Prints requirements of pyproject.toml, one a line: `requirements.py build run test` for the build system, the package itself
and the extra "test". Installing them first lets later installs of hlotag reuse one build directory (no build isolation)."""

import sys
import tomllib
from pathlib import Path


def main() -> None:
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
    groups = dict(project["project"]["optional-dependencies"])
    # What scikit-build-core would fetch by itself in an isolated build.
    groups["build"] = [*project["build-system"]["requires"], "cmake>=3.20", "ninja>=1.11"]
    groups["run"] = project["project"]["dependencies"]
    for group in sys.argv[1:]:
        print("\n".join(groups[group]))


if __name__ == "__main__":
    main()
