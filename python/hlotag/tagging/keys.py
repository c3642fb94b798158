# SPDX-License-Identifier: Apache-2.0
"""The catalogue of keys: which keys XLA reads, their legal values, and the defaults for derived operations.

The facts about XLA are from its source at main of August and September 2026, unless a doc names another source. The compilers
that read a key were seen to: tests/compilers/key_probes.py compiles a program with and without each. This module does not need
JAX.
"""

from __future__ import annotations

import ast
import difflib
import functools
import re
import threading
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from hlotag._util.arguments import check_choice, check_text, elements_of, shown
from hlotag.errors import KeyIgnored, TagError
from hlotag.tagging.warning import warn

Derived = Literal["same", "drop"]
BACKENDS = ("cpu", "gpu", "tpu")


@dataclass(frozen=True)
class Values:
    """The legal values of a key, as text: the union of words, integers and matches.

    Attributes:
      choices: words.
      integer_bits: the width of integers; 0 for none.
      pattern: a regular expression that matches the whole text; empty for none.
      text: the description; composed of the others by default.
      ignore_case: whether XLA compares the words without regard to case.
    """

    choices: tuple[str, ...] = ()
    integer_bits: int = 0
    pattern: str = ""
    text: str = ""
    ignore_case: bool = False

    def __str__(self) -> str:
        """For messages and tables: `host, dense` or `an integer`."""
        if self.text:
            return self.text
        parts = [*self.choices, *(["an integer"] if self.integer_bits else []), *([self.pattern] if self.pattern else [])]
        return ", ".join(parts)

    def allow(self, text: str) -> bool:
        """Whether `text` is a legal value."""
        if text in self.choices or (self.ignore_case and text.lower() in self.choices):
            return True
        if self.pattern and re.fullmatch(self.pattern, text):
            return True
        if not self.integer_bits or not re.fullmatch("[+-]?[0-9]+", text):
            return False
        limit = 1 << (self.integer_bits - 1)
        # Check the length first: Python refuses to convert thousands of digits.
        return len(text) <= 20 and -limit <= int(text) < limit


@dataclass(frozen=True)
class Key:
    """What is known about one key.

    Attributes:
      name: the key; a reserved family ends in `*`.
      values: the legal values; None if any text is.
      ops: kinds of operations on which XLA reads it.
      consumer: the backends that are said to read it: "cpu", "gpu", "tpu", "all", or several; "registered" for a key of your own.
      derived: what operations that autodiff derives from a tagged one get by default: "same", or "drop" for nothing.
      doc: one or two sentences.
      reserved: whether it belongs to JAX, Shardy, XLA or hlotag, and tags must not use it.
      otherwise: what XLA does with an illegal value.
      taken_by: the backends whose compilers take it away once they have read it.
      seen: the backends whose compilers were seen to read it, with some supported jax.
    """

    name: str
    values: Values | None
    ops: tuple[str, ...]
    consumer: str
    derived: Derived
    doc: str
    reserved: bool = False
    otherwise: str = ""
    taken_by: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()

    @property
    def readers(self) -> tuple[str, ...]:
        """The backends that were seen, or are said, to read it."""
        return tuple(b for b in BACKENDS if b in self.seen or b in self.consumer or self.consumer == "all")

    @property
    def unseen(self) -> tuple[str, ...]:
        """The backends that are said to read it and were not seen to."""
        return tuple(b for b in self.readers if b not in self.seen)


_INT32 = Values(integer_bits=32)
_FLAG = Values(("true", "false"))
_ABORTS = "the GPU compiler would abort the process"


def _reserved(name: str, owner: str) -> Key:
    return Key(name, None, ("any",), "all", "drop", f"Belongs to {owner}.", reserved=True)


