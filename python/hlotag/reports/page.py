# SPDX-License-Identifier: Apache-2.0
"""The HTML document of every page: its template, one style sheet, and a policy that forbids connections."""

from __future__ import annotations

import base64
import functools
import hashlib
from importlib import resources
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from hlotag._text import count
from hlotag.reports.drawing import BAR

if TYPE_CHECKING:
    from jinja2 import Environment


def render(template: str, title: str, *, script: str = "", kind: str = "audit", **values: Any) -> str:
    """Makes an HTML document of a template in `templates/`, which escapes all text.

    Its content security policy forbids connections and scripts other than `script`. The style sheet has rules for a `kind` of
    page. `values` are those of the template.
    """
    style = read_asset("page.css")
    scripts = f"script-src '{_digest(script)}'; " if script else ""
    policy = f"default-src 'none'; {scripts}style-src '{_digest(style)}'; base-uri 'none'; form-action 'none'"
    # In a style sheet and a script, nothing is escaped.
    assets = {"style": Markup(style), "script": Markup(script), "policy": Markup(policy)}
    return _environment().get_template(template).render(values, title=title, kind=kind, **assets)


def read_asset(name: str) -> str:
    """The text of a file of this folder."""
    return resources.files("hlotag.reports").joinpath(name).read_text(encoding="utf-8")


@functools.cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("hlotag.reports")
    made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.globals["bar_length"] = int(BAR)
    made.filters.update(count=count, px="{:.1f}".format, with_class=lambda name, kind: (name, kind))
    return made


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
