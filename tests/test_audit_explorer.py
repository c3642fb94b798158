# SPDX-License-Identifier: Apache-2.0
"""The files for Model Explorer, and the command that opens them."""

import dataclasses
import json
import sys
import types
from pathlib import Path

import jsonschema

from audits import made_up
from hlotag.cli import main

SCHEMA = json.loads(Path(__file__).with_name("model_explorer_schema.json").read_text())


def check(file: Path, name: str):
    document = json.loads(file.read_text())
    jsonschema.validate(document, {"$ref": f"#/$defs/{name}", "$defs": SCHEMA["$defs"]})
    return document


def test_files_have_model_explorers_form(tmp_path):
    audit = made_up(400)
    ops = [op._replace(type="f32[8]", derived_from=(0,)) if op.phase == "backward" else op for op in audit.ops]
    audit = dataclasses.replace(audit, ops=ops)
    graph, *node_data = audit.to_model_explorer(tmp_path / "audit.json")
    assert [file.name for file in (graph, *node_data)] == ["audit.json", "audit.state.json", "audit.block.json"]
    (module,) = check(graph, "GraphCollection")["graphs"]
    nodes = {node["id"]: node for node in module["nodes"]}
    assert len(nodes) == 400
    assert {node["namespace"].split("/")[0] for node in nodes.values()} == {"forward", "backward"}
    assert all(edge["sourceNodeId"] in nodes for node in nodes.values() for edge in node["incomingEdges"])
    states, values = (check(file, "ModelNodeData")[module["id"]]["results"] for file in node_data)
    assert {n: result["value"] for n, result in states.items()} == {str(tag.op.id): tag.state for tag in audit.tags}
    assert {n: result["value"] for n, result in values.items()} == {str(tag.op.id): tag.value for tag in audit.tags}
    way = {a["key"]: a["value"] for a in nodes[str(audit.tags[0].op.id)]["attrs"]}
    assert way[f"block={audit.tags[0].value}, optimized HLO"].startswith(audit.tags[0].state)


def test_keys_that_are_no_file_names_have_files_of_their_own(tmp_path):
    audit = made_up(40)
    keys = ("a/b", "a:b", "state", "..")
    tags = [tag._replace(key=keys[n % 4]) for n, tag in enumerate(audit.tags)]
    files = dataclasses.replace(audit, tags=tags).to_model_explorer(tmp_path / "audit.json")
    assert len(set(files)) == 2 + len(keys)
    assert sorted(files) == sorted(tmp_path.iterdir())
    assert {check(file, "ModelNodeData")["module"]["name"] for file in files[1:]} == {"state", *keys}


def test_explore_opens_it_or_says_how_to_install_it(tmp_path, monkeypatch, capsys):
    add = 'stablehlo.add %a, %a {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32>'
    module = tmp_path / "m.mlir"
    module.write_text(f"func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {{ %r = {add}\n return %r : tensor<4xf32> }}")
    opened = []

    class Config:
        def add_model_from_path(self, path):
            opened.append(check(Path(path), "GraphCollection")["label"])
            return self

        def add_node_data_from_path(self, path):
            opened.append(check(Path(path), "ModelNodeData")["module"]["name"])

    stub = types.SimpleNamespace(config=Config, visualize_from_config=lambda config: opened.append(type(config)))
    monkeypatch.setitem(sys.modules, "model_explorer", stub)
    assert main(["audit", str(module), "--explore", "--no-hlo"]) == 0
    assert opened == ["module", "k", "state", Config]
    monkeypatch.setitem(sys.modules, "model_explorer", None)
    assert main(["audit", "no_such_file.mlir", "--explore"]) == 2
    assert "pip install 'hlotag[explore]'" in capsys.readouterr().err
