# SPDX-License-Identifier: Apache-2.0
"""What passes keep on operations in flight, malformed: an error at once or nothing, and the same in a second run."""

import itertools

import pytest

import hlotag

PASSES = [
    """hlotag-attach{rules='[{op = "sine", attrs = {r = "1"}}]'}""",
    *("hlotag-resolve", "hlotag-propagate-regions", "hlotag-propagate-calls", "hlotag-propagate-autodiff", "hlotag-verify"),
    "hlotag-strip",
]
NAMES = ["hlotag.derived", "hlotag.tags", "hlotag.origins", "mhlo.frontend_attributes"]
VALUES = ["3 : i32", '["a"]', "{}", "{k = 3 : i32}", '{k = ["hlotag.unset"]}', '{hlotag.x = "v"}']
PLACES = ["seed", "helper", "constant", "call", "callee", "body", "module"]
TAG = '{k = "v"}'


def program(place, name, value, seed):
    """A program with one attribute at one place, beside those of `seed` that the tagged operations have."""

    def attributes(here, present=()):
        entries = dict(present) | ({name: value} if here == place else {})
        return "{" + ", ".join(f"{key} = {text}" for key, text in entries.items()) + "}"

    return f"""module attributes {attributes("module")} {{
  func.func public @main(%x: tensor<4xf32>, %i: tensor<i32>) -> tensor<4xf32> attributes {attributes("function")} {{
    %c = stablehlo.constant {attributes("constant")} dense<3.0> : tensor<f32> loc("jit(f)")
    %0 = stablehlo.broadcast_in_dim %c, dims = [] {attributes("helper")} : (tensor<f32>) -> tensor<4xf32> loc("jit(f)/mul")
    %1 = stablehlo.multiply %x, %0 {attributes("seed", seed)} : tensor<4xf32> loc("jit(f)/mul")
    %2 = call @g(%1) {attributes("call", seed)} : (tensor<4xf32>) -> tensor<4xf32>
    %3 = "stablehlo.case"(%i) ({{
      %4 = stablehlo.sine %2 {attributes("body")} : tensor<4xf32>
      stablehlo.return %4 : tensor<4xf32>
    }}) {attributes("case", seed)} : (tensor<i32>) -> tensor<4xf32>
    return %3 : tensor<4xf32>
  }}
  func.func private @g(%x: tensor<4xf32>) -> tensor<4xf32> {{
    %0 = stablehlo.sine %x {attributes("callee")} : tensor<4xf32> loc("sin")
    return %0 : tensor<4xf32>
  }}
}}"""


SEEDS = {"tagged": {"mhlo.frontend_attributes": TAG}, "attached": {"mhlo.frontend_attributes": TAG, "hlotag.derived": TAG}}


@pytest.mark.parametrize("seed", SEEDS.values(), ids=SEEDS)
@pytest.mark.parametrize("text", PASSES)
def test_a_pass_fails_in_the_first_run_or_never(text, seed):
    def run(pipeline):
        try:
            return hlotag.run_passes(module, pipeline)
        except hlotag.PassError as error:
            return "failed unexpectedly" if "unexpectedly" in str(error) else "failed"

    for place, name, value in itertools.product(PLACES, NAMES, VALUES):
        module = program(place, name, value, seed)
        once = run(text)
        assert once != "failed unexpectedly" and once == run(f"{text},{text}"), (name, value, place)
