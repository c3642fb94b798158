# SPDX-License-Identifier: Apache-2.0
"""Waiting for other devices, apart from the time in which bytes move: on traces of known times, and on a real one."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import hlotag
import traces
from hlotag import _compat
from hlotag.audits.audit import Audit
from hlotag.hlo import HloModule
from hlotag.hlo.module import of_executable
from hlotag.hlo.partners import find_partners
from hlotag.profiles import Profile
from hlotag.profiles.join import profile_of
from hlotag.profiles.program import Program
from hlotag.profiles.trace import Trace
from hlotag.reports import profile_table
from hlotag.results.tags import Instruction, Op, Tag, TagState
from test_profile_trace import step, thunk

ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"


def module_of(collective: str, devices: list[int]) -> HloModule:
    """A module with one collective, on these devices in the order of partitions."""
    text = f"HloModule jit_step\n{ADD}ENTRY m {{ x = f32[8] parameter(0)\n ROOT sum = f32[8] {collective} }}"
    module = HloModule(_compat.runtime.hlo_from_text(text))
    for device in devices:
        module.proto.device_assignment.computation_devices.add().replica_device_ids.append(device)
    return module


def reduced(groups: str) -> str:
    return f"all-reduce(x), channel_id=1, replica_groups={groups}, use_global_device_ids=true, to_apply=add"


PAIRS = [{0, 1}, {2, 3}]
PARTNERS = {
    "all": (reduced("{}"), [0, 1, 2, 3], [{0, 1, 2, 3}]),
    "listed": (reduced("{{0,1},{2,3}}"), [0, 1, 2, 3], PAIRS),
    "in another order of devices": (reduced("{{0,1},{2,3}}"), [2, 0, 3, 1], [{0, 2}, {1, 3}]),
    "an iota": (reduced("[2,2]<=[4]"), [0, 1, 2, 3], PAIRS),
    "a transposed iota": (reduced("[2,2]<=[2,2]T(1,0)"), [0, 1, 2, 3], [{0, 2}, {1, 3}]),
    "a permutation": ("collective-permute(x), channel_id=1, source_target_pairs={{0,1},{3,2}}", [0, 1, 2, 3], PAIRS),
}


@pytest.mark.parametrize("case", PARTNERS)
def test_partners_of_a_device(case):
    collective, devices, groups = PARTNERS[case]
    expected = {device: members for members in groups for device in members}
    assert find_partners(module_of(collective, devices)) == {"sum": expected}


def test_partners_along_the_axes_of_a_mesh():
    """What this machine's compiler writes, on devices in an order of their own."""
    devices = np.array(jax.devices()[:4])[[2, 0, 3, 1]].reshape(2, 2)
    mesh = Mesh(devices, ("a", "b"))
    for axes, groups in ((("a",), [{2, 3}, {0, 1}]), (("b",), [{2, 0}, {3, 1}]), (("a", "b"), [{0, 1, 2, 3}])):
        summed = jax.shard_map(
            lambda x, axes=axes: jax.lax.psum(x, axes), mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False
        )
        (module,) = of_executable(jax.jit(summed).lower(jnp.ones(8)).compile())
        (found,) = find_partners(module).values()
        assert found == {device: members for members in groups for device in members}


@pytest.mark.parametrize(
    ("before", "size", "groups"),
    [(1, 2, [{0, 2}, {1, 3}, {4, 6}, {5, 7}]), (2, 2, [{0, 1}, {2, 3}, {4, 5}, {6, 7}]), (0, 0, [{0, 1, 2, 3}, {4, 5, 6, 7}])],
)
def test_partners_along_a_part_of_an_axis(before, size, groups):
    module = module_of(reduced("{}"), list(range(8)))
    listed = next(each for each in module.instructions() if each.name == "sum").proto.mesh_groups
    for length in (2, 4):
        listed.mesh.axes.add().size = length
    axis = listed.axes.add()
    axis.mesh_axis_index = 1
    if size:
        axis.sub_axis.pre_size, axis.sub_axis.size = before, size
    assert find_partners(module) == {"sum": {device: members for members in groups for device in members}}


def test_nothing_is_said_of_partners_without_an_assignment():
    assert find_partners(module_of(reduced("{}"), [])) == {}


INSTRUCTIONS = [
    Instruction("dot.1", "dot", ops=(0,), phase="forward", effort=8),
    Instruction("sum", "all-reduce", ops=(1,), phase="forward", bytes=4, collective="all-reduce", start="sum"),
]
OPS = [Op(0, "stablehlo.dot_general"), Op(1, "stablehlo.all_reduce")]


def profiled(folder: Path, groups: str, *devices: list[tuple[str, float, float]]) -> Profile:
    """A step of 20 ms: on each device, the instructions with start and duration."""
    lines = {"steps": [step(0, 0, 20)]}
    for number, events in enumerate(devices):
        for name, start, duration in events:
            line = lines.setdefault(f"thread {number} {name}", [])
            line.append(thunk(name, start, duration, device_ordinal=number))
    audit = Audit("jit_step", OPS, [Tag("layer", "0", OPS[0], TagState.KEPT)], instructions=INSTRUCTIONS)
    program = Program(audit, module_of(reduced(groups), list(range(4))))
    return profile_of(program, program.read(Trace(traces.write(folder, {"/host:CPU": lines}))))