_CATALOGUE: tuple[Key, ...] = (
    # Placement, scheduling, inlining, fusion. What names one place in a schedule, a stream or a fusion cannot be shared by the
    # backward pass: a repeated _scheduling_group_id gives "annotation groups with gaps" or a cycle, which is a compile error.
    Key(
        "_xla_compute_type",
        Values(("host", "dense", "sparse", "sparseoffload")),
        ("any", "call"),
        "gpu, tpu",
        "drop",
        "Where to compute: on the host, or on one of the cores of a TPU.",
        seen=("gpu", "tpu"),
    ),
    Key(
        "_xla_buffer_placement",
        Values(("pinned_host", "unpinned_host", "device", "device_sram", "pinned_device")),
        ("custom_call",),
        "gpu, tpu",
        "drop",
        "The memory space of a value, on the custom call annotate_device_placement.",
        otherwise="compilation would fail: invalid external annotation",
        seen=("gpu", "tpu"),
    ),
    Key(
        "_scheduling_group_id",
        Values(("noop",), pattern="[+-]?[0-9]+|(?:[+-]?[0-9]+)?:[+-]?[0-9]+", text="noop, G, G:I, :I (G, I: integers)"),
        ("any", "on gpu: asynchronous collectives, gemm, Triton gemm"),
        "gpu, tpu",
        "drop",
        "Operations to schedule as one group. Each group needs an id of its own: give the backward pass another one by grad=.",
        taken_by=("gpu", "tpu"),
        seen=("gpu", "tpu"),
    ),
    Key(
        "keep_original_sequence_order_in_group",
        # Whatever is not "true" is off (`HasKeepOriginalSequenceOrderInGroupAttribute`).
        _FLAG,
        ("member of a scheduling group",),
        "gpu, tpu",
        "drop",
        "Keeps the order of a scheduling group. All members need it, or the scheduler aborts; follows its group's policy.",
        otherwise="the scheduler would take it for false",
    ),
    Key(
        "scheduler_hint",
        Values(("force_early", "force_delay", "force_delay_async")),
        ("custom_call", "asynchronous operations"),
        "gpu, tpu",
        "drop",
        "Asks the latency-hiding scheduler for an early or a late place.",
        otherwise="the scheduler would ignore it",
        seen=("gpu", "tpu"),
    ),
    Key(
        "scheduler_delay_priority",
        _INT32,
        ("custom_call",),
        "gpu, tpu",
        "drop",
        "Order among operations that a scheduler_hint delays.",
        # latency_hiding_scheduler.cc, GetCustomCallForceDelayPriority: CHECK(absl::SimpleAtoi(...)).
        otherwise="the latency-hiding scheduler would abort the process",
        seen=("gpu", "tpu"),
    ),
    Key("latency_metadata", Values(integer_bits=64), ("any",), "gpu", "drop", "A latency, for the scheduler.", seen=("gpu",)),
    Key(
        "_xla_stream_annotation",
        Values(("collective",), integer_bits=32, ignore_case=True),
        ("any",),
        "gpu",
        "drop",
        "The stream to run on.",
        # execution_stream_assignment.cc, FindAssignedStreamId: CHECK(absl::SimpleAtoi(...)) unless it equals "collective".
        otherwise=_ABORTS,
        seen=("gpu",),
    ),
    Key(
        "inlineable",
        Values(("false", "true", "auto")),
        ("call",),
        "all",
        "same",
        "Whether XLA may inline a call.",
        seen=("cpu", "gpu"),
    ),
    *(
        Key(
            name,
            None,
            ("fusible operations", "call"),
            "tpu",
            "drop",
            f"{doc} Give the backward pass an id of its own by grad=.",
            seen=seen,
        )
        for name, doc, seen in (
            ("MUST_FUSE", "Operations with the same id are to be one fusion.", ("tpu",)),
            ("MAXIMAL_FUSE", "Operations with the same id are to be fused, in one fusion or several.", ("tpu",)),
            ("mosaic_fusion_group", "Operations with the same id are one fusion group of Mosaic.", ()),
        )
    ),
    Key(
        "FUSE_LIMIT",
        Values(("true",), integer_bits=64),
        ("any",),
        "tpu",
        "same",
        "A limit that fusions do not cross.",
        seen=("tpu",),
    ),
    *(
        Key(
            name,
            _FLAG,
            ("dot",),
            "gpu",
            "drop",
            f"Marks a backward gemm, for the gemm rewriter: the gradient of {of}. JAX never sets it.",
            seen=("gpu",),
        )
        for name, of in (("grad_x", "x"), ("grad_y", "y"))
    ),
    Key(
        "compilation_unit",
        None,
        ("call",),
        "cpu, gpu",
        "same",
        "Names the unit in which the module splitter compiles it.",
        seen=("cpu", "gpu"),
    ),
    # Collectives.
    Key(
        "collective_group_key",
        Values(pattern="(?s:.+)", text="text, not empty"),
        ("collectives",),
        "gpu, tpu",
        "drop",
        "Independent collectives to launch as one group; the key is to be unique within the module.",
        otherwise="XLA would form no group",
        seen=("gpu",),
    ),
    Key(
        "combiner_key",
        None,
        ("collectives",),
        "gpu, tpu",
        "drop",
        "Only collectives with the same key are combined.",
        seen=("gpu",),
    ),
    Key(
        "collective_communication_domain",
        Values(("unspecified", "scale_up_fabric")),
        ("collectives",),
        "gpu",
        "drop",
        "The interconnect that a collective stays within.",
        seen=("gpu",),
    ),
    Key(
        "is_pipelineable",
        _FLAG,
        ("collectives",),
        "gpu, tpu",
        "drop",
        "Selects a collective for pipelining across iterations.",
    ),
    Key(
        "_xla_collective_matmul",
        Values(("none", "lhs_ag", "rhs_ag", "rs")),
        ("dot", "collectives"),
        "gpu, tpu",
        "drop",
        "Which collective to overlap with a matrix product.",
        seen=("gpu", "tpu"),
    ),
    Key("always_sink", None, ("collectives",), "gpu", "drop", "For collectives in loops; its values are unknown."),
    Key(
        "_xla_send_recv_source_target_pairs",
        Values(pattern=r"\{\{\d+,\s*\d+\}(,\s*\{\d+,\s*\d+\})*\}", text="{{0,1},...}"),
        ("send", "recv"),
        "gpu",
        "drop",
        "Pairs of source and target device.",
    ),
    Key("_xla_send_recv_pipeline", Values(("0", "1")), ("send", "recv"), "gpu", "drop", "The pipeline of a send or a recv."),
    Key("_xla_gpu_collective_stream", Values(("p2p",)), ("collectives",), "gpu", "drop", "The kind of stream to run on."),
    # Loops and custom calls: what they describe is one loop or one kernel, not what autodiff makes of it.
    Key(
        "_xla_loop_unroll_strategy",
        # DoubleBufferLoopUnrolling (xla/backends/gpu/transforms/double_buffer_loop_unrolling.{h,cc}, openxla/xla pull request
        # 43468) compares without regard to case and ends in LOG(FATAL) for all else, whichever strategy the flags ask for. The
        # pass looks at loops whose trip count is known and not 1. XLA's CPU compiler was run and ignores any value.
        Values(("full", "double-buffer"), ignore_case=True),
        ("while",),
        "gpu",
        "drop",
        "How to unroll this loop; read if xla_gpu_enable_while_loop_unrolling is WHILE_LOOP_UNROLLING_MANUAL_UNROLL.",
        otherwise=_ABORTS,
    ),
    Key(
        "skip-simplify-while-loops_trip-count-one",
        _FLAG,
        ("while",),
        "all",
        "drop",
        "Keeps a loop that runs once.",
        seen=("cpu", "gpu", "tpu"),
    ),
    Key(
        "_xla_disable_loop_instr_hoisting", None, ("while",), "all", "drop", "Keeps loop invariants inside.", seen=("cpu", "tpu")
    ),
    Key("xla_disable_while_loop_copies", None, ("while",), "all", "drop", "Adds no copies for the loop.", seen=("tpu",)),
    Key(
        "num_batch_dims",
        Values(integer_bits=64),
        ("custom_call",),
        "all",
        "drop",
        "Leading batch dimensions of a custom call.",
        seen=("cpu", "gpu", "tpu"),
    ),
    Key("kernel_metadata", None, ("custom_call",), "gpu, tpu", "drop", "Text for a kernel's own compiler."),
    Key(
        "xla_allow_dce_side_effecting_op",
        None,
        ("custom_call",),
        "all",
        "drop",
        "Lets XLA delete an operation with a side effect when nothing uses its result.",
        seen=("tpu",),
    ),
    # Debugging.
    Key("_xla_log", None, ("any",), "tpu", "same", "Logs the value."),
    Key("breakpoint", None, ("any",), "tpu", "same", "A breakpoint."),
    Key("xla_log_for_comparison", None, ("any",), "tpu", "same", "Logs the value, to compare two runs."),
    Key("_xla_tag", None, ("any",), "tpu", "same", "The tag of a logged value."),
    # What others write and read.
    _reserved("hlotag.*", "hlotag, for what is on its way"),
    _reserved("xla.sdy.*", "Shardy"),
    _reserved("composite.*", "StableHLO's composites, which overwrite it"),
    _reserved("fingerprint_before_lhs", "XLA's latency-hiding scheduler"),
    _reserved("arg_layout_modes", "JAX, for the layouts of arguments"),
    _reserved("out_layout_modes", "JAX, for the layouts of results"),
    _reserved("arg_memory_spaces", "JAX, for the memory spaces of arguments"),
    _reserved("out_memory_spaces", "JAX, for the memory spaces of results"),
    _reserved("is_spmd_generated", "XLA's SPMD partitioner"),
    _reserved("original_sharding", "XLA's SPMD partitioner"),
    _reserved("_xla_cse_safe_zero_operand", "XLA"),
    _reserved("xla.pdl_launch", "XLA's GPU compiler"),
)

