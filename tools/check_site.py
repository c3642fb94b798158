# SPDX-License-Identifier: Apache-2.0
"""Opens the site that `make docs` built in a headless Chromium, prints what is wrong, and fails if anything is.

Each page is opened from its file, at 1440, 720 and 390 pixels: nothing is wider than the window, no table has to be scrolled
at 720 pixels and no block of code at 1440, the browser reports no error, and there is a next or a previous page. A dark
desktop gets dark pages. The search finds the right page first, from a file and from a server.
"""

from __future__ import annotations

import functools
import http.server
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from selenium.common.exceptions import StaleElementReferenceException, TimeoutException  # noqa: E402
from selenium.webdriver.support.wait import WebDriverWait  # noqa: E402

from browser import browser  # noqa: E402

SITE = ROOT / "build" / "site"
FIRST_PAGES = {  # What the search finds first.
    "propagate": "passes.html#hlotag-propagate",
    "overhead": "troubleshooting.html#what-is-the-overhead",
    "memory": "cost.html#memory",
    "communication": "time_by_tag.html#communication",
    "fsdp": "fsdp.html",
    "export": "production.html#export",
    "notebook": "tutorial.html#in-a-notebook",
    "nightly": "ci.html",
}
WIDER = """
const scrolled = (element) => element.scrollWidth > element.clientWidth + 1
const tables = [...document.querySelectorAll(".md-typeset__scrollwrap")].filter(scrolled).map((e) => e.innerText.slice(0, 40))
const blocks = [...document.querySelectorAll("pre > code")].filter(scrolled).map((e) => e.innerText.slice(0, 40))
return {page: scrolled(document.documentElement), tables, blocks, footer: document.querySelectorAll(".md-footer__link").length}
"""
DIALOG = 'return [...document.querySelectorAll("*")].find((e) => e.shadowRoot?.querySelector("dialog"))?.shadowRoot'


def problems_of_pages(driver: Any) -> Iterator[str]:
    for width in (1440, 720, 390):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        for page in sorted(set(SITE.glob("*.html")) - {SITE / "404.html"}):
            if 'http-equiv="refresh"' in page.read_text(encoding="utf-8"):  # leads on from an old address
                continue
            driver.get(page.as_uri())
            shown = driver.execute_script(WIDER)
            where = f"{page.name} at {width} pixels"
            if shown["page"]:
                yield f"{where}: wider than the window"
            if width == 720:
                yield from (f"{where}: a table is wider than its column: {table!r}" for table in shown["tables"])
            if width == 1440:
                yield from (f"{where}: code is wider than its column: {block!r}" for block in shown["blocks"])
            if not shown["footer"]:
                yield f"{where}: no next and no previous page"
            yield from (f"{where}: {message['message']}" for message in driver.get_log("browser"))
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def problems_of_colours(driver: Any, dark: bool) -> Iterator[str]:
    driver.get((SITE / "index.html").as_uri())
    scheme = driver.execute_script("return document.body.dataset.mdColorScheme")
    if scheme != ("slate" if dark else "default"):
        yield f"a {'dark' if dark else 'light'} desktop gets the colours {scheme}"


def problems_of_search(driver: Any, address: str) -> Iterator[str]:
    driver.get(address)
    wait = WebDriverWait(driver, 10, ignored_exceptions=[StaleElementReferenceException])  # Results change while one types.
    wait.until(lambda d: d.find_element("css selector", ".md-search__button")).click()
    dialog = wait.until(lambda d: d.execute_script(DIALOG))
    field = wait.until(lambda _: dialog.find_element("css selector", "input"))
    wait.until(lambda _: field.is_displayed())
    for word, page in FIRST_PAGES.items():
        field.clear()
        field.send_keys(word)
        try:
            wait.until(lambda _, page=page: page in str(dialog.find_element("css selector", "a").get_attribute("href")))
        except TimeoutException:
            yield f"{address}: the search for {word!r} does not find {page} first"
        if field.get_attribute("value") != word:
            yield f"{address}: the search changed what was typed to {field.get_attribute('value')!r}"
    yield from (f"{address}: {message['message']}" for message in driver.get_log("browser"))


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Prints nothing."""


def problems() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(SITE))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for dark in (False, True):
            with tempfile.TemporaryDirectory() as profile, browser(Path(profile), dark=dark) as driver:
                yield from problems_of_colours(driver, dark)
                if dark:
                    continue
                for base in (SITE.as_uri(), f"http://127.0.0.1:{server.server_port}"):
                    yield from problems_of_search(driver, f"{base}/index.html")
                yield from problems_of_pages(driver)
        server.shutdown()


def main() -> int:
    found = list(problems())
    print("\n".join([*found, f"{len(found)} problems"]) if found else "ok")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
