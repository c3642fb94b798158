# SPDX-License-Identifier: Apache-2.0
"""`hlotag.stage(...)` as an object: entered again, nested, from threads, and as a decorator."""

import threading

import pytest

import hlotag


def test_a_stage_may_be_entered_again_nested_and_from_threads():
    block = hlotag.stage(rules=iter([hlotag.Rule({"k": "v"}, op="*")]))
    seen = []

    def work():
        with block as given:
            seen.append((given, hlotag.active()))

    with block as first, block:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    with block:
        seen.append((first, hlotag.active()))
    assert first is not None and seen == [(first, first)] * 2 and hlotag.active() is None
    with pytest.raises(hlotag.ScopeError, match="had not entered it"):
        block.__exit__()
    assert hlotag.active() is None


def test_a_decorated_function_runs_in_the_stage_each_time():
    @hlotag.stage(rules=[hlotag.Rule({"k": "v"}, op="*")])
    def factorial(n):
        """Recursive."""
        seen.append(hlotag.active())
        return 1 if n < 2 else n * factorial(n - 1)

    seen = []
    assert factorial(3) == factorial(3) == 6 and factorial.__doc__ == "Recursive."
    assert len(set(seen)) == 1 and seen[0] is not None and hlotag.active() is None
