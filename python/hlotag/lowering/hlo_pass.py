# SPDX-License-Identifier: Apache-2.0
"""The HLO pass: restores the tags that XLA's passes dropped or moved, before XLA emits code.

XLA compiles a copy of a prepared module, whose operations are numbered (`hlo.origins`). Near the end of XLA's pipeline a
callback gets the HLO module. The numbers tell which operations an instruction came from; the callback restores its tags and
removes the numbers. So JAX's caches, texts, exports and executables contain no numbers.

The copy lacks the keys that no compiler reads (`keys.is_hidden`), so they cannot change what XLA does; the callback writes them.
"""

from __future__ import annotations

import functools
import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jax.errors import JaxRuntimeError

from hlotag import _compat, _core
from hlotag._util import interrupts
from hlotag._util.kept import Kept
from hlotag.errors import Diagnostic, PassError, PassFailedWarning, TagDroppedWarning, TagError
from hlotag.hlo import prepared
from hlotag.hlo.inserted import InsertedRules
from hlotag.hlo.join import join
from hlotag.hlo.module import HloModule, Instruction
from hlotag.hlo.origins import Origins
from hlotag.hlo.restore import Rules, hidden_keys, restorable, restore
from hlotag.lowering.late import Late
from hlotag.lowering.transformation import BEFORE_SCHEDULER, Platform, Transformations, is_named, is_numbered
from hlotag.mlir.modules import copy_of
from hlotag.passes.pipeline import remove_keys
from hlotag.tagging import keys
from hlotag.tagging.state import Stage, active
from hlotag.tagging.warning import warn

if TYPE_CHECKING:
    from jaxlib.mlir import ir


@dataclass(frozen=True)
class Record:
    """One compilation in the HLO pass.

    Attributes:
        origins: The numbered operations of the module that XLA compiles.
        before: The HLO module after XLA's passes, with numbers in its names.
        ids: By instruction name, the numbers of the operations that the instruction came from.
        after: The module with restored tags, in fusions too. Instructions have the same names in `before` and in the executable.
        inserted: The rules for collectives that XLA inserted.
        hidden: The keys that XLA did not see.
    """

    origins: Origins
    before: HloModule
    ids: dict[str, tuple[int, ...]]
    after: HloModule
    inserted: InsertedRules
    hidden: frozenset[str]


recorded: Kept[Record] = Kept("hlotag_records")
"""A block that yields a list of records, one for each compilation of its thread in which the HLO pass has work.

Programs found in JAX's caches are not compiled.
"""


def prepare(module: ir.Module, stage: Stage) -> None:
    """Marks `module` for the HLO pass of `stage`, unless it has no tags to restore."""
    if prepared.has_work(module, stage):
        prepared.stages[module] = stage


def stage_of(module: ir.Module) -> Stage | None:
    """The stage that a compilation of `module` goes through; None if it has no work."""
    return prepared.stages.get(module)


def release() -> None:
    """Unregisters hlotag's function with XLA, unless a prepared module is alive that will go through the HLO pass."""
    if not prepared.stages:
        _transformations.clear()


_transformations = Transformations()


def _stage_of(module: ir.Module) -> Stage | None:
    """The stage that `module` was prepared for.

    JAX also computes cache keys of clones, which are operations rather than `ir.Module`s. A clone belongs to the active stage.
    """
    from jaxlib.mlir import ir

    if isinstance(module, ir.Module):
        return prepared.stages.get(module)
    stage = active()
    return stage if stage is not None and prepared.has_work(module, stage) else None


_name_in_xla = functools.lru_cache(maxsize=256)(_compat.runtime.hlo_module_name)


