# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and forks: afterwards hlotag works as in a fresh process."""

import re
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.parametrize("work", ["switch", "block", "lowering", "compiling", "auditing"])
def test_an_interrupt_at_any_line_changes_no_later_program(work):
    script = Path(__file__).with_name("interrupts.py")
    done = subprocess.run([sys.executable, script, work], capture_output=True, text=True, check=False)
    name, count, *wrong = done.stdout.splitlines()
    executed, tried = map(int, re.findall(r"\d+", count))
    assert (name, wrong) == (work, []) and executed > 100 and tried > 20, done.stdout + done.stderr


FORKS = """
import os, signal, threading, time, warnings
import hlotag
warnings.simplefilter("ignore")
hlotag.enable()
hlotag.disable()

def blocks():
    while True:
        with hlotag.stage():
            pass

threading.Thread(target=blocks, daemon=True).start()
hung = 0
for i in range(20):
    if not (child := os.fork()):
        signal.alarm(10)
        hlotag.enable()
        hlotag.disable()
        os._exit(0)
    hung += os.waitpid(child, 0)[1] != 0
    time.sleep(0.003 * i)
print(hung, flush=True)
os._exit(0)
"""


def test_a_child_that_is_forked_while_threads_are_in_stages_works(run_python):
    assert run_python(FORKS).stdout == "0\n"


SWITCHED = """
import threading, warnings
import jax, jax.numpy as jnp, hlotag
warnings.simplefilter("ignore")
started, switched = threading.Event(), threading.Event()

def loss(x):
    y = jnp.sin(x)
    if not switched.is_set():
        started.set()
        switched.wait()
    return hlotag.tag(jnp.cos(y), {"k": "v"}, grad={"k": "w"}).sum()

def count(f):
    return f.lower(jnp.ones(4)).as_text().count('k = "')

for first, then in ((hlotag.enable, hlotag.disable), (hlotag.disable, hlotag.enable)):
    started.clear(), switched.clear(), first()
    f = jax.jit(jax.grad(loss))

    def switch():
        started.wait(), then(), switched.set()

    thread = threading.Thread(target=switch)
    thread.start(), f(jnp.ones(4)), thread.join(), first()
    print(count(f) == count(jax.jit(jax.grad(lambda x: loss(x)))))
"""


def test_switching_while_a_thread_traces_leaves_no_stale_trace(run_python):
    assert run_python(SWITCHED).stdout == "True\nTrue\n"
