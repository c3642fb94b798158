# SPDX-License-Identifier: Apache-2.0
"""Are the results of two variants equal? Those of the first one are written to a file, for variants in other processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hlotag._text import count, list_some
from hlotag.results.compared import EQUAL


def write_results(results: Any, file: Path) -> None:
    """Writes the arrays of a program's results."""
    # NumPy's files know no bfloat16 and no float8, so arrays are bytes.
    leaves = {path: _to_numpy(leaf) for path, leaf in _leaves(results).items()}
    made: dict[str, Any] = {f"leaf{n}": np.frombuffer(leaf.tobytes(), np.uint8) for n, leaf in enumerate(leaves.values())}
    types = [f"{leaf.dtype}{list(leaf.shape)}" for leaf in leaves.values()]
    np.savez(file, paths=np.array(list(leaves)), types=np.array(types), **made)


def compare_results(results: Any, file: Path) -> str:
    """Says how results differ from those in a file: "equal", or by how much, where most."""
    leaves = {path: _to_numpy(leaf) for path, leaf in _leaves(results).items()}
    with np.load(file) as before:
        if (was := before["paths"].tolist()) != list(leaves):
            return f"other results: {list_some([path or 'the result' for path in {*was} ^ {*leaves}])}"
        types = before["types"].tolist()
        differing: list[tuple[float, str, np.dtype]] = []
        for number, (path, leaf) in enumerate(leaves.items()):
            now = f"{leaf.dtype}{list(leaf.shape)}"
            if now != types[number]:
                return f"other types: {path or 'the result'} was {types[number]} and is {now}"
            data = before[f"leaf{number}"]
            if data.tobytes() != leaf.tobytes():
                distance = _distance(np.frombuffer(data.tobytes(), leaf.dtype).reshape(leaf.shape), leaf)
                differing.append((distance, path, leaf.dtype))
    if not differing:
        return EQUAL
    most, path, dtype = max(differing, key=lambda each: each[0])
    where = f" in {path}" if path else ""
    of = f" ({len(differing)} of {count(len(leaves), 'result')})" if len(leaves) > 1 else ""
    amount = f"by {most:.2g} of the largest" if _is_inexact(dtype) else f"in {most:.2g} of the elements"
    return f"differ {amount}{where}{of}"


def _distance(before: np.ndarray, now: np.ndarray) -> float:
    """The largest difference, relative to the largest value; for integers, the part of the elements that differ."""
    if not _is_inexact(now.dtype):
        return float((before != now).mean())
    kind = np.complex128 if now.dtype.kind == "c" else np.float64
    was, is_now = before.astype(kind), now.astype(kind)
    same = (was == is_now) | (np.isnan(was) & np.isnan(is_now))
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.where(same, 0.0, np.abs(is_now - was))
    scale = float(np.max(np.abs(was[np.isfinite(was)]), initial=0.0))
    if not np.isfinite(distance).all():
        return float("inf")
    return float(distance.max(initial=0.0)) / (scale or 1.0)


def _is_inexact(dtype: np.dtype) -> bool:
    return bool(jnp.issubdtype(dtype, np.inexact))  # NumPy knows no bfloat16, float8 and int4.


def _leaves(results: Any) -> dict[str, Any]:
    return {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(results)}


def _to_numpy(leaf: Any) -> np.ndarray:
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    return np.ascontiguousarray(np.asarray(leaf))