class _Restoration:
    """The HLO pass of one compilation; XLA calls it back."""

    def __init__(self, module: ir.Module, stage: Stage, backend: Any, platform: Platform):
        self.origins = Origins(copy_of(module), salt=_salt(stage))
        self._hidden = _hide(self.origins, stage)
        self.error: Exception | None = None
        self.was_called = False
        self._stage = stage
        self._backend = backend
        self._platform = platform
        attributes: Any = module.operation.attributes
        self._name = _name_in_xla(attributes["sym_name"].value)
        self.inserted = InsertedRules(prepared.find_inserted_rules(module, stage))
        self.late = self._late()
        self._records = recorded.innermost()

    def before_scheduler(self, module: bytes) -> bytes | None:
        """XLA calls it before it schedules."""
        assert self.late is not None
        return self._run_at_end(module, self.late.add_tags)

    def __call__(self, module: bytes) -> bytes | None:
        """XLA calls it after it has scheduled."""
        self.was_called = self.was_called or is_named(module, self._name)
        return self._run_at_end(module, self._restore)

    def _run_at_end(self, module: bytes, change: Callable[[bytes], bytes | None]) -> bytes | None:
        # For autotuning, the GPU compiler also compiles single fusions of the program.
        if not is_named(module, self._name):
            return None
        try:
            changed = change(module)
        except Exception as error:
            self.error = error
            return module
        return _core.chain_frames(changed) if changed is not None and self._platform.renumbers_frames else changed

    def report(self) -> None:
        """Notes and warns of what became of rules and groups."""
        if self.inserted and self.was_called and self.error is None:
            self._stage.rules.note_inserted(self.inserted.matched)
        for group in sorted(self.late.gaps if self.late else ()):
            warn(
                f"hlotag: in {self._name}, scheduling group {group!r} would have a gap after XLA's optimizations, and XLA would "
                "refuse it: a member depends on another one through an instruction that is no member. It got no further member",
                TagDroppedWarning,
            )

    def _late(self) -> Late | None:
        """What the compiler is given before it schedules, if the program has any of it."""
        entries, stage = self.origins.program.entries(), self._stage
        present = {key for found in entries for key in restorable(found, stage.hlo)}
        late = tuple(sorted(key for key in present if keys.is_read_late(key, self._backend.platform)))
        rules = Rules(entries, late, (), stage.keys) if late else None
        return Late(self.origins, rules, self.inserted) if rules or self.inserted else None

    def _restore(self, module: bytes) -> bytes:
        if self._records is not None:
            before = HloModule(module)
            ids = {instruction.name: numbers for instruction, numbers in join(before, self.origins).items()}
            after = HloModule(self._with_tags(module, repeats=True))
            self._records.append(Record(self.origins, before, ids, after, self.inserted, self._hidden))
        return self._with_tags(module, repeats=keys.backend_of(self._backend.platform) not in _REUSE_KERNELS)

    def _with_tags(self, module: bytes, *, repeats: bool) -> bytes:
        program, stage = self.origins.program, self._stage
        rules = Rules(program.entries(), stage.hlo, stage.op_names, stage.keys, self._backend.platform, repeats=repeats)
        return self._add_inserted(module, restore(module, program, rules))

    def _add_inserted(self, module: bytes, after: bytes) -> bytes:
        """Adds the tags of inserted collectives, found in `module`, to `after`, but for those that the compiler has taken."""
        if not self.inserted:
            return after
        before = HloModule(module)
        entries = self.inserted.entries_in(before, self.origins)
        tagged = HloModule(after)
        changed: dict[Instruction, Mapping[str, str]] = {}
        for instruction, own in zip(before.instructions(), tagged.instructions(), strict=True):
            left = instruction.attributes
            given = {
                key: left.get(key, value)  # XLA joins the values of collectives that it combines.
                for key, value in entries.get(instruction, {}).items()
                if key in left or not keys.is_taken(key, self._backend.platform)
            }
            if given:
                changed[own] = {**own.attributes, **given}
        return tagged.with_attributes(changed)


# The platforms whose compilers make one kernel of equal fusions.
_REUSE_KERNELS = ("cpu", "gpu")


def _hide(origins: Origins, stage: Stage) -> frozenset[str]:
    """Removes the tags that XLA does not see, and returns their keys.

    Attributes that differ would keep TPU's compiler from combining collectives, CPU's and GPU's from making one kernel of equal
    fusions, and GPU's from tuning equal products once.
    """
    hidden = hidden_keys(origins.program.entries(), stage.hlo, stage.keys)
    if hidden:
        remove_keys(origins.module, hidden, verify=False)
    return hidden