_known = {key.name: key for key in _CATALOGUE}
_families = tuple((key.name.removesuffix("*"), key) for key in _CATALOGUE if key.name.endswith("*"))
_registered: dict[str, Key] = {}
_lock = threading.Lock()
_SIMILAR = 0.85  # difflib's ratio from which a key is taken for a misspelt one
_LEAST_WORD = 4


class _ByKey(str):
    """The default of `grad`: each key's own. It equals "same", the default of most keys, but differs from it by identity."""

    __slots__ = ()

    def __reduce__(self) -> str:
        return "BY_KEY"  # Copies and unpickled values are the same object.


BY_KEY: Any = _ByKey("same")
"""The default of `grad=`: the policy of each key. An explicit "same" overrides the policy."""


def lookup(name: str) -> Key | None:
    """Looks up a key.

    Args:
      name: the key of a tag.

    Returns:
      Its entry, or the entry of its reserved family. None for a free key: any text is legal, and derived operations get it too.
    """
    if (found := _known.get(name) or _registered.get(name)) is not None:
        return found
    return next((family for prefix, family in _families if name.startswith(prefix)), None)


def catalogue() -> tuple[Key, ...]:
    """All known keys: the catalogue, then the registered keys by name."""
    return (*_CATALOGUE, *(key for _, key in sorted(_registered.items())))


