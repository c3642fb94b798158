# SPDX-License-Identifier: Apache-2.0
"""The user's backward rules: tags that are set in one are its own, and those from outside of it are of derived operations.

JAX calls a backward rule while it transposes, so the rule's operations are in a backward pass, and are not derived from any
operation. Each has a mark in its name stack, one for each rule that is open. An operation is derived if its path has more
transposes than such marks; one that autodiff derives from a rule's operation has one transpose more than that operation.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from hlotag import _compat
from hlotag.tagging.entries import inherit, settle
from hlotag.tagging.phases import BACKWARD_RULE
from hlotag.tagging.state import active


class _Thread(threading.local):
    outside: tuple[Mapping[str, Any], ...] = ()  # The metadata outside of each backward rule that is open, outermost first.


_thread = _Thread()


@contextmanager
def _in_backward_rule() -> Iterator[None]:
    if active() is None:
        yield
        return
    outer = _thread.outside
    ambient = _compat.tracing.ambient_metadata()
    try:
        _thread.outside = (*outer, ambient)
        with _compat.backward_rules.within(BACKWARD_RULE), _compat.tracing.ambient_metadata_is(settle(ambient)):
            yield
    finally:
        _thread.outside = outer


def settle_inherited(metadata: dict[str, Any]) -> dict[str, Any]:
    """The metadata of an equation that a backward rule evaluates, and that was traced outside of it (`jax.custom_gradient`)."""
    if not _thread.outside or active() is None:
        return metadata
    for outside in _thread.outside:
        metadata = inherit(metadata, outside)
    return metadata


PATCHES = _compat.backward_rules.backward_rule_patches(_in_backward_rule)