SERIAL = [[("dot.1", 0, 8), ("sum", 8, 1)]] + [[("dot.1", 0, 2), ("sum", 2, 7)]] * 3
# By name: groups, what ran on each device, in milliseconds the means of (time, exposed, waiting, exposed waiting) and the least
# and the most of a device, and the device that the others wait for.
CASES = {
    "three devices wait for a slow one": ("{}", SERIAL, (5.5, 5.5, 4.5, 4.5), (1, 7), "CPU:0"),
    "nobody waits": ("{}", [[("dot.1", 0, 2), ("sum", 2, 3)]] * 4, (3, 3, 0, 0), (3, 3), ""),
    "what is computed meanwhile is waiting, and not exposed": (
        "{}",
        [[("sum", 6, 2)]] + [[("sum", 0, 8), ("dot.1", 0, 5)]] * 3,
        (6.5, 2.75, 4.5, 0.75),
        (2, 8),
        "CPU:0",
    ),
    "each group waits for its own last device": (
        "{{0,1},{2,3}}",
        [[("sum", 1, 3)], [("sum", 3, 1)], [("sum", 2, 7)], [("sum", 8, 1)]],
        (3, 3, 2, 2),
        (1, 7),
        "CPU:3",
    ),
    "runs in a loop belong together": (
        "{}",
        [[("sum", 4, 1), ("sum", 9, 2)]] + [[("sum", 2, 3), ("sum", 9, 2)]] * 3,
        (4.5, 4.5, 1.5, 1.5),
        (3, 5),
        "CPU:0",
    ),
    "a device that the trace lacks": ("{}", SERIAL[:3], (5, 5, 0, 0), (1, 7), ""),
}


@pytest.mark.parametrize("case", CASES)
def test_waiting_is_that_of_a_count_by_hand(case, tmp_path):
    groups, devices, times, spread, slowest = CASES[case]
    found = profiled(tmp_path, groups, *devices)
    (each,) = found.transfers
    counted = (each.seconds, each.exposed, each.waiting, each.exposed_waiting)
    assert counted == pytest.approx([ms / 1e3 for ms in times])
    assert (each.least, each.most) == pytest.approx([ms / 1e3 for ms in spread])
    assert each.slowest == slowest
    assert found.waiting == pytest.approx(times[3] / 1e3)
    says = f"exposed communication, {times[3] / times[1]:.0%} of that waiting for other devices, most for {slowest}."
    assert (says in found.sentence) == bool(slowest)


def test_waiting_is_in_table_page_and_json(tmp_path):
    found = profiled(tmp_path, "{}", *SERIAL)
    narrow, wide = (profile_table.as_text(found, width) for width in (80, 160))
    rows = [next(line for line in text.splitlines() if line.startswith("sum")).split() for text in (narrow, wide)]
    shown = ["5.50", "1.00", "7.00", "4.50", "5.50", "CPU:0"]  # Mean, least, most, waiting, exposed, slowest.
    assert [[cell for cell in row if cell in shown] for row in rows] == [["5.50", "4.50", "5.50", "CPU:0"], shown]
    assert Profile.from_json(found.to_json(), "p.json").transfers == found.transfers
    found.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert all(text in page for text in (">slowest</th>", "<td>CPU:0</td>", ">4.5 ms</td>", ">1 ms</td>", ">7 ms</td>"))


def test_one_device_has_no_column_of_waiting(tmp_path):
    found = profiled(tmp_path, "{}", SERIAL[0])
    assert "waiting" not in str(dataclasses.replace(found, notes=()))


def count_waiting(folder: Path, name: str, devices: int) -> Counter[str]:
    """By device, how many seconds the others waited for it to start a collective, from the events alone."""
    begins: dict[int, dict[int, float]] = {}
    file = max(folder.rglob("*.xplane.pb"))
    for plane in jax.profiler.ProfileData.from_serialized_xspace(file.read_bytes()).planes:
        for event in (event for line in plane.lines for event in line.events if event.name == name):
            stats = dict(event.stats)
            begins.setdefault(stats["run_id"], {})[stats["device_ordinal"]] = event.start_ns
    assert all(len(run) == devices for run in begins.values())
    found: Counter[str] = Counter()
    for run in begins.values():
        last = max(run, key=run.__getitem__)
        found[f"CPU:{last}"] += sum(run[last] - start for start in run.values()) / 1e9
    return found


def test_devices_that_wait_for_one_that_computes(tmp_path):
    """One device multiplies, and the others have nothing to do but to wait for 64 bytes."""
    mesh = jax.make_mesh((4,), ("d",), devices=jax.devices()[:4])

    def body(w, x):
        def heavy(x):
            for _ in range(4):
                x = jnp.tanh(x @ w)
            return x

        y = jax.lax.cond(jax.lax.axis_index("d") == 1, heavy, lambda x: x, x)
        return jax.lax.psum(y[:4, :4], "d")

    f = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=(P(), P("d")), out_specs=P(), check_vma=False))
    w = jax.device_put(jnp.eye(512), NamedSharding(mesh, P()))
    x = jax.device_put(jnp.ones((4 * 512, 512)), NamedSharding(mesh, P("d")))
    jax.block_until_ready(f(w, x))
    with jax.profiler.trace(tmp_path):
        for _ in range(2):  # So few that none is left out as warm-up.
            jax.block_until_ready(f(w, x))
    (found,) = hlotag.read_profile(tmp_path).transfers
    counted = count_waiting(tmp_path, found.name, 4)  # In two runs, of four devices.
    assert found.waiting == pytest.approx(sum(counted.values()) / 2 / 4, rel=1e-3)
    assert found.slowest == max(counted, key=counted.__getitem__)