def check(name: str, text: str) -> None:
    """Checks the key and value of a tag.

    Args:
      name: the key.
      text: the value as text.

    Raises:
      TagError: the key is reserved, or it is known and the value is not legal.
    """
    key = lookup(name)
    if key is not None and key.reserved:
        owner = key.doc.removeprefix("Belongs to ").removesuffix(".")
        what = f"the prefix {key.name.removesuffix('*')!r} is" if key.name.endswith("*") else "it is"
        raise TagError(f"key {name!r}: {what} reserved for {owner}; choose another name")
    check_value(name, text)


def check_value(name: str, text: str) -> None:
    """Checks a value only. The key may be reserved, as for tags by JAX's own API.

    Warns of a key that XLA ignores and that looks like one that it reads.

    Args:
      name: the key.
      text: the value as text.

    Raises:
      TagError: the value is not legal for the known key, or key or value cannot be encoded as UTF-8.
    """
    check_text("key", name, TagError)
    check_text(f"value of key {name!r}", text, TagError)
    key = lookup(name)
    if key is None and (known := meant(name, text)):
        warn(
            f"key {name!r}: no XLA compiler reads it; did you mean {known!r}? If it is yours, hlotag.register_key({name!r})",
            KeyIgnored,
        )
    if key is None or key.values is None or key.values.allow(text):
        return
    otherwise = key.otherwise or "XLA would ignore it, or fail without naming this line"
    raise TagError(f"key {name!r}: the value {text!r} is not legal; legal values: {key.values}. With this one {otherwise}")


def meant(name: str, text: str) -> str:
    """The key that XLA reads and that an unknown one was probably to be.

    Args:
      name: a key.
      text: its value.

    Returns:
      A key of nearly the same name, or one that has all words of `name` and takes the value; "" if there is none, or `name` is
      known.
    """
    misspelt, shortened = _alike(name) if name not in _registered else ((), ())
    return next((key.name for key in (*misspelt, *shortened) if key in misspelt or (key.values and key.values.allow(text))), "")


@functools.lru_cache(maxsize=4096)
def _alike(name: str) -> tuple[tuple[Key, ...], tuple[Key, ...]]:
    """The keys that an unknown name is nearly, and those that have all of its words, the shortest first."""
    if lookup(name):
        return (), ()
    free = {key.name.lower(): key for key in _CATALOGUE if not key.reserved}
    words = _words(name)
    within = [key for key in free.values() if words and words <= _words(key.name) and not _takes_any(key)]
    near = difflib.get_close_matches(name.lower(), free, 1, _SIMILAR)
    return tuple(map(free.__getitem__, near)), tuple(sorted(within, key=lambda key: len(_words(key.name))))


def _takes_any(key: Key) -> bool:
    return key.values is None or key.values.allow("any text")


def _words(name: str) -> set[str]:
    """`{"scheduling", "group"}` for `_scheduling_group_id`: short words say little."""
    return {word for word in re.split("[^a-z]+", name.lower()) if len(word) >= _LEAST_WORD}


def backend_of(platform: str) -> str:
    """One of `BACKENDS`, or "" if there is none.

    Args:
      platform: as JAX calls it, or XLA.
    """
    return "gpu" if platform.lower() in ("cuda", "gpu", "rocm") else platform if platform in BACKENDS else ""


