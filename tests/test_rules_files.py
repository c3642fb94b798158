# SPDX-License-Identifier: Apache-2.0
"""Files of rules: errors and warnings name their lines, and the rules are part of the pipeline."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hlotag
from hlotag.passes import rules

X = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("\n[[rule]]\nopp = 'a'\nattrs = {k = 'v'}\n", "3", r"rule 1: unknown field 'opp'; fields are op, .*\n  opp = 'a'"),
        (
            '[[rule]]\nop = "a"\nattrs = {k = "v"}\n[[rule]]\nop = "b"\nattrs = {_xla_loop_unroll_strategy = "never"}\n',
            "6",
            "rule 2: key '_xla_loop_unroll_strategy'.*'never'.*double-buffer",
        ),
        ("[[rule]]\nop = 'a'\n", "1", r"rule 1: a rule needs attrs.*\n  \[\[rule\]\]"),
        ("[[rule]]\nop = 'a'\nattrs = {\n", None, r"not a TOML file: .*line 3"),
        # The header within a string is none, and then no line is better than a wrong one.
        (
            '[[rule]]\nop = 3\nattrs = {k = """\n[[rule]]\n"""}\n',
            None,
            r"rule 1: rule field 'op' must be a non-empty string, got 3$",
        ),
    ],
    ids=["field", "value", "attrs", "syntax", "header-in-a-string"],
)
def test_an_error_in_a_rules_file_shows_its_line(text, place, message, tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text(text)
    where = f"{path}:{place}: " if place else f"{path}: "
    with pytest.raises(hlotag.TagError, match=re.escape(where) + message):
        hlotag.load_rules(path)


def with_file(path):
    return hlotag.DEFAULT_PIPELINE.replace("hlotag-attach", f"hlotag-attach{{rules-file={path}}}")


def test_rules_of_a_file_are_part_of_the_pipeline(tmp_path):
    """What is done does not depend on what becomes of the file, and JAX's caches see what was in it."""
    path = tmp_path / "rules.toml"
    f = jax.jit(lambda x: jnp.sin(x))
    counts = []
    for value in ("one", "two"):
        path.write_text(f"[[rule]]\nop = 'sine'\nattrs = {{k = '{value}'}}\n")
        with hlotag.stage(with_file(path)):
            path.unlink()
            counts.append([f.lower(X).as_text().count(f'k = "{word}"') for word in ("one", "two")])
    assert counts == [[1, 0], [0, 1]]


def test_a_rule_that_matched_nothing_is_logged(caplog):
    module = jax.jit(jnp.sin).lower(X).as_text()
    with caplog.at_level("INFO", logger="hlotag"):
        hlotag.run_passes(module, rules.with_rules("hlotag-attach", [hlotag.Rule({"k": "v"}, op="tanh")]))
    assert "rule 1 matched nothing" in caplog.text


def test_a_key_in_a_file_of_rules_warns_at_the_files_line(tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text('[[rule]]\nop = "a"\nattrs = {k = "v"}\n[[rule]]\nop = "b"\nattrs = {group = 7}\n')
    with pytest.warns(hlotag.KeyIgnored, match="did you mean '_scheduling_group_id'") as caught:
        hlotag.load_rules(path)
    assert (caught[0].filename, caught[0].lineno) == (str(path), 6)
