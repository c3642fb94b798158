# SPDX-License-Identifier: Apache-2.0
"""The page of an audit, in a headless Chromium."""

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from html import escape
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import hlotag
import requires
from audits import made_up
from browser import browser
from hlotag.audits import TagState
from hlotag.reports import audit_page, view
from hlotag.results.buffers import Buffer, Life, Memory
from hlotag.results.tags import Instruction

pytestmark = pytest.mark.slow

SAMPLE = made_up(400)
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


def show(driver: Any, path: Any, audit: Any = SAMPLE) -> None:
    audit.to_html(path)
    driver.get(f"file://{path}")
    ready(driver)
    assert driver.get_log("browser") == []


def ready(driver: Any) -> None:
    """Waits until the script has read its data."""
    script = (
        "const done = arguments[0], wait = () => document.documentElement.dataset.ready ? done() : setTimeout(wait, 10); wait()"
    )
    driver.execute_async_script(script)


def text_of(driver: Any, selector: str) -> str:
    return driver.execute_script("return document.querySelector(arguments[0]).textContent", selector)


def listed(driver: Any) -> list[int]:
    """The tags whose rows are in the document."""
    return driver.execute_script("return [...document.querySelectorAll('.tag')].map((row) => Number(row.id.slice(4)))")


def look_for(driver: Any, words: str) -> str:
    """Types a search; gives the line that says how many tags it hides."""
    script = "const e = document.getElementById('search'); e.value = arguments[0]; "
    driver.execute_script(script + "e.dispatchEvent(new Event('input', {bubbles: true}))", words)
    return text_of(driver, "#count")


def test_says_what_the_report_says(chromium, tmp_path):
    show(chromium, tmp_path / "a.html")
    assert text_of(chromium, "h1") == "jit_step"
    assert text_of(chromium, "#sentence") == SAMPLE.report.sentence
    problems = chromium.execute_script("return [...document.querySelectorAll('.problem')].map((e) => e.textContent)")
    assert len(problems) == len(SAMPLE.report.problems) > 0
    for found, problem in zip(problems, SAMPLE.report.problems, strict=True):
        texts = problem.tag, problem.on, problem.source, problem.why, problem.effect, problem.advice
        assert all(text in found for text in texts)
    assert text_of(chromium, "#count") == f"100 of {len(SAMPLE.tags)} tags shown; {len(SAMPLE.tags) - 100} more below"
    assert SAMPLE.tags[listed(chromium)[0]].state == TagState.KEPT


def test_finds(chromium, tmp_path):
    show(chromium, tmp_path / "a.html")
    places = {
        "lost": lambda tag: tag.state == "lost",
        "BLOCK=mlp": lambda tag: tag.value == "mlp",
        "layer_3/": lambda tag: "layer_3/" in tag.op.scope,
        "model.py:17": lambda tag: tag.op.source.startswith("model.py:17"),
        "tanh backward": lambda tag: "tanh" in tag.op.name and tag.op.phase == "backward",
        "hlotag-resolve fusion.3": lambda tag: any("fusion.3" in name for name in tag.op.instructions),
    }
    for words, is_meant in places.items():
        meant = sum(map(is_meant, SAMPLE.tags))
        assert look_for(chromium, words) == (
            f"{min(100, meant)} of {len(SAMPLE.tags)} tags shown; {len(SAMPLE.tags) - meant} hidden by the search"
            + (f"; {meant - 100} more below" if meant > 100 else "")
        )
        assert all(is_meant(SAMPLE.tags[number]) for number in listed(chromium))
    assert look_for(chromium, "no such thing").startswith("0 of ")


def test_links_can_be_sent(chromium, tmp_path):
    show(chromium, tmp_path / "a.html")
    chromium.get("about:blank")
    chromium.get(f"file://{tmp_path}/a.html#tag-17")
    ready(chromium)
    assert listed(chromium)[0] == 17 and listed(chromium).count(17) == 1
    way = text_of(chromium, "#tag-17")
    tag = SAMPLE.tags[17]
    assert all(text in way for text in (f"{tag.op.file}:{tag.op.line}", str(tag.state), *tag.op.instructions))
    chromium.execute_script("location.hash = '#search=lost'")
    chromium.execute_async_script("setTimeout(arguments[0], 100)")
    assert {SAMPLE.tags[number].state for number in listed(chromium)} == {TagState.LOST}
    look_for(chromium, "mlp norm")
    assert chromium.current_url.endswith("#search=mlp%20norm")
    chromium.execute_script("document.querySelector('.problem a').click()")
    chromium.execute_async_script("setTimeout(arguments[0], 100)")
    assert listed(chromium)[0] == SAMPLE.report.problems[0].tags[0]