Observer = Callable[["ir.Module", str, Callable[["ir.Module", Mapping[str, Any]], Any]], Any]
"""Compiles a module for a platform, by a function that takes a module and options of XLA. Returns the executable."""
_observer: ContextVar[Observer | None] = ContextVar("hlotag_observer", default=None)


@contextmanager
def observed_by(observe: Observer | None) -> Iterator[None]:
    """A block in which `observe` compiles this thread's programs, instead of JAX; with None, JAX does again."""
    token = _observer.set(observe)
    try:
        yield
    finally:
        _observer.reset(token)


def _compile(original: Callable, backend: Any, module: ir.Module, *args: Any, **kwargs: Any) -> Any:
    """Compiles `module` by JAX's own function, or by the observer of a block."""
    observe = _observer.get()
    if observe is None:
        return _compile_tagged(original, backend, module, *args, **kwargs)

    def compiled(other: ir.Module, options: Mapping[str, Any]) -> Any:
        with _compat.runtime.options_added(options, *args, **kwargs):
            return _compile_tagged(original, backend, other, *args, **kwargs)

    with observed_by(None):
        return observe(module, backend.platform, compiled)


def _compile_tagged(original: Callable, backend: Any, module: ir.Module, *args: Any, **kwargs: Any) -> Any:
    """Compiles `module` by JAX's own function, and restores its tags if a stage has prepared it."""
    stage = _stage_of(module)
    if stage is None:
        return original(backend, module, *args, **kwargs)
    with interrupts.hold():  # XLA would turn an interrupt in its callback into an ordinary error.
        return _compile_in(stage, original, backend, module, *args, **kwargs)


def _compile_in(stage: Stage, original: Callable, backend: Any, module: ir.Module, *args: Any, **kwargs: Any) -> Any:
    """Compiles a prepared module. An error of XLA's names operations and their tags."""

    def compile_like(other: Any) -> Any:
        return original(backend, other, *args, **kwargs)

    def compile_probe(probe: Any) -> Any:
        with _compat.runtime.options_for_one_value(*args, **kwargs):
            return compile_like(probe)

    options = _compat.runtime.options_digest(*args, **kwargs)
    platform = _transformations.platform(backend, options, compile_probe)
    if platform is None:
        _warn_untransformed(backend)
        return compile_like(module)
    if loss := _what_xla_loses(platform, backend, module):
        _warn_once(loss)
        return compile_like(module)
    restoration = _Restoration(module, stage, backend, platform)
    with (
        _transformations.running(restoration.origins.token, restoration),
        _run_early(restoration, backend),
        errors_explained(restoration.origins),
    ):
        executable = compile_like(restoration.origins.module)
    restoration.report()
    if restoration.was_called and restoration.error is None:
        return executable
    # Without a call, XLA folded the program into constants or arguments, or the transformation of an equal program, compiled at
    # the same time by another thread, got the call.
    if not restoration.was_called and not _is_numbered(executable, restoration.origins.token):
        return executable
    if not restoration.was_called and not _transformations.is_called(backend, options, compile_probe):
        _warn_untransformed(backend)
    else:
        _report(restoration.error, stage)
    return compile_like(module)


@contextmanager
def errors_explained(origins: Origins) -> Iterator[None]:
    """A block in which the errors of XLA have no numbers of `origins`, but its operations with tags and lines."""
    try:
        yield
    except JaxRuntimeError as error:
        text = origins.explain(str(error))
        if text == str(error):
            raise
        raise type(error)(text) from None


def _run_early(restoration: _Restoration, backend: Any) -> AbstractContextManager[None]:
    if restoration.late is None:
        return nullcontext()
    if not _transformations.is_called_before_scheduler(backend):
        _warn_once(
            f"XLA for {backend.platform!r} does not support transformations before it schedules, so keys that it reads "
            "later do not reach collectives that it inserts, nor operations that lost them"
        )
        return nullcontext()
    return _transformations.running(restoration.origins.token, restoration.before_scheduler, BEFORE_SCHEDULER)


