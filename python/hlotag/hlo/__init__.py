# SPDX-License-Identifier: Apache-2.0
"""Which HLO instruction came from which operation? Reads HLO modules, and joins their instructions to operations."""

from hlotag.hlo.join import join
from hlotag.hlo.module import Computation, HloModule, Instruction
from hlotag.hlo.origins import Origin, Origins

__all__ = ["Computation", "HloModule", "Instruction", "Origin", "Origins", "join"]
