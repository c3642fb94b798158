# SPDX-License-Identifier: Apache-2.0
"""Where the operations of a module are drawn: forward on the left, backward beside it, a band for each scope.

What autodiff derives keeps the scope and the line of what it is derived from, so both are in one band.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hlotag.audit.model import Op

WIDTH, HEIGHT = 132, 24  # of an operation
GAP_X, GAP_Y = 12, 14
COLUMNS = 6  # of a band, at most, in each phase
_MIDDLE = 60  # between the phases
_BAND_GAP, _BAND_HEAD = 26, 24
_MAX_BANDS = 400
_DEEPEST = 30  # layers in a band; beyond that, reading order takes less room


@dataclass(frozen=True)
class Band:
    """A horizontal strip of the drawing.

    Attributes:
        label: The scope or the source line that its operations have in common.
        y: Its top.
        height: Its height.
    """

    label: str
    y: float
    height: float


@dataclass(frozen=True)
class Layout:
    """A drawing.

    Attributes:
        x: The left edge of each operation.
        y: The upper edge of each operation.
        bands: From top to bottom.
        middle: Where the backward phase begins.
        width: Of the whole.
        height: Of the whole.
    """

    x: list[float]
    y: list[float]
    bands: list[Band]
    middle: float
    width: float
    height: float


def layout(ops: Sequence[Op]) -> Layout:
    """Places operations; linear in their number.

    Args:
        ops: Those of one module, each after its operands, ids from 0.

    Returns:
        The drawing.
    """
    x, y = [0.0] * len(ops), [0.0] * len(ops)
    middle = COLUMNS * (WIDTH + GAP_X) + _MIDDLE
    bands: list[Band] = []
    top = 0.0
    phases = [op.phase for op in ops]
    for label, members in _bands(ops, phases).items():
        body = top + _BAND_HEAD
        bottom = body + HEIGHT
        for phase, left in (("forward", 0.0), ("backward", middle)):
            cell = [op for op in members if phases[op.id] == phase]
            for op, (row, column) in zip(cell, _places(cell), strict=True):
                x[op.id] = left + column * (WIDTH + GAP_X)
                y[op.id] = body + row * (HEIGHT + GAP_Y)
                bottom = max(bottom, y[op.id] + HEIGHT)
        bands.append(Band(label, top, bottom - top))
        top = bottom + _BAND_GAP
    return Layout(x, y, bands, middle, middle + COLUMNS * (WIDTH + GAP_X), top)


def _bands(ops: Sequence[Op], phases: list[str]) -> dict[str, list[Op]]:
    """Operations by band, in the order in which the forward pass meets the bands; constants are put where they are used."""
    depth = _depth([op.scope for op in ops])
    labels = ["/".join(op.scope.split("/")[:depth]) or op.source or op.function for op in ops]
    if len(set(labels)) > _MAX_BANDS:
        labels = [op.scope.split("/")[0] or op.function for op in ops]
    for op in reversed(ops):  # So that the first use is what counts in the end.
        for operand in op.operands:
            if ops[operand].name.endswith("constant"):
                labels[operand], phases[operand] = labels[op.id], phases[op.id]
    found: dict[str, list[Op]] = {}
    for wanted in ("forward", "backward"):
        for op, label in zip(ops, labels, strict=True):
            if phases[op.id] == wanted:
                found.setdefault(label, []).append(op)
    return found


def _depth(scopes: Sequence[str]) -> int:
    """How much of a scope makes a band: as much as leaves bands of a readable number and size."""
    distinct = Counter(scopes)
    for depth in (3, 2):
        if len({"/".join(scope.split("/")[:depth]) for scope in distinct}) <= _MAX_BANDS // 4:
            return depth
    return 1


def _places(cell: Sequence[Op]) -> list[tuple[int, int]]:
    """(row, column) of each operation of one phase of a band: below its operands, if that does not get too deep."""
    layers: dict[int, int] = {}
    for op in cell:
        layers[op.id] = 1 + max((layers[o] for o in op.operands if o in layers), default=-1)
    if layers and max(layers.values()) >= _DEEPEST:
        return [divmod(number, COLUMNS) for number in range(len(cell))]
    sizes = Counter(layers.values())
    first_row, row = {}, 0
    for layer in range(len(sizes)):
        first_row[layer] = row
        row += -(-sizes[layer] // COLUMNS)
    seen: Counter[int] = Counter()
    places = []
    for op in cell:
        layer = layers[op.id]
        down, column = divmod(seen[layer], COLUMNS)
        seen[layer] += 1
        places.append((first_row[layer] + down, column))
    return places