def _warn_untransformed(backend: Any) -> None:
    _warn_once(
        f"XLA for {backend.platform!r} does not support transformations of HLO modules, or not with this program's compiler "
        "options, so tags that its passes drop stay dropped"
    )


def _is_numbered(executable: Any, token: str) -> bool:
    return any(is_numbered(module.as_serialized_hlo_module_proto(), token) for module in executable.hlo_modules())


def _report(error: Exception | None, stage: Stage) -> None:
    reason = "XLA did not call it" if error is None else f"{type(error).__name__}: {error}"
    failure = PassError(
        "the HLO pass",
        [Diagnostic("error", reason)],
        "The program itself is valid; `hlotag.enable(hlo=False)` compiles it without this pass. Please report the failure.",
    )
    if stage.on_error == "raise":
        if isinstance(error, TagError):  # It names a rule, which is the user's.
            raise error
        raise failure from error
    warn(f"hlotag: {failure}", PassFailedWarning)


_warned: set[str] = set()


def _warn_once(reason: str) -> None:
    if reason in _warned:
        return
    _warned.add(reason)
    text = f"hlotag: {reason}. `hlotag.enable(hlo=False)` turns the HLO pass off, without this warning"
    try:
        warn(text, TagDroppedWarning)
    except TagDroppedWarning:  # Warnings are errors here, but the program is valid and must run.
        logging.getLogger("hlotag").warning(text)


# Platforms where XLA derives the entry's layout of a transformed module from shapes without memory spaces: results in the host's
# memory would move to the device's. All versions; no upstream issue.
_LOSE_MEMORIES = ("cpu",)


def _what_xla_loses(platform: Platform, backend: Any, module: ir.Module) -> str:
    """Says what the program would lose if its HLO module were transformed; "" if nothing."""
    if not platform.keeps_aliases and _donates(module):
        return (
            "the XLA of this jaxlib loses the donation of arguments when a module is transformed, so in programs that donate "
            "arguments, tags that XLA's passes drop stay dropped; jax 0.12 has no such limit"
        )
    if backend.platform in _LOSE_MEMORIES and _has_host_memory(module):
        return (
            f"XLA for {backend.platform!r} loses the memory kinds of arguments and results when a module is transformed, so in "
            "programs with one in the host's memory, tags that XLA's passes drop stay dropped"
        )
    return ""


def _donates(module: ir.Module) -> bool:
    """Whether results may reuse the memory of arguments."""
    return any(attribute.name in ("tf.aliasing_output", "jax.buffer_donor") for attribute in _attributes_of_main(module))


def _has_host_memory(module: ir.Module) -> bool:
    """Whether an argument or a result is in a memory other than the device's own."""
    kinds = [attribute.attr.value for attribute in _attributes_of_main(module) if attribute.name == "mhlo.memory_kind"]
    return any(kind != "device" for kind in kinds)


def _attributes_of_main(module: ir.Module) -> Iterator[Any]:
    """The named attributes of the program's arguments and results."""
    functions: list[Any] = [op for op in module.body.operations if op.operation.name == "func.func"]
    main = next(function for function in functions if function.name.value == "main")
    present = [main.attributes[name] for name in ("arg_attrs", "res_attrs") if name in main.attributes]
    return (attribute for attributes in present for of_one in attributes for attribute in of_one)


def _salt(stage: Stage) -> str:
    """A digest of all settings that affect the HLO pass."""
    inserted = () if stage.rules is None else tuple(rule.text for rule in stage.rules.inserted.values())
    parts = stage.version, stage.keys, stage.hlo, stage.op_names, inserted
    return hashlib.blake2b(repr(parts).encode(), digest_size=4).hexdigest()


def _cache_key_suffix(module: ir.Module) -> str:
    """Distinguishes an executable with restored tags from one without. Equal in all processes.

    The rest of the key covers the module without its locations. Restoring depends on nothing more, because the number of an
    operation is its position in the module.
    """
    stage = _stage_of(module)
    return "" if stage is None else f"-hlotag-{_salt(stage)}"


PATCHES = (_compat.hooks.compile_patch(_compile), _compat.hooks.cache_key_patch(_cache_key_suffix))
