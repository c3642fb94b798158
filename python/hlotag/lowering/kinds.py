# SPDX-License-Identifier: Apache-2.0
"""The operations that one equation lowers to, by lowering the equation alone.

A rule with an `op` gives entries to what derives from a matching operation. The operation itself may be dead code, which is in no
module.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hlotag import _compat

_logger = logging.getLogger("hlotag")
# By the key of a primal and platforms, the latest ones last.
_known: dict[Any, frozenset[str]] = {}
_MOST = 2048

# Collectives lower only within their axes.
_COLLECTIVES = {
    "psum": "all_reduce",
    "psum2": "all_reduce",
    "psum_invariant": "all_reduce",
    "pmax": "all_reduce",
    "pmin": "all_reduce",
    "ppermute": "collective_permute",
    "psum_scatter": "reduce_scatter",
}
_OF_EQUATION = re.compile(r'[/"]hlotag(\d+)[/"]')
# The bodies of other operations of StableHLO are parts of them.
_WITH_OPERATIONS = ("stablehlo.while", "stablehlo.case", "stablehlo.if")


def kinds_of(primals: Iterable[Any], lower: Callable[..., Any], options: Mapping[str, Any]) -> dict[Any, frozenset[str]]:
    """The names of the operations that primals lower to, those in bodies of reductions and sorts apart.

    `lower` is JAX's function that lowers a jaxpr to a module, with `options` for the program of the primals.
    """
    platforms = tuple(options["platforms"])
    keys = {primal: (primal.key, platforms) for primal in primals}
    found = {primal: _known[key] for primal, key in keys.items() if key in _known}
    missing = [primal for primal in keys if primal not in found]
    with _compat.tracing.ambient_metadata_is({}):
        found.update(zip(missing, _lower(missing, lower, options), strict=True))
    _known.update({keys[primal]: found[primal] for primal in missing if primal.key is not None})
    while len(_known) > _MOST:
        _known.pop(next(iter(_known)), None)
    return found


def _lower(primals: list[Any], lower: Callable[..., Any], options: Mapping[str, Any]) -> list[frozenset[str]]:
    if not primals:
        return []
    try:
        module = _compat.jaxprs.lower_equations(primals, lower, options)
    except Exception as error:  # Anything that a lowering rule raises out of its context.
        module = None
        _logger.debug("hlotag: equations do not lower alone: %s", error)
        error.__traceback__ = None  # JAX raises some errors as one object each, which would keep the frames with their arrays.
    if module is None:
        if len(primals) > 1:
            return [names for primal in primals for names in _lower([primal], lower, options)]
        name = primals[0].primitive.name
        return [frozenset({f"stablehlo.{_COLLECTIVES.get(name, name)}"})]
    names: list[set[str]] = [set() for _ in primals]
    functions = {function.sym_name.value: function for function in module.body.operations if hasattr(function, "sym_name")}
    for op in functions["main"].body.blocks[0].operations:
        if found := _OF_EQUATION.search(str(op.operation.location)):
            _add_names(op.operation, functions, names[int(found[1])])
    return [frozenset(each) for each in names]


def _add_names(op: Any, functions: Mapping[str, Any], names: set[str]) -> None:
    names.add(op.name)
    inner = [op] if op.name in _WITH_OPERATIONS else []
    if op.name == "func.call":
        inner = [functions[op.attributes["callee"].value].operation]
    for each in inner:
        for region in each.regions:
            for block in region:
                for nested in block.operations:
                    _add_names(nested.operation, functions, names)
