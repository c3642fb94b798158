# SPDX-License-Identifier: Apache-2.0
"""Blocks in asyncio tasks, which share a thread and so JAX's configuration: no task gets what another task's block says."""

import asyncio

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hlotag
from hlotag import _compat
from modules import ops_of

X = np.linspace(-1, 1, 4, dtype=np.float32)


def tags(key="k"):
    """The values of the tag in a new program, lowered now."""
    lowered = jax.jit(jax.grad(lambda x: hlotag.tag(jnp.sin(x), {"k": "v"}).sum())).lower(X)
    return {op.entries[key] for op in ops_of(lowered) if key in op.entries}


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    hlotag.disable()
    assert hlotag.active() is None and _compat.tracing.ambient_metadata() == {}
    with hlotag.stage():
        assert tags() == {"v"}


def together(*coroutines):
    """Runs them in tasks of one loop; returns what they returned or raised."""

    async def main():
        return await asyncio.gather(*coroutines, return_exceptions=True)

    return asyncio.run(main())


async def turn():
    """Lets every other task take a step."""
    await asyncio.sleep(0)


async def lower(key="k"):
    """What a task without blocks of its own lowers, after a turn."""
    await turn()
    return tags(key)


def test_blocks_left_before_an_await_touch_no_other_task():
    async def one(value):
        seen = []
        for _ in range(3):
            with hlotag.stage(), hlotag.tagged({"block": value}):
                seen.append(tags("block"))
            await turn()
            seen.append(hlotag.active())
        return seen

    assert together(one("a"), one("b")) == [[{"a"}, None] * 3, [{"b"}, None] * 3]


def test_a_stage_held_across_an_await_is_refused_in_other_tasks():
    async def holds():
        with hlotag.stage():
            return await lower()

    async def lowers():
        return tags()

    async def has_its_own():
        with hlotag.stage("hlotag-resolve,hlotag-strip"):
            return tags()

    held, other, own = together(holds(), lowers(), has_its_own())
    assert isinstance(other, hlotag.errors.ScopeError) and "asyncio task" in str(other) and "await" in str(other)
    assert own == set() and held == {"v"}


def test_a_task_whose_stage_another_task_covers_is_refused():
    async def first():
        with hlotag.stage():
            return await lower()

    async def second():
        with hlotag.stage("hlotag-resolve,hlotag-strip"):
            await turn()
            await turn()
            return tags()

    a, b = together(first(), second())
    assert isinstance(a, hlotag.errors.ScopeError), "its program would have lost its tags"
    # The first block was left in between, below the second, which is still what it said.
    assert b == set()


def test_tasks_and_loops_started_within_a_block_are_in_it():
    async def parent():
        with hlotag.stage(), hlotag.tagged({"block": "a"}):
            return await asyncio.gather(lower("block"), lower("block"))

    assert together(parent()) == [[{"a"}, {"a"}]]
    with hlotag.stage(), hlotag.tagged({"block": "a"}):
        assert together(lower("block"), lower("block")) == [{"a"}, {"a"}]


def test_enable_is_for_all_tasks():
    hlotag.enable()
    assert together(lower(), lower()) == [{"v"}, {"v"}]


def test_a_block_held_across_an_await_is_refused_elsewhere():
    async def holds():
        with hlotag.tagged({"block": "a"}):
            await turn()
            return await lower("block")

    async def enters():
        with hlotag.tagged({"block": "b"}):
            return tags("block")

    async def lowers():
        return tags("block")

    hlotag.enable()
    held, entering, lowering = together(holds(), enters(), lowers())
    assert held == {"a"}
    assert isinstance(entering, hlotag.errors.ScopeError) and "tagged block" in str(entering)
    assert isinstance(lowering, hlotag.errors.ScopeError)


def test_a_block_is_left_by_the_task_that_entered_it():
    block = hlotag.tagged({"block": "a"})

    async def one(turns):
        with block:
            for _ in range(turns):
                await turn()

    async def other():
        await turn()
        with pytest.raises(hlotag.errors.ScopeError), block:
            pass

    assert together(one(3), other()) == [None, None]
    with pytest.raises(hlotag.errors.ScopeError, match="not entered"):
        block.__exit__(None, None, None)


def test_threads_started_from_a_task_have_their_own_blocks_only():
    async def task():
        with hlotag.stage(), hlotag.tagged({"block": "a"}):
            return await asyncio.to_thread(lambda: (hlotag.active(), tags("block")))

    assert together(task()) == [(None, set())]

    def work(value):
        with hlotag.stage(), hlotag.tagged({"block": value}):
            return tags("block")

    assert together(*(asyncio.to_thread(work, value) for value in "ababab")) == [{value} for value in "ababab"]
