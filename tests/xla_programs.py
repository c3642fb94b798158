# SPDX-License-Identifier: Apache-2.0
"""Programs and data that the tests of `hlotag.xla` share."""

import numpy as np

ADD_HLO = """HloModule add_vectors

ENTRY main {
  x = f32[3]{0} parameter(0)
  y = f32[3]{0} parameter(1)
  ROOT sum = f32[3]{0} add(x, y), frontend_attributes={owner="me",stage="7"}
}
"""
ADD_STABLEHLO = """module @add_vectors {
  func.func @main(%x: tensor<3xf32>, %y: tensor<3xf32>) -> tensor<3xf32> {
    %sum = stablehlo.add %x, %y {mhlo.frontend_attributes = {owner = "me", stage = "7"}} : tensor<3xf32>
    return %sum : tensor<3xf32>
  }
}
"""
SHARDED_HLO = """HloModule sharded, num_partitions=2

ENTRY main {
  x = f32[4]{0} parameter(0), sharding={devices=[2]<=[2]}
  y = f32[4]{0} parameter(1), sharding={devices=[2]<=[2]}
  ROOT sum = f32[4]{0} add(x, y), sharding={devices=[2]<=[2]}
}
"""
NEGATE_HLO = "HloModule m\n\nENTRY main { x = f32[2,3] parameter(0)\n ROOT y = f32[2,3] negate(x) }\n"
ONE_TO_THREE = np.array([1, 2, 3], np.float32)
FOUR_TO_SIX = np.array([4, 5, 6], np.float32)
SUM = [5, 7, 9]


def add_on(client, device=None):
    """The arguments of the addition, on a device."""
    return [client.buffer_from_pyval(data, device) for data in (ONE_TO_THREE, FOUR_TO_SIX)]


def hlo_text(executable):
    return executable.hlo_modules()[0].to_string()


def lists(results):
    """Sharded results as lists of numbers, by result and device."""
    return [[array.tolist() for array in devices] for devices in results.disassemble_into_single_device_arrays()]
