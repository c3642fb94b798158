# SPDX-License-Identifier: Apache-2.0
"""Does HLOTAG_DISABLE keep hlotag off?"""

from __future__ import annotations

import functools
import logging
import os

OFF = ("0", "false", "no", "off", "")


def forbids_stages() -> bool:
    """Whether HLOTAG_DISABLE keeps every stage off. Logs so, once. A misspelt value counts: the switch is for emergencies."""
    if os.environ.get("HLOTAG_DISABLE", "").strip().lower() in OFF:
        return False
    _log_once()
    return True


@functools.cache
def _log_once() -> None:
    logging.getLogger("hlotag").warning(
        "HLOTAG_DISABLE=%s keeps hlotag off: tags are JAX's own, and hlotag.enable(), hlotag.stage() and HLOTAG_ENABLE "
        "have no effect",
        os.environ["HLOTAG_DISABLE"],
    )
