# SPDX-License-Identifier: Apache-2.0
"""An audit as a graph for Model Explorer: phases and scopes are layers; states and values colour the nodes.

The files have the form of the dataclasses in `graph_builder.py` and `node_data_builder.py` of the PyPI package
ai-edge-model-explorer.
"""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hlotag._util.files import as_file_name, write_atomically
from hlotag._util.groups import group
from hlotag.audits import cost
from hlotag.audits.model import RANK, Findings, Op, Tag, TagState
from hlotag.errors import HlotagError

_GRAPH = "module"
# Light enough for black text. The colours differ, because Model Explorer counts nodes by colour.
_COLOURS = {
    TagState.LOST: "#ff9d94",
    TagState.MOVED: "#ffcf70",
    TagState.UNKNOWN: "#e8b9d6",
    TagState.CSED: "#c3cad1",
    TagState.FOLDED: "#d5dade",
    TagState.DEAD: "#b3bbc3",
    TagState.MERGED: "#8fd3c4",
    TagState.DUPLICATED: "#c2e8a5",
    TagState.RESTORED: "#9cc9f5",
    TagState.KEPT: "#a8dfb5",
}
_OTHER = "#cfe3d4"
_OF_VALUES = ("#a5c8f0", "#f3c99b", "#b5dfae", "#e5b3cd", "#c7bce8", "#f0e09a", "#9fdad6", "#d9c3ae")
# Values are texts: layers show how many nodes have each value, instead of a sum.
_OF_TEXTS = {
    "hideInAggregatedStatsTable": True,
    "showExpandedSummaryOnGroupNode": True,
    "showLabelCountColumnsInChildrenStatsTable": True,
}


def write(audit: Findings, path: Path) -> list[Path]:
    """Writes the graph, and beside it a file of node data for the states and one for the values of each key.

    For `audit.json`, these are `audit.state.json` and `audit.KEY.json`. Returns the files, the graph first.
    """
    by_op = group((tag.op.id, tag) for tag in audit.tags)
    nodes = [_node(op, audit, by_op.get(op.id, [])) for op in audit.ops]
    documents: dict[Path, Any] = {path: {"label": audit.name, "graphs": [{"id": _GRAPH, "nodes": nodes}]}}
    for name, results in _node_data(audit, by_op):
        file = path.with_name(f"{path.stem}.{as_file_name(name)}.json")
        while file in documents:  # Keys may differ only in characters that file names cannot have.
            file = file.with_name(f"{file.stem}_.json")
        documents[file] = {_GRAPH: {"name": name, "results": results, **_OF_TEXTS}}
    for file, document in documents.items():
        write_atomically(file, json.dumps(document, ensure_ascii=False, allow_nan=False), private=False)
    return list(documents)


def explore(audit: Findings) -> None:
    """Opens the graph in Model Explorer, and serves it until interrupted. Raises HlotagError if it is not installed."""
    model_explorer = import_model_explorer()
    with tempfile.TemporaryDirectory(prefix="hlotag-") as folder:
        graph, *node_data = write(audit, Path(folder, "audit.json"))
        config = model_explorer.config().add_model_from_path(str(graph))
        for file in reversed(node_data):  # The last one is shown first.
            config.add_node_data_from_path(str(file))
        model_explorer.visualize_from_config(config)


def import_model_explorer() -> Any:
    """Imports Model Explorer. Raises HlotagError if it is not installed."""
    try:
        import model_explorer
    except ImportError:
        raise HlotagError("a graph needs Model Explorer; install it: pip install 'hlotag[explore]'") from None
    return model_explorer


def _node(op: Op, audit: Findings, tags: list[Tag]) -> dict[str, Any]:
    attributes = {
        "source": f"{op.file}:{op.line}" if op.file else "",
        "function": op.function,
        "work": cost.in_words(op.flops, op.bytes),
        "instructions": ", ".join(op.instructions),
        "fusions": ", ".join(op.fusions),
    }
    attrs: list[dict[str, Any]] = [{"key": key, "value": value} for key, value in attributes.items() if value]
    if op.derived_from:
        linked = {"type": "node_ids", "nodeIds": [str(number) for number in op.derived_from]}
        attrs.append({"key": "derived from" if len(op.derived_from) == 1 else "derived from one of", "value": linked})
    for tag in tags:
        attrs += [{"key": f"{tag.key}={tag.value}, {step.form}", "value": _step(step)} for step in tag.steps]
    return {
        "id": str(op.id),
        "label": op.name.rpartition(".")[2],
        "namespace": "/".join(part for part in (op.phase, *op.scope.split("/")) if part),
        "attrs": attrs,
        "incomingEdges": [{"sourceNodeId": str(operand), "targetNodeInputId": str(n)} for n, operand in enumerate(op.operands)],
        "outputsMetadata": [{"id": "0", "attrs": [{"key": "tensor_shape", "value": op.type}]}] if op.type else [],
    }


def _step(step: Any) -> str:
    by = f" by {step.by}" if step.by else ""
    detail = f": {step.detail}" if step.detail else ""
    on = f" (on {', '.join(step.instructions)})" if step.instructions else ""
    return f"{step.state}{by}{detail}{on}"


def _node_data(audit: Findings, by_op: Mapping[int, list[Tag]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The node data: names, each with values by node. The state of an operation is the one of its tags that ranks first."""
    worst = {number: min((tag.state for tag in tags), key=RANK.__getitem__) for number, tags in by_op.items()}
    yield "state", {str(n): {"value": str(state), "bgColor": _COLOURS.get(state, _OTHER)} for n, state in worst.items()}
    for key in dict.fromkeys(tag.key for tag in audit.tags):
        tags = [tag for tag in audit.tags if tag.key == key]
        colours = dict(zip(dict.fromkeys(tag.value for tag in tags), itertools.cycle(_OF_VALUES), strict=False))
        yield key, {str(tag.op.id): {"value": tag.value, "bgColor": colours[tag.value]} for tag in tags}
