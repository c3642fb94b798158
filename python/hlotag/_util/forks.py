# SPDX-License-Identifier: Apache-2.0
"""Locks that survive a fork. A thread that holds a lock does not exist in the forked process, and would never release it."""

from __future__ import annotations

import os
from typing import Any


def free_in_children(lock: Any) -> Any:
    """Makes a lock, which must live as long as the process, free in forked processes, whoever holds it.

    What the lock guards must be usable at every point of a change.
    """
    os.register_at_fork(after_in_child=lock._at_fork_reinit)
    return lock