def test_a_row_opens_and_more_are_shown(chromium, tmp_path):
    show(chromium, tmp_path / "a.html")
    chromium.execute_script("document.querySelector('.tag summary').click()")
    chromium.execute_async_script("setTimeout(arguments[0], 100)")
    assert "hlotag-resolve" in text_of(chromium, ".tag[open] .about")
    chromium.execute_script("document.getElementById('more').click()")
    assert sorted(listed(chromium)) == list(range(len(SAMPLE.tags)))
    assert chromium.execute_script("return document.getElementById('more').hidden")


def test_primals_and_derivatives_are_links_and_untagged_ones_are_named(chromium, tmp_path):
    audit = made_up(40)
    first, second = (next(tag for tag in audit.tags if tag.op.phase == phase) for phase in ("forward", "backward"))
    derived = {second.op.id, audit.ops[-1].id}
    ops = [op._replace(derived_from=(first.op.id,)) if op.id in derived else op for op in audit.ops]
    tags = [tag._replace(op=ops[tag.op.id]) for tag in audit.tags if tag.op.id != ops[-1].id]
    show(chromium, tmp_path / "a.html", replace(audit, ops=ops, tags=tags))
    numbers = [audit.tags.index(tag) for tag in (first, second)]
    script = "return [...document.querySelectorAll(`#tag-${arguments[0]} .about a`)].map((link) => link.hash)"
    for number, other in (numbers[::-1], numbers):
        chromium.execute_script("location.hash = `#tag-${arguments[0]}`", number)
        chromium.execute_script("dispatchEvent(new HashChangeEvent('hashchange'))")
        assert chromium.execute_script(script, number) == [f"#tag-{other}"]
    last = f"derivative {ops[-1].name.removeprefix('stablehlo.')} at model.py:{ops[-1].line}"
    assert last in text_of(chromium, f"#tag-{numbers[0]} .about")


def with_fusions(count: int) -> Any:
    """An audit of fusions with two instructions each."""
    audit = made_up(count)
    pairs = [
        Instruction(
            f"{op.title}.{op.id}{end}", end, f"fusion.{op.id}", (op.id,), scope=op.scope, phase=op.phase, flops=8, bytes=4
        )
        for op in audit.ops
        for end in ("tanh", "add")
    ]
    return replace(audit, instructions=pairs)


def instructions_in(driver: Any) -> list[str]:
    """The names in the list of instructions."""
    return driver.execute_script(
        "return [...document.querySelectorAll('.instruction .of-instruction')].map((e) => e.textContent)"
    )


def test_finds_instructions(chromium, tmp_path):
    audit = with_fusions(400)
    show(chromium, tmp_path / "a.html", audit)
    assert len(instructions_in(chromium)) == 20
    look_for(chromium, "fusion.3")
    assert instructions_in(chromium)[0] == "fusion.3"  # before fusion.30
    names = {each.name for each in audit.instructions}
    for words, is_meant in {
        "layer_3/": lambda each: each.scope.startswith("layer_3/"),
        "model.py:17 tanh": lambda each: audit.ops[each.ops[0]].source.startswith("model.py:17") and "tanh" in each.name,
    }.items():
        look_for(chromium, words)
        chromium.execute_script(
            "while (!document.getElementById('instruction-more').hidden) document.getElementById('instruction-more').click()"
        )
        meant = {each.name for each in audit.instructions if is_meant(each)}
        assert set(instructions_in(chromium)) & names == meant, words
    look_for(chromium, "fusion.7")
    chromium.execute_script("document.querySelector('.instruction summary').click()")
    chromium.execute_async_script("setTimeout(arguments[0], 100)")
    assert "holds " in text_of(chromium, ".instruction[open] .about")
    chromium.execute_script("document.querySelector('.instruction[open] .about a').click()")
    chromium.execute_async_script("setTimeout(arguments[0], 100)")
    assert "in fusion.7" in text_of(chromium, ".instruction.linked .about")


