# SPDX-License-Identifier: Apache-2.0
"""The environment variables that turn hlotag on, or off, without a change to the program, as docs/command_line.md has them.

`_util.kill_switch` reads HLOTAG_DISABLE. The others take effect when JAX initializes its backends. JAX traces a first `jit` call
with NumPy arrays before that. Such a program goes through the passes, but its value tags are JAX's own, which autodiff drops;
hlotag warns.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hlotag._util.arguments import did_you_mean
from hlotag._util.kill_switch import OFF, forbids_stages
from hlotag.errors import HlotagError

# By variable, whether it configures the stage of HLOTAG_ENABLE.
_KNOWN = {
    "HLOTAG_ENABLE": False,
    "HLOTAG_DISABLE": False,
    "HLOTAG_RULES": True,
    "HLOTAG_PIPELINE": True,
    "HLOTAG_HLO": True,
    "HLOTAG_OP_NAMES": True,
    "HLOTAG_ON_ERROR": True,
    "HLOTAG_DUMP_TO": False,
    "HLOTAG_REPRODUCER_DIR": False,
}
_ON = ("1", "true", "yes", "on")


def start(environment: Mapping[str, str]) -> None:
    """Applies the variables. Warns about a malformed one, because an error would keep JAX from starting."""
    given = {name: value for name, value in environment.items() if name.startswith("HLOTAG_") and value}
    for name in sorted(given.keys() - _KNOWN.keys()):
        if meant := did_you_mean(name, _KNOWN, 0.8):  # Other variables may belong to a build or a test.
            _warn(name, f"hlotag has no such variable, and it has no effect{meant}")
    if given.keys() & {"HLOTAG_ENABLE", "HLOTAG_DUMP_TO"} and forbids_stages():
        return
    if directory := given.get("HLOTAG_DUMP_TO"):
        _dump(directory)
    wanted = given.get("HLOTAG_ENABLE", "").strip().lower()
    if wanted in _ON:
        _enable(given)
    elif wanted not in OFF:
        _warn("HLOTAG_ENABLE", f"expected one of {', '.join(_ON + OFF[:-1])}, got {given['HLOTAG_ENABLE']!r}")
    else:
        for name, is_for_enable in _KNOWN.items():
            if is_for_enable and name in given:
                _warn(name, "it has no effect without HLOTAG_ENABLE=1")


def _dump(directory: str) -> None:
    from hlotag.lowering.dump import dump_to

    try:
        Path(directory).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        _warn("HLOTAG_DUMP_TO", f"{error}; nothing is dumped")
    else:
        dump_to(directory)


def _enable(given: Mapping[str, str]) -> None:
    from hlotag.passes.pipeline import DEFAULT_PIPELINE
    from hlotag.passes.rules import load_rules

    hlo = given.get("HLOTAG_HLO", "1").strip().lower()
    on_error: Any = given.get("HLOTAG_ON_ERROR", "raise")
    try:
        from hlotag.lowering.staging import enable

        enable(
            given.get("HLOTAG_PIPELINE", DEFAULT_PIPELINE),
            load_rules(given["HLOTAG_RULES"]) if "HLOTAG_RULES" in given else (),
            hlo=hlo in _ON if hlo in _ON + OFF else _list(given["HLOTAG_HLO"]),
            op_names=_list(given.get("HLOTAG_OP_NAMES", "")),
            on_error=on_error,
        )
    except (HlotagError, OSError) as error:
        _warn("HLOTAG_ENABLE", f"{error}; hlotag stays off")


def _list(text: str) -> list[str]:
    return [element.strip() for element in text.split(",") if element.strip()]


def _warn(name: str, problem: str) -> None:
    warnings.warn(f"{name}: {problem}", RuntimeWarning, stacklevel=2)
