# SPDX-License-Identifier: Apache-2.0
"""Optimized HLO as text that is equal for modules that differ in names and attributes only."""

import re

_STRING = r'"(?:[^"\\]|\\.)*"'
_LEFT_OUT = re.compile(rf', (?:metadata|frontend_attributes)=\{{(?:[^{{}}"]|{_STRING}|\{{(?:[^{{}}"]|{_STRING})*\}})*\}}')
_COMPUTATION = re.compile(r"^(?:ENTRY )?(%[\w.\-]+) \(.*\{\n((?:  .*\n)*)\}", re.M)
_CALLED = re.compile(r"([={])(?=%)")
_NAME = re.compile(r"(?:computation )?%[\w.\-]+")


def without_names(text: str) -> str:
    """The instructions of an optimized module in the order of their schedule, each computation where it is called first.

    Metadata and frontend attributes are left out, and names are replaced by numbers.
    """
    bodies = {found[1]: _LEFT_OUT.sub("", found[2]) for found in _COMPUTATION.finditer(text)}
    entry = re.search(r"^ENTRY (%[\w.\-]+)", text, re.M)
    assert entry is not None, text
    numbers: dict[str, str] = {}
    written: list[str] = []
    pending = [entry[1]]
    for computation in pending:
        body = _CALLED.sub(r"\1computation ", bodies[computation])  # An instruction and what it calls may share a name.
        written += [_NAME.sub(lambda name: numbers.setdefault(name[0], f"%{len(numbers)}"), body)]
        found = dict.fromkeys(name.removeprefix("computation ") for name in _NAME.findall(body))
        pending += [name for name in found if name in bodies and name not in pending]
    return "\n\n".join(written)
