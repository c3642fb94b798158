# SPDX-License-Identifier: Apache-2.0
"""Writes pages into build/site that lead from an old address on to where its content is; `make docs` runs it.

The site's own redirects fetch a file on each page, which browsers refuse to pages that are opened from a file.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

SITE = Path(__file__).resolve().parent.parent / "build" / "site"
# Page: where its headings are now; "" is the page itself, and all headings that are not listed.
OLD = {
    "backward": {"": "tags#forward-and-backward", "instead-of-a-custom_vjp": "tags#forward-and-backward"},
    "cpp_api": {"": "writing_a_pass"},
    "differences": {
        "": "tags#where-hlotag-differs-from-jaxs-own-tagging",
        "known-limits": "compatibility#limits",
    },
    "distributed": {"": "production#jobs-of-many-processes"},
    "effects": {
        "": "audit#did-it-take-effect",
        "what-is-compared": "audit#what-is-compared",
        "what-tags-cost": "how_it_works#what-the-hlo-pass-costs",
        "what-tags-changed-in-each-compiler": "ahead_of_time#what-tags-changed-in-each-compiler",
        "what-each-compiler-reads": "ahead_of_time#what-each-compiler-reads",
        "recipes": "ahead_of_time#examples",
    },
    "export": {"": "production#export"},
    "faq": {
        "": "troubleshooting",
        "what-is-the-overhead": "troubleshooting#what-is-the-overhead",
        "does-it-change-results": "troubleshooting#does-it-change-results",
        "when-should-i-not-use-hlotag": "troubleshooting#when-should-i-not-use-hlotag",
        "which-files-does-it-write-how-do-i-uninstall-it": "production#remove-it",
    },
    "gallery": {"": "recipes"},
    "hlo": {
        "": "how_it_works#the-hlo-pass",
        "which-operation-an-instruction-came-from": "architecture#which-operation-an-instruction-came-from",
        "which-tags-it-gets": "how_it_works#which-tags-an-instruction-gets",
        "limits": "how_it_works#limits-of-the-hlo-pass",
        "measured": "how_it_works#measured",
        "what-it-costs": "how_it_works#what-the-hlo-pass-costs",
    },
    "inserted": {"": "fsdp#collectives-that-xla-inserts"},
    "libraries": {
        "": "recipes#which-rule-finds-the-layers-of-a-library",
        "see-which-scopes-a-program-has": "recipes#which-scopes-does-a-program-have",
        "a-large-config": "recipes#how-do-i-tag-maxtext-without-editing-it",
    },
    "migrating": {
        "": "tags#where-hlotag-differs-from-jaxs-own-tagging",
        "from-jaxxla_computation-and-jaxlibs-xla_client": "xla#from-jaxxla_computation-and-jaxlibs-xla_client",
        "known-limits": "compatibility#limits",
    },
    "patches": {"": "compatibility#what-hlotag-changes-in-jax"},
    "profiles": {"": "recipes#how-do-i-find-layers-in-xprof-perfetto-and-nsight"},
    "turn_off": {"": "production", "remove-it": "production#remove-it"},
    "why_tags_get_lost": {"": "how_it_works#why-tags-get-lost"},
    "xla_api": {"": "xla#api-of-hlotagxla"},
    "xla_computation": {"": "xla#the-hlo-of-a-function"},
}
PAGE = """\
<!doctype html>
<meta charset="utf-8">
<title>{page}</title>
<script>
const to = {to}
location.replace(to[location.hash.slice(1)] ?? to[""])
</script>
<meta http-equiv="refresh" content="1; url={url}">
<p>This is now in <a href="{url}">{url}</a>.
"""


def main() -> int:
    """Writes the pages, and names each address that leads nowhere."""
    dead = []
    for page, places in OLD.items():
        to = {}
        for heading, place in places.items():
            target, _, anchor = place.partition("#")
            file = SITE / f"{target}.html"
            found = file.is_file() and (
                not anchor or re.search(rf'\bid="?{re.escape(anchor)}["\s>]', file.read_text(encoding="utf-8"))
            )
            dead += [] if found else [f"{page}#{heading} leads to {place}, which is not in the site"]
            to[heading] = f"{target}.html" + (f"#{anchor}" if anchor else "")
        (SITE / f"{page}.html").write_text(PAGE.format(page=page, to=json.dumps(to), url=to[""]), encoding="utf-8")
    print("\n".join(dead), file=sys.stderr, end="\n" if dead else "")
    return bool(dead)


if __name__ == "__main__":
    sys.exit(main())
