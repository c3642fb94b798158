# SPDX-License-Identifier: Apache-2.0
"""`hlotag-opt` that also has `mlir-opt` run each pipeline, with the plugin in `cpp/plugin/`, and fails unless both say the same.

Takes the arguments of `hlotag-opt`. `mlir-opt` has no StableHLO, so it gets modules in MLIR's generic form. Compared are the
resulting modules with their locations, what was reported, and whether the passes failed. The environment says where things are:
HLOTAG_MLIR_OPT and HLOTAG_MLIR_OPT_PLUGIN.
"""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
from typing import Any

from hlotag.cli import opt, opt_main
from hlotag.mlir.modules import parse_module
from hlotag.passes.pipeline import run_and_report

_REPORT = re.compile(r"^(<unknown>:0|[^\n]*?:\d+:\d+): (error|warning|remark): ", re.MULTILINE)


class Disagreement(Exception):
    """The drivers differ; the message says in what."""


def run_both(module: Any, pipeline: str, **options: Any) -> Any:
    """Stands for `hlotag.passes.pipeline.run_and_report`.

    Args:
        module: Changed in place, by the passes of the extension.
        pipeline: The passes.
        **options: Fields of `_core.RunOptions`.

    Returns:
        What the extension's run did, for `mlir-opt` did the same.

    Raises:
        Disagreement: It did not.
    """
    before = _generic(module)
    result = run_and_report(module, pipeline, **{**options, "source": "-"})  # mlir-opt does not know the file
    other = subprocess.run(
        [
            os.environ["HLOTAG_MLIR_OPT"],
            "--allow-unregistered-dialect",
            f"--load-pass-plugin={os.environ['HLOTAG_MLIR_OPT_PLUGIN']}",
            f"--pass-pipeline=builtin.module({pipeline})",
            "--mlir-print-op-generic",
            "--mlir-print-debuginfo",
        ],
        input=before,
        capture_output=True,
        text=True,
        check=False,
    )
    if result.ok != (other.returncode == 0):
        raise Disagreement(f"{'' if result.ok else 'not '}ok here, but mlir-opt returned {other.returncode}:\n{other.stderr}")
    _compare("reports", _reports(result, options["source"]), _reports_of(other.stderr))
    if result.ok:
        _compare("module", _generic(module), _generic(parse_module(other.stdout, "what mlir-opt wrote")))
    return result


def _generic(module: Any) -> str:
    return module.operation.get_asm(enable_debug_info=True, print_generic_op_form=True)


def _reports(result: Any, source: str) -> str:
    def place(d: Any) -> str:
        return f"{d.file}:{d.line}:{d.column}" if d.file else "<unknown>:0"

    # Messages name the file; `mlir-opt` reads standard input.
    texts = (" ".join(d.message.replace(f" at {source}:", " at -:").split()) for d in result.diagnostics)
    return "\n".join(f"{place(d)}: {d.severity}: {text}" for d, text in zip(result.diagnostics, texts, strict=True))


def _reports_of(stderr: str) -> str:
    """What `mlir-opt` reported, without the lines of source that it shows after messages."""
    matches = list(_REPORT.finditer(stderr))
    ends = [*(match.start() for match in matches), len(stderr)][1:]
    reports = []
    for match, end in zip(matches, ends, strict=False):
        message = stderr[match.end() : end].rstrip("\n").split("\n")
        if len(message) > 2 and message[-1].strip() == "^":
            message = message[:-2]
        reports.append(match[0] + " ".join(" ".join(message).split()))
    return "\n".join(reports)


def _compare(what: str, ours: str, others: str) -> None:
    if ours != others:
        lines = difflib.unified_diff(ours.splitlines(), others.splitlines(), "hlotag-opt", "mlir-opt", lineterm="", n=1)
        raise Disagreement(f"the {what} differ:\n" + "\n".join(lines))


def main() -> int:
    """Returns the exit status: that of `hlotag-opt`, or 3 if the drivers differ."""
    if not hasattr(opt, "run_and_report"):
        raise AttributeError("hlotag-opt runs pipelines by another name")
    opt.run_and_report = run_both
    try:
        return opt_main()
    except Disagreement as error:
        print(f"mlir_opt_driver: {error}", file=sys.stderr)
        return 3


if __name__ == "__main__":
    sys.exit(main())
