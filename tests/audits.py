# SPDX-License-Identifier: Apache-2.0
"""Audits of any size, made up; for views, which do not ask where one comes from."""

import base64
import json
import random
import re
import zlib
from typing import Any

from hlotag.audits import Audit, Op, Origin, Tag, TagState

NAMES = ("add", "multiply", "dot_general", "reshape", "broadcast_in_dim", "tanh", "reduce", "transpose")
ENDS = (TagState.KEPT, TagState.KEPT, TagState.KEPT, TagState.ELIMINATED, TagState.KEPT, TagState.RESTORED)


def data_of(page: str) -> dict[str, Any]:
    """What the script of a page reads."""
    (packed,) = re.findall(r'id="data">(.*?)</script>', page)
    return json.loads(zlib.decompress(base64.b64decode(packed)))


def made_up(count: int, *, texts: tuple[str, ...] = ("attention", "mlp", "norm"), lost: int = 3) -> Audit:
    """An audit of `count` operations in 40 layers, half of them of a backward pass; `lost` of its tags are."""
    chance = random.Random(0)
    ops, tags = [], []
    for number in range(count):
        backward = number >= count // 2
        place = number - count // 2 if backward else number
        layer = place * 40 // max(1, count // 2)
        operands = tuple({max(0, number - chance.randint(1, 9)) for _ in range(2)} - {number})
        op = Op(
            number,
            f"stablehlo.{chance.choice(NAMES)}",
            f"layer_{39 - layer if backward else layer}/{texts[layer % len(texts)]}",
            "main",
            "backward" if backward else "forward",
            "/home/user/model.py",
            10 + place % 200,
            operands,
            (f"fusion.{number}",),
        )
        ops.append(op)
        if chance.random() < 0.4:
            end = TagState.LOST if len(tags) % max(1, count // 10) == 5 and lost else chance.choice(ENDS)
            bears = () if end in (TagState.ELIMINATED, TagState.LOST) else op.instructions
            origin = Origin("propagated" if backward else "attached", "hlotag-resolve", "tag of the program")
            tags.append(Tag("block", texts[layer % len(texts)], op, end, bears, origin=origin))
    return Audit("jit_step", ops, tags, platform="cpu", instruction_count=count)