def dropped(names: Iterable[str]) -> list[str]:
    """The keys in `names` that derived operations do not get by default."""
    return [name for name in names if (key := lookup(name)) is not None and key.derived == "drop"]


def register_key(
    name: str,
    *,
    values: Collection[str] | type[bool] | type[int] | re.Pattern[str] | None = None,
    derived: Derived = "same",
    ops: Collection[str] = ("any",),
    doc: str = "",
) -> Key:
    """Adds a key of your own to the catalogue, for this process.

    Register keys before the stage is made (`hlotag.enable`, `hlotag.stage`): programs traced before keep their tags, and JAX may
    use them again in a stage that does not know the key.

    Args:
      name: the key.
      values: the legal values: words, `bool`, `int`, or a regular expression that matches the whole text; None allows any text.
      derived: the default of `grad=` for this key: "same" or "drop".
      ops: kinds of operations that the key is for. This is documentation; it does not select.
      doc: what the key does.

    Returns:
      The new entry, or the equal existing one.

    Raises:
      TagError: the name is reserved or known with another meaning, or an argument is invalid.

    Examples:
      >>> hlotag.register_key("my_priority", values=int, derived="drop", doc="Order of launches.").derived
      'drop'
      >>> hlotag.tag(1.0, {"my_priority": "high"})
      Traceback (most recent call last):
      hlotag.errors.TagError: key 'my_priority': the value 'high' is not legal; ...
    """
    if not isinstance(name, str) or not name:
        raise TagError(f"a key must be a non-empty string, got {shown(name)}")
    check_text("key", name, TagError)
    check_choice(f"key {name!r}: derived", derived, ("same", "drop"), TagError)
    if not isinstance(doc, str):
        raise TagError(f"key {name!r}: doc must be a string, got {shown(doc)}")
    kinds = (ops,) if isinstance(ops, str) else tuple(elements_of(f"key {name!r}: ops", ops))
    if not all(isinstance(kind, str) for kind in kinds):
        raise TagError(f"key {name!r}: ops must be strings, got {shown(ops)}")
    key = Key(name, _values(name, values), kinds, "registered", derived, doc)
    with _lock:
        there = lookup(name)
        if there is not None and there.reserved:
            raise TagError(f"key {name!r} is reserved and cannot be registered: {there.doc}")
        if there is not None and there != key:
            raise TagError(f"key {name!r} is known with another meaning: {there}")
        _registered[name] = key
    return key


def _values(name: str, values: Any) -> Values | None:
    if values is None:
        return None
    if values is bool:
        return _FLAG
    if values is int:
        return Values(integer_bits=64)
    if isinstance(values, re.Pattern) and isinstance(values.pattern, str):
        # Flags are kept within the text, so that equal registrations compare equal.
        flags = "".join(c for c, f in (("i", re.I), ("m", re.M), ("s", re.S), ("x", re.X), ("a", re.A)) if values.flags & f)
        return Values(pattern=f"(?{flags}:{values.pattern})" if flags else values.pattern, text=f"/{values.pattern}/{flags}")
    if not isinstance(values, str) and isinstance(values, Collection):
        words = sorted(values) if isinstance(values, (set, frozenset)) else list(values)
        if words and all(isinstance(word, str) for word in words):
            return Values(tuple(words))
    raise TagError(f"key {name!r}: values must be words, bool, int, a regular expression or None, got {shown(values)}")


def is_of_one_place(name: str) -> bool:
    """Whether a key of the catalogue names one place in a schedule, a stream or a memory."""
    return name in _known and _known[name].derived == "drop"


def is_taken(name: str, platform: str = "") -> bool:
    """Whether a compiler takes a key away once it has read it.

    Args:
      name: the key.
      platform: the compiler's; by default, any.
    """
    taken_by = _known[name].taken_by if name in _known else ()
    return platform in taken_by if platform else bool(taken_by)


def fingerprint() -> str:
    """The registered keys with a policy other than unknown keys, as part of a stage's identity in JAX's caches.

    Policies affect traced and compiled programs, which JAX caches: a function traced before `register_key(..., derived="drop")`
    must be traced again. Legal values only make tagging fail and change no program. The stage's version covers the catalogue.
    """
    return ",".join(sorted(repr(key.name) for key in _registered.copy().values() if key.derived == "drop"))


def registered_in(fingerprint: str) -> frozenset[str]:
    """The keys in a fingerprint."""
    return frozenset(ast.literal_eval(f"[{fingerprint}]"))
