# SPDX-License-Identifier: Apache-2.0
"""The page of an audit, in a headless Chromium."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

import requires
from audits import made_up
from browser import browser
from hlotag.audit.render import page

pytestmark = pytest.mark.slow

HOSTILE = (
    "</script><img src=x onerror=\"document.title='owned'\">",
    "<script>document.title='owned'</script>",
    "' onclick=\"document.title='owned'\" x='",
    "\u2028]]><!--<svg/onload=document.title='owned'>",
    "${document.title='owned'}\\u003c@DATA@@SCRIPT@",
)


@pytest.fixture(scope="module")
def chromium(tmp_path_factory) -> Iterator[Any]:
    requires.tool("chromium", "chromium")
    requires.tool("chromedriver", "chromium-driver")
    with browser(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


def show(driver: Any, audit: Any, path: Any) -> None:
    audit.to_html(path)
    driver.get(f"file://{path}")
    assert driver.execute_script("return document.documentElement.dataset.ready") == "true"
    assert driver.get_log("browser") == []


def text_of(driver: Any, selector: str) -> str:
    return driver.execute_script("return document.querySelector(arguments[0]).textContent", selector)


def choose(driver: Any, name: str, value: str) -> str:
    """Sets a filter; gives the line that says how many operations are left."""
    script = "const e = document.getElementById(arguments[0]); e.value = arguments[1]; "
    driver.execute_script(script + "e.dispatchEvent(new Event('input', {bubbles: true}))", name, value)
    driver.execute_async_script("setTimeout(arguments[0], 200)")
    return text_of(driver, "#count")


def count_of(line: str) -> tuple[int, int]:
    whole, tagged = re.fullmatch(r"([\d,]+) operations?, ([\d,]+) with tags", line).groups()  # pyright: ignore
    return int(whole.replace(",", "")), int(tagged.replace(",", ""))


def test_opens(chromium, tmp_path):
    audit = made_up(400)
    show(chromium, audit, tmp_path / "a.html")
    assert text_of(chromium, "h1") == "jit_step"
    assert f"{len(audit.tags)} tags" in text_of(chromium, "#facts")
    assert count_of(text_of(chromium, "#count")) == (400, len(audit.tags))
    chips = text_of(chromium, "#chips")
    assert all(f"{state.label}{count}" in chips for state, count in audit.counts.items())
    painted = (
        "const c = document.getElementById('graph'); const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; "
    )
    colours = chromium.execute_script(
        painted
        + "const s = new Set(); for (let i = 0; i < d.length; i += 4) s.add(d[i] * 65536 + d[i + 1] * 256 + d[i + 2]); "
        + "return s.size"
    )
    assert colours > 10


def test_filters(chromium, tmp_path):
    audit = made_up(400)
    show(chromium, audit, tmp_path / "a.html")
    of = {
        ("state", "lost"): sum(tag.state == "lost" for tag in audit.tags),
        ("tag", "=block=mlp"): sum(tag.value == "mlp" for tag in audit.tags),
        ("phase", "backward"): sum(op.phase == "backward" for op in audit.ops),
        ("scope", "layer_3/"): sum("layer_3/" in op.scope for op in audit.ops),
        ("source", "model.py:17"): sum(op.line == 17 or op.source.startswith("model.py:17") for op in audit.ops),
        ("search", "tanh"): sum("tanh" in op.name for op in audit.ops),
        ("tag", "-"): len(audit.ops) - len(audit.tags),
    }
    for (name, value), expected in of.items():
        assert count_of(choose(chromium, name, value))[0] == expected, name
        assert count_of(choose(chromium, name, ""))[0] == 400
    chromium.execute_script("document.querySelector('.chip').click()")
    assert count_of(text_of(chromium, "#count"))[0] == of["state", "lost"]


def test_selects(chromium, tmp_path):
    audit = made_up(400)
    show(chromium, audit, tmp_path / "a.html")
    first = audit.by_attention()[0]
    chromium.execute_script("document.querySelector('.row').click()")
    detail = text_of(chromium, "#detail")
    assert first.op.name in detail and "/home/user/model.py:" + str(first.op.line) in detail
    stages = chromium.execute_script("return [...document.querySelectorAll('#detail .stage')].map((e) => e.textContent)")
    assert stages == [str(step.stage) for step in first.steps]
    assert chromium.execute_script("return document.querySelectorAll('.row[aria-selected=true]').length") == 1


def test_keyboard(chromium, tmp_path):
    from selenium.webdriver.common.keys import Keys

    show(chromium, made_up(400), tmp_path / "a.html")
    body = chromium.find_element("tag name", "body")
    body.send_keys("/")
    assert chromium.execute_script("return document.activeElement.id") == "search"
    chromium.switch_to.active_element.send_keys(Keys.ESCAPE)
    listing = chromium.find_element("id", "list")
    for key, place in ((Keys.ARROW_DOWN, "1"), (Keys.ARROW_DOWN, "2"), (Keys.END, "400"), (Keys.HOME, "1")):
        listing.send_keys(key)
        chosen = chromium.execute_script(
            "return document.querySelector('.row[aria-selected=true]')?.getAttribute('aria-posinset')"
        )
        assert chosen == place
    body.send_keys(Keys.ESCAPE)
    assert "Where the tags went" in text_of(chromium, "#detail")


def test_both_themes(chromium, tmp_path):
    show(chromium, made_up(40), tmp_path / "a.html")
    background = "return getComputedStyle(document.body).backgroundColor"
    before = chromium.execute_script(background)
    chromium.execute_script("document.getElementById('theme').click()")
    assert chromium.execute_script(background) != before


def test_hostile_texts_do_nothing(chromium, tmp_path):
    audit = made_up(60, texts=HOSTILE)
    audit.name = HOSTILE[0]
    show(chromium, audit, tmp_path / "a.html")
    title = chromium.title
    for row in range(4):
        chromium.execute_script("document.querySelectorAll('.row')[arguments[0]].click()", row)
    chromium.execute_async_script("setTimeout(arguments[0], 200)")
    assert chromium.title == title and "owned'" in title
    assert chromium.execute_script(
        "return [document.images.length, document.scripts.length, document.querySelectorAll('svg').length]"
    ) == [0, 2, 0]
    assert HOSTILE[0] in text_of(chromium, "h1")


def test_page_is_whole_and_forbids_connections():
    html = page.html(made_up(20))
    assert "default-src 'none'" in html
    assert not re.search(r"(?:src|href)\s*=\s*[\"']?(?:https?:)?//", html)


def test_many_operations(chromium, tmp_path):
    show(chromium, made_up(50_000), tmp_path / "a.html")
    assert count_of(text_of(chromium, "#count"))[0] == 50_000
    # Only the rows that can be seen are in the document.
    assert 0 < chromium.execute_script("return document.querySelectorAll('.row').length") < 60
    chromium.execute_script("const l = document.getElementById('list'); l.scrollTop = l.scrollHeight")
    chromium.execute_async_script("requestAnimationFrame(() => setTimeout(arguments[0], 50))")
    assert (
        chromium.execute_script("return [...document.querySelectorAll('.row')].at(-1).getAttribute('aria-posinset')") == "50000"
    )


@pytest.mark.parametrize("ending", [".png", ".svg", ".pdf"])
def test_figure(tmp_path, ending):
    path = tmp_path / f"a{ending}"
    made_up(200, texts=("a$x^2$", "b", "c" * 80)).to_png(path)
    assert path.stat().st_size > 5000
    if ending == ".svg":
        assert "block=b" in path.read_text()


def test_figure_in_a_format_that_there_is_not(tmp_path):
    with pytest.raises(Exception, match=r"ends in one of \.png, \.svg, \.pdf"):
        made_up(20).to_png(tmp_path / "a.jpg")
