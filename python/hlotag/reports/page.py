# SPDX-License-Identifier: Apache-2.0
"""The HTML document around every page: one style sheet, and a policy that forbids connections."""

from __future__ import annotations

import base64
import hashlib
from html import escape
from importlib import resources

_DOCUMENT = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>{style}</style>
</head>
<body class="{kind}">
{body}
</body>
</html>
"""


def assemble(title: str, body: str, script: str = "", kind: str = "audit") -> str:
    """Makes an HTML document in the style that all pages share; the style sheet has rules for a `kind` of page.

    Its content security policy forbids connections and scripts other than `script`, which is in `body`.
    """
    css = read_asset("page.css")
    scripts = f"script-src '{_digest(script)}'; " if script else ""
    policy = f"default-src 'none'; {scripts}style-src '{_digest(css)}'; base-uri 'none'; form-action 'none'"
    return _DOCUMENT.format(policy=policy, title=escape(title), style=css, kind=kind, body=body)


def read_asset(name: str) -> str:
    """The text of a file of this folder."""
    return resources.files("hlotag.reports").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