def test_many_instructions(chromium, tmp_path):
    audit = with_fusions(15_000)
    show(chromium, tmp_path / "a.html", audit)
    assert (tmp_path / "a.html").stat().st_size < 2_000_000
    look_for(chromium, "fusion.14999")
    assert text_of(chromium, "#instruction-count").startswith("3 of 45,000 instructions shown")


def test_a_notebook_shows_the_page(chromium, tmp_path):
    """In a frame without an origin, in which a link to a part of the page must not lead to the notebook."""
    frame = SAMPLE._repr_html_()
    assert escape(escape(SAMPLE.report.sentence)) in frame and "<script" not in frame
    (tmp_path / "notebook.html").write_text(f"<title>notebook</title>{frame}")
    chromium.get(f"file://{tmp_path}/notebook.html")
    chromium.switch_to.frame(0)
    ready(chromium)
    assert text_of(chromium, "#sentence") == SAMPLE.report.sentence
    look_for(chromium, "lost")
    assert {SAMPLE.tags[number].state for number in listed(chromium)} == {TagState.LOST}
    chromium.find_element("css selector", ".problem a").click()
    assert listed(chromium)[0] == SAMPLE.report.problems[0].tags[0]
    chromium.switch_to.default_content()
    assert chromium.title == "notebook" and chromium.get_log("browser") == []


def test_a_page_that_is_too_large_is_no_output(monkeypatch):
    monkeypatch.setattr(view, "_MOST", 1000)
    assert "<iframe" not in SAMPLE._repr_html_() and "to_html(path)" in SAMPLE._repr_html_()
    assert set(SAMPLE._repr_mimebundle_(exclude=["text/html"])) == {"text/plain"}


def test_the_keyboard_reaches_all_that_opens(chromium, tmp_path):
    from selenium.webdriver import ActionChains, Keys

    audit = with_fusions(40)
    buffer = Buffer("fusion.1", 64, "", 1, audit.ops[1].scope, "forward", "f32[16]")
    memory = Memory(192, 0, 0, "fusion.1", (Buffer("p", 128, "arguments"), buffer), 0, (Life(buffer, 0, 1),))
    show(chromium, tmp_path / "a.html", replace(audit, memory=memory))
    visible = "[...document.querySelectorAll('a, summary, input, button')].filter((e) => e.checkVisibility())"
    reachable = chromium.execute_script(f"return {visible}.length")
    chromium.execute_script("window.reached = new Set(); addEventListener('focusin', (event) => reached.add(event.target))")
    ActionChains(chromium).send_keys(*[Keys.TAB] * reachable).perform()
    assert chromium.execute_script(f"return {visible}.filter((e) => !reached.has(e)).map((e) => e.outerHTML)") == []
    for kind, inside in {"row": ".inside table", "instruction": ".about", "tag": ".about"}.items():
        chromium.execute_script(f"document.querySelector('.{kind} > summary').focus()")
        ActionChains(chromium).send_keys(Keys.ENTER).perform()
        chromium.execute_async_script("setTimeout(arguments[0], 100)")
        assert text_of(chromium, f".{kind}[open] {inside}"), kind
    chromium.find_element("css selector", ".row[open] a").send_keys(Keys.ENTER)
    chromium.execute_async_script("setTimeout(arguments[0], 100)")
    assert chromium.execute_script("return document.activeElement.parentElement.className") == "instruction linked"


def network(weights, x):
    for number, w in enumerate(weights):
        with hlotag.tagged({"layer": number}):
            x = jnp.tanh(jnp.sin(x @ w))
    return (x**2).sum()


SIZES = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "B": 1, "KiB": 2**10, "MiB": 2**20}


