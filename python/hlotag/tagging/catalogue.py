# SPDX-License-Identifier: Apache-2.0
"""The keys that XLA reads, their legal values, and what derived operations get by default.

The facts about XLA are from its source at main of August and September 2026, unless a doc names another source. To see whether a
compiler reads a key, tests/compilers/key_probes.py compiles a program with and without the key. This module does not need JAX.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Derived = Literal["same", "drop"]
BACKENDS = ("cpu", "gpu", "tpu")


@dataclass(frozen=True)
class Values:
    """The legal values of a key, as text: the union of words, integers and matches.

    Attributes:
        choices: Words.
        integer_bits: The width of integers; 0 for none.
        pattern: A regular expression that matches the whole text; empty for none.
        text: The description; composed of the others by default.
        ignore_case: Whether XLA compares the words without regard to case.
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
        name: The key; a reserved family ends in `*`.
        values: The legal values; None if any text is legal.
        ops: Kinds of operations on which XLA reads the key.
        consumer: The backends that read the key by XLA's source: "cpu", "gpu", "tpu", "all", or several; "registered" for a
            registered key.
        derived: What derived operations get by default: "same", or "drop" for nothing.
        doc: One or two sentences.
        reserved: Whether the key belongs to JAX, Shardy, XLA or hlotag, and tags must not use it.
        otherwise: What XLA does with an illegal value.
        taken_by: The backends whose compilers remove the key after they read it.
        seen: The backends whose compilers were seen to read the key, with a supported jax.
        late: The backends whose compilers read the key after JAX's PRE_SCHEDULER, where the HLO stage gives a lost one back.
        compiler: Whether compilers get the key; False only for a registered key that is for people's eyes.
        restored: Whether the HLO stage gives the key back where XLA's passes drop it. False for entries that a library writes for
            one operation.
        kept: Whether the key means its own operation only, so that passes hand it on to no body, call or helper.
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
    late: tuple[str, ...] = ()
    compiler: bool = True
    restored: bool = True
    kept: bool = False

    @property
    def readers(self) -> tuple[str, ...]:
        """The backends that were seen to read the key, or read it by XLA's source."""
        return tuple(b for b in BACKENDS if b in self.seen or b in self.consumer or self.consumer == "all")

    @property
    def unseen(self) -> tuple[str, ...]:
        """The backends that read the key by XLA's source, and were not seen to."""
        return tuple(b for b in self.readers if b not in self.seen)


_INT32 = Values(integer_bits=32)
FLAG = Values(("true", "false"))
_ABORTS = "the GPU compiler would abort the process"


def _reserve_key(name: str, owner: str) -> Key:
    return Key(name, None, ("any",), "all", "drop", f"Belongs to {owner}.", reserved=True)


