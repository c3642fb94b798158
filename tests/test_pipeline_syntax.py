# SPDX-License-Identifier: Apache-2.0
"""The text of pipelines: what is read, what is refused with which words, and what is written."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlotag.errors import ArgumentError
from hlotag.passes import syntax
from hlotag.passes.syntax import Element, PassInfo, PassOption, join, parse, write

TYPES = {
    **{"flag": ("bool", "false"), "limit": ("int", "3"), "ratio": ("float", "0.5"), "text": ("string", '""')},
    **{"keys": ("list of strings", "{}"), "seeds": ("all|attached", "all")},
}
SAMPLE = PassInfo("hlotag-sample", "", "", tuple(PassOption(name, *rest, "") for name, rest in TYPES.items()))


@pytest.fixture(autouse=True, scope="module")
def passes():
    """The only pass of hlotag's is one with an option of each type."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(syntax, "known_passes", lambda: {"hlotag-sample": SAMPLE})
        parse.cache_clear()
        yield
    syntax.forget()


def round_trip(text: str) -> str:
    once = join(parse(text))
    assert parse(once) == parse(text)
    assert join(parse(once)) == once
    return once


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        *((text, "") for text in ("", "  \n ", "builtin.module()")),
        *((text, "hlotag-sample") for text in ("hlotag-sample{limit=3 flag=false ratio=.5}", "hlotag-sample{}")),
        ("builtin.module(hlotag-sample,cse)", "hlotag-sample,cse"),
        (" builtin.module ( hlotag-sample , cse ) ", "hlotag-sample,cse"),
        ("builtin.module(cse),canonicalize",) * 2,
        ("builtin.module(builtin.module(cse))",) * 2,  # The inner one is for modules within the module.
        ("func.func(cse,canonicalize{max-iterations=2 top-down=false})",) * 2,
        *((text, text) for text in ('a{b="x,)y"},c', "func.func(x{a=hlotag-sample})")),
        ("hlotag-sample{keys= text=x}", "hlotag-sample{text=x}"),
        ("hlotag-sample{seeds=attached flag limit=-4}", "hlotag-sample{flag=true limit=-4 seeds=attached}"),
        ('hlotag-sample{ratio=2.5e-1 text="a b"}', 'hlotag-sample{ratio=0.25 text="a b"}'),
        ("hlotag-sample{text='[{op = \"add\"}]'}",) * 2,
        ('hlotag-sample{text=[{op = "a]"}, {}] limit=4}', "hlotag-sample{limit=4 text='[{op = \"a]\"}, {}]'}"),
    ],
)
def test_canonical_text(text, canonical):
    assert round_trip(text) == canonical


@pytest.mark.parametrize(
    ("text", "keys"),
    [("{}", None), ('"a,b c"', ["a", "b c"]), ('{"a,b", c}', ["a,b", "c"]), ("'a b',c", ["a b", "c"]), ("{a}", ["a"])],
)
def test_lists(text, keys):
    (element,) = parse(f"hlotag-sample{{keys={text}}}")
    assert element.options == ({"keys": keys} if keys else {})


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",))))
def test_any_string_survives(value):
    options = {"text": value, "keys": [value, "other", value]}
    (element,) = parse(str(Element("hlotag-sample", options)))
    assert element.options == {k: v for k, v in options.items() if v}


@given(st.one_of(st.integers(), st.floats(allow_nan=False)))
def test_any_number_survives(value):
    (element,) = parse(f"hlotag-sample{{{'limit' if isinstance(value, int) else 'ratio'}={write(value)}}}")
    assert [*element.options.values()] in ([value], [])


WORDS = [*"ab,{}()[]\"'\\ =", "hlotag-sample", "text=", "keys=", "builtin.module("]


@given(st.lists(st.sampled_from(WORDS)).map("".join))
def test_what_is_read_is_written(text):
    with suppress(ArgumentError):
        parse(text)
        round_trip(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        *[(",", "expected the name of a pass"), ("cse,", "expected the name of a pass")],
        *[("hlotag-sample cse", "expected ',' or options"), ("hlotag-sample(cse)", "expected ',' or options")],
        *[("func.func(cse", r"'\(' is not closed"), ("builtin.module(cse", r"'\(' is not closed"), ("cse)", "closes nothing")],
        *[("func.func(cse}", "'}' closes nothing"), ("hlotag-sample{limit=1", "'{' is not closed")],
        ('hlotag-sample{text="a}', "a quote is not closed"),
        ("hlotag-sample{limit=1.5}", "'limit' of hlotag-sample needs a value of type int, found 'limit=1.5'"),
        *[("hlotag-sample{flag=yes}", "type bool"), ("hlotag-sample{seeds=some}", r"type all\|attached")],
        *[("hlotag-sample{ratio=x}", "type float"), ("hlotag-sample{keys=a,,b}", "list of strings")],
        *[("hlotag-sample{text}", "needs a value of type string"), ("hlotag-sample{=1}", "unknown option ''")],
        ("hlotag-propagate-regions", "the pass 'hlotag-propagate-regions' is now 'hlotag-propagate'"),
        ("cse,hlotag-sampel", "unknown pass 'hlotag-sampel'; did you mean hlotag-sample\\?, in the pipeline 'cse,hlotag-sampel'"),
        (
            "hlotag-sample{nope=1}",
            r"unknown option 'nope' of hlotag-sample; its options: flag \(bool\), limit \(int\), ratio \(float\), text "
            r"\(string\), keys \(list of strings\), seeds \(all\|attached\)",
        ),
    ],
)
def test_what_is_refused(text, reason):
    with pytest.raises(ArgumentError, match=reason):
        parse(text)