def bars_of(driver: Any, section: str) -> dict[str, tuple[float, float]]:
    """By row, the amount and the share that its bar shows."""
    script = (
        "return [...document.querySelectorAll(arguments[0] + ' details.row')].map((row) => "
        "[row.dataset.value, ...['.amount', '.share'].map((part) => row.querySelector(part).textContent)])"
    )
    shown = {}
    for value, amount, share in driver.execute_script(script, section):
        number, unit = amount.split()
        shown[value] = float(number) * SIZES[unit], float(share.rstrip("%")) / 100
    return shown


def test_numbers_are_those_of_the_json(chromium, tmp_path):
    arguments = [jnp.ones((64, 64))] * 3, jnp.ones((256, 64))
    with hlotag.stage():
        profile = hlotag.profile(jax.grad(network), *arguments, steps=3, memory=True)
        audit = hlotag.audit(jax.grad(network), *arguments, memory=True, effects=False)
    show(chromium, tmp_path / "p.html", profile)
    times, found = json.loads(profile.to_json()), json.loads(audit.to_json())
    seconds = {each: sum(row["seconds"] for row in times["rows"] if row["value"] == each) for each in "012"}
    for value, (amount, share) in bars_of(chromium, "#time-layer").items():
        if value in seconds:
            assert amount == pytest.approx(seconds.pop(value), rel=0.01)
            assert share == pytest.approx(amount / times["total_seconds"], abs=0.002)
    assert not seconds
    layer_of = {tag["op"]: tag["value"] for tag in found["tags"]}
    sizes = Counter()
    for buffer in found["memory"]["buffers"]:
        sizes[layer_of.get(buffer["op"])] += buffer["bytes"]
    shown = {value: amount for value, (amount, _) in bars_of(chromium, "#memory").items() if value in set("012")}
    assert shown and shown == pytest.approx({each: sizes[each] for each in "012" if sizes[each]}, rel=0.01)


def test_slash_searches(chromium, tmp_path):
    show(chromium, tmp_path / "a.html")
    chromium.find_element("tag name", "body").send_keys("/")
    assert chromium.execute_script("return document.activeElement.id") == "search"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_can_be_read_on_a_phone(chromium, tmp_path, scheme):
    audit = made_up(400, texts=("attention" * 12, "mlp"))
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    try:
        show(chromium, tmp_path / "a.html", audit)
        assert chromium.execute_script("return document.documentElement.scrollWidth") == 390
        colours = "const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]"
        sums = [sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in chromium.execute_script(colours)]
        assert (sums[0] < sums[1]) == (scheme == "light") and abs(sums[0] - sums[1]) > 500
    finally:
        chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_hostile_texts_do_nothing(chromium, tmp_path):
    audit = made_up(60, texts=HOSTILE)
    audit = dataclasses.replace(audit, name=HOSTILE[0])
    show(chromium, tmp_path / "a.html", audit)
    title = chromium.title
    chromium.execute_script("document.querySelectorAll('.tag summary').forEach((row) => row.click())")
    chromium.execute_async_script("setTimeout(arguments[0], 200)")
    assert chromium.title == title and "owned'" in title
    counts = "return [document.images.length, document.scripts.length, document.querySelectorAll('[onload]').length]"
    assert chromium.execute_script(counts) == [0, 2, 0]
    assert HOSTILE[0] in text_of(chromium, "h1")


def test_page_is_whole_and_forbids_connections():
    html = audit_page.html(made_up(20))
    assert "default-src 'none'" in html
    assert not re.search(r"(?:src|href)\s*=\s*[\"']?(?:https?:)?//", html)


def test_many_tags(chromium, tmp_path):
    audit = made_up(50_000)
    show(chromium, tmp_path / "a.html", audit)
    assert len(listed(chromium)) == 100
    lost = sum(tag.state == "lost" for tag in audit.tags)
    assert look_for(chromium, "lost").startswith(f"{lost} of {len(audit.tags):,} tags shown; ")


def test_a_file_that_cannot_be_written_is_as_before(tmp_path, monkeypatch):
    def fails(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    audit = hlotag.audit(lambda x: hlotag.tag(jnp.sin(x), {"k": "v"}), 1.0)
    (tmp_path / "file").write_text("before")
    monkeypatch.setattr("os.replace", fails)
    with pytest.raises(OSError, match="No space"):
        audit.to_html(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "before"