CATALOGUE: tuple[Key, ...] = (
    # Placement, scheduling, inlining, fusion. The backward pass cannot share a value that names one place in a schedule, a stream
    # or a fusion: a repeated _scheduling_group_id gives "annotation groups with gaps" or a cycle, which is a compile error.
    Key(
        "_xla_compute_type",
        Values(("host", "dense", "sparse", "sparseoffload")),
        ("any", "call"),
        "gpu, tpu",
        "drop",
        "Where to compute: on the host, or on one of the cores of a TPU.",
        seen=("gpu", "tpu"),
        taken_by=("tpu",),
        kept=True,
    ),
    Key(
        "_xla_buffer_placement",
        Values(("pinned_host", "unpinned_host", "device", "pinned_device", "vmem")),
        ("custom_call",),
        "gpu, tpu",
        "drop",
        "The memory space of a value, on the custom call annotate_device_placement.",
        otherwise="compilation would fail: invalid external annotation",
        taken_by=("gpu", "tpu"),
        seen=("gpu", "tpu"),
        kept=True,
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
        late=("gpu", "tpu"),
    ),
    Key(
        "keep_original_sequence_order_in_group",
        # Any value but "true" means off (`HasKeepOriginalSequenceOrderInGroupAttribute`).
        FLAG,
        ("member of a scheduling group",),
        "gpu, tpu",
        "drop",
        "Keeps the order of a scheduling group. All members need it, or the scheduler aborts; follows its group's policy.",
        otherwise="the scheduler would take it for false",
        late=("gpu", "tpu"),
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
        late=("gpu", "tpu"),
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
        late=("gpu", "tpu"),
    ),
    Key(
        "latency_metadata",
        Values(integer_bits=64),
        ("any",),
        "gpu",
        "drop",
        "A latency, for the scheduler.",
        seen=("gpu",),
        late=("gpu",),
    ),
    Key(
        "_xla_stream_annotation",
        Values(("collective",), integer_bits=32, ignore_case=True),
        ("any",),
        "gpu",
        "drop",
        "The stream to run on.",
        # execution_stream_assignment.cc, FindAssignedStreamId: CHECK(absl::SimpleAtoi(...)) unless it equals "collective".
        otherwise=_ABORTS,
        taken_by=("gpu",),
        seen=("gpu",),
        late=("gpu",),
    ),
    Key(
        "inlineable",
        Values(("false", "true", "auto", "xla_early", "xla_late")),
        ("call",),
        "all",
        "same",
        "Whether and when XLA may inline a call.",
        seen=("cpu", "gpu"),
        kept=True,
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
            ("MUST_FUSE", "XLA makes one fusion of the operations with the same id.", ("tpu",)),
            ("MAXIMAL_FUSE", "XLA fuses the operations with the same id, into one fusion or several.", ("tpu",)),
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
            FLAG,
            ("dot",),
            "gpu",
            "drop",
            f"Marks a backward gemm, for the gemm rewriter: the gradient of {of}. JAX never sets it.",
            seen=("gpu",),
            late=("gpu",),
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
        "Independent collectives to launch as one group; the value must be unique within the module.",
        otherwise="XLA would form no group",
        seen=("gpu",),
        late=("gpu",),
    ),
    Key(
        "combiner_key",
        None,
        ("collectives",),
        "gpu, tpu",
        "drop",
        "Only collectives with the same key are combined.",
        seen=("gpu",),
        late=("gpu",),
    ),
    Key(
        "collective_communication_domain",
        Values(("unspecified", "scale_up_fabric")),
        ("collectives",),
        "gpu",
        "drop",
        "The interconnect that a collective stays within.",
        seen=("gpu",),
        late=("gpu",),
    ),
    Key(
        "is_pipelineable",
        FLAG,
        ("collectives",),
        "gpu, tpu",
        "drop",
        "Selects a collective for pipelining across iterations. GPU: with xla_gpu_pipeline_all_gather=explicit.",
        seen=("gpu",),
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
    # Loops and custom calls: the keys describe one loop or one kernel, so derived operations do not get them.
    Key(
        "_xla_loop_unroll_strategy",
        # DoubleBufferLoopUnrolling (xla/backends/gpu/transforms/double_buffer_loop_unrolling.{h,cc}, openxla/xla pull request
        # 43468) compares without regard to case, and ends in LOG(FATAL) for other values, whichever strategy the flags select.
        # The pass handles loops with a known trip count other than 1. XLA's CPU compiler was run, and ignores all values.
        Values(("full", "double-buffer"), ignore_case=True),
        ("while",),
        "gpu",
        "drop",
        "How to unroll this loop; read if xla_gpu_enable_while_loop_unrolling is WHILE_LOOP_UNROLLING_MANUAL_UNROLL.",
        otherwise=_ABORTS,
    ),
    Key(
        "skip-simplify-while-loops_trip-count-one",
        FLAG,
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
        "xla_disable_while_loop_dce",
        None,
        ("while",),
        "all",
        "drop",
        "Keeps what the loop computes and nothing uses.",
        seen=("cpu", "gpu", "tpu"),
    ),
    Key(
        "xla_preserve_tuple_indices",
        None,
        ("while",),
        "all",
        "drop",
        "Keeps the order of the loop's carry.",
        seen=("cpu", "gpu", "tpu"),
    ),
    Key(
        "num_batch_dims",
        Values(integer_bits=64),
        ("custom_call",),
        "all",
        "drop",
        "Leading batch dimensions of a custom call.",
        seen=("cpu", "gpu", "tpu"),
        kept=True,
    ),
    Key("kernel_metadata", None, ("custom_call",), "gpu, tpu", "drop", "Text for a kernel's own compiler.", kept=True),
    Key(
        "xla_allow_dce_side_effecting_op",
        None,
        ("custom_call",),
        "all",
        "drop",
        "Lets XLA delete an operation with a side effect when nothing uses its result.",
        seen=("tpu",),
    ),
    # Written by libraries for one operation: never copied to others, and left to XLA.
    Key(
        "ragged_dot_tiling",
        None,
        ("ragged_dot",),
        "tpu",
        "drop",
        "The tiles of a ragged product, as MaxText writes them.",
        seen=("tpu",),
        restored=False,
        kept=True,
    ),
    *(
        Key(name, None, ops, consumer, "drop", doc, restored=False, kept=True)
        for name, ops, consumer, doc in (
            ("backend_config", ("call", "custom_call"), "all", "Options of a computation, as JAX's compute_on writes them."),
            ("allow_excess_precision", ("any",), "all", "Whether an operation may keep more precision than its type."),
            ("xla_metadata_payload", ("any",), "all", "Text that XLA moves into the operation's metadata."),
            ("async_collective_config", ("collectives",), "gpu, tpu", "How to run a collective asynchronously."),
            ("operands_memory_spaces", ("custom_call",), "gpu, tpu", "Memory spaces of operands."),
            ("results_memory_spaces", ("custom_call",), "gpu, tpu", "Memory spaces of results."),
            ("_xla_tpu_high_accuracy", ("any",), "tpu", "Asks for a more accurate form of an operation."),
            ("_xla_tpu_quantize_allreduce_dtype", ("all_reduce",), "tpu", "The type that a sum sends instead of its own."),
            ("_xla_tpu_quantize_allreduce_stage", ("all_reduce",), "tpu", "Which stages of a sum send that type."),
            ("_xla_tpu_reduce_force_single_iteration_window", ("reduce",), "tpu", "A window of one iteration for a reduction."),
            ("_xla_enable_full_hbm_sort", ("sort",), "tpu", "Sorts in the memory of the chip."),
            *(
                (name, ("custom_call",), "tpu", "An option of SparseCore's embeddings.")
                for name in (
                    *(
                        "_xla_feature_width",
                        "_xla_max_ids_per_partition",
                        "_xla_max_unique_ids_per_partition",
                        "_xla_max_valency",
                    ),
                    *("_xla_pad_value", "_xla_quantization_high_value", "_xla_quantization_low_value"),
                    *("_xla_quantization_num_buckets_value", "_xla_sample_count", "_xla_sharding_strategy", "_xla_table_id"),
                    "_xla_table_name",
                )
            ),
        )
    ),
    # Debugging.
    Key("_xla_log_tag", None, ("any",), "tpu", "same", "The tag of a logged value.", seen=("tpu",)),
    Key("_xla_log_callback", None, ("any",), "tpu", "same", "What logs the value."),
    Key("_xla_summary_mode", None, ("any",), "tpu", "same", "How a logged value is summarized."),
    Key("_xla_log", None, ("any",), "tpu", "same", "Logs the value."),
    Key("breakpoint", None, ("any",), "tpu", "same", "A breakpoint."),
    Key("xla_log_for_comparison", None, ("any",), "tpu", "same", "Logs the value, to compare two runs."),
    Key("_xla_tag", None, ("any",), "tpu", "same", "The tag of a logged value."),
    # Reserved for others.
    _reserve_key("hlotag.*", "hlotag, for what is on its way"),
    _reserve_key("xla.sdy.*", "Shardy"),
    _reserve_key("composite.*", "StableHLO's composites, which overwrite it"),
    _reserve_key("fingerprint_before_lhs", "XLA's latency-hiding scheduler"),
    _reserve_key("arg_layout_modes", "JAX, for the layouts of arguments"),
    _reserve_key("out_layout_modes", "JAX, for the layouts of results"),
    _reserve_key("arg_memory_spaces", "JAX, for the memory spaces of arguments"),
    _reserve_key("out_memory_spaces", "JAX, for the memory spaces of results"),
    _reserve_key("is_spmd_generated", "XLA's SPMD partitioner"),
    _reserve_key("original_sharding", "XLA's SPMD partitioner"),
    _reserve_key("_xla_cse_safe_zero_operand", "XLA"),
    _reserve_key("xla.pdl_launch", "XLA's GPU compiler"),
    _reserve_key("xla.no_invariant_operands", "XLA"),
    _reserve_key("_xla_disjoint_read_write_regions", "XLA"),
    _reserve_key("xla_disjoint_read_write_regions", "XLA"),
    _reserve_key("_xla_multi_module_call", "XLA"),
    _reserve_key("_xla_megascale_*", "XLA, for transfers between slices"),
    _reserve_key("trivially_pipelineable", "XLA's collective pipeliner"),
    _reserve_key("is_constant", "XLA"),
    _reserve_key("xla_cpu_small_call", "XLA's CPU compiler"),
    _reserve_key("xla_call_marked_*", "XLA"),
    _reserve_key("_collectives_group", "XLA's GPU compiler"),
    _reserve_key("_xla_host_transfer_*", "XLA, for transfers to the host"),
    _reserve_key("_xla_multi_recv_count", "XLA's GPU compiler"),
)
