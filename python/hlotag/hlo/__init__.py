# SPDX-License-Identifier: Apache-2.0
"""HLO modules, and the operations that their instructions came from."""

from hlotag.hlo.join import join
from hlotag.hlo.module import Computation, HloModule, Instruction
from hlotag.hlo.origins import Origin, Origins

__all__ = ["Computation", "HloModule", "Instruction", "Origin", "Origins", "join"]
