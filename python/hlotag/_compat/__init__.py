# SPDX-License-Identifier: Apache-2.0
"""Every use of JAX's and jaxlib's private API, each with the reason for it.

Nothing outside this package imports `jax._src`. JAX 0.10.2 and 0.11 to 0.12.x are supported. Functions here say where these
differ; the rest of hlotag uses one interface, `_compat.name`. `bindings` and `xla_alone` do not import JAX.

MLIR is imported from jaxlib rather than from `jax.extend.mlir`, because `jax.extend` imports Pallas, which takes longer than
the rest of hlotag.
"""

# ruff: noqa: F401  (what is imported here is what the package offers)

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hlotag._compat.supported import explained
from hlotag.errors import IncompatibleJaxlibError

if TYPE_CHECKING:
    from hlotag._compat.hooks import (
        Patch,
        bind_patches,
        block_patch,
        cache_key_patch,
        compile_patch,
        equation_patch,
        export_patch,
        jaxpr_patches,
        lowering_patch,
        recipe_patch,
        scope_patch,
        traced_patch,
        value_tag_patch,
    )
    from hlotag._compat.identities import (
        identities_of_lowering,
        identity_patches,
    )
    from hlotag._compat.jaxprs import (
        JaxprView,
        marked_equations,
    )
    from hlotag._compat.modules import (
        exported_gradient_through,
        lowered_with,
        next_dump_number,
        platform_of,
        read_artifact,
        read_bytecode,
        without_disk_cache,
        write_artifact,
    )
    from hlotag._compat.runtime import (
        CompiledMemoryStats,
        DeviceAssignment,
        DeviceList,
        HloModule,
        HostBufferSemantics,
        JaxlibClient,
        JaxlibCompileOptions,
        JaxlibExecutable,
        JaxlibLoadedExecutable,
        Shape,
        Token,
        XlaComputation,
        assigned_ids,
        compile_arguments,
        compile_module,
        hlo_cost_analysis,
        hlo_from_text,
        hlo_module_name,
        hlo_to_stablehlo,
        ir_context,
        jaxlib_name,
        lower_for_replicas,
        make_cpu_client,
        module_to_computation,
        options_digest,
        parse_hlo,
        process_of_job,
        put_on_device,
    )
    from hlotag._compat.tracing import (
        RUNNERS,
        Metadata,
        ambient_metadata,
        ambient_metadata_is,
        equation_behind,
        functions_in,
        is_array,
        is_recording,
        is_transposing,
        is_user_filename,
        jax_metadata_call,
        jax_value_tag,
        metadata_of,
        operand_handed_on,
        place_of,
        restore_ambient_metadata,
        retag,
        swap_ambient_metadata,
        traced_function,
        traces_of,
        user_frame,
        with_metadata,
    )
    from hlotag._compat.transformations import PipelineStage, register_transformation

_OF_JAX = ("hooks", "identities", "jaxprs", "modules", "runtime", "tracing", "transformations")


def __getattr__(name: str) -> Any:
    lacking = None
    for module in _OF_JAX:
        try:
            names = vars(_imported(module))
        except IncompatibleJaxlibError as error:
            lacking = lacking or error
            continue
        if name in names:
            globals()[name] = value = names[name]
            return value
    raise lacking or AttributeError(f"module {__name__!r} has no attribute {name!r}")


def check() -> None:
    """Raises IncompatibleJaxlibError if this JAX lacks a part that hlotag uses."""
    for module in _OF_JAX:
        _imported(module)


def _imported(name: str) -> ModuleType:
    """Imports a module of this package on first use: `hlotag-opt` needs the bindings without JAX."""
    with explained():
        hide_frames(str(Path(__file__).parent.parent))
        return import_module(f"{__name__}.{name}")


@cache
def hide_frames(path: str) -> None:
    """Tells JAX that frames of hlotag's own code are not the user's.

    Locations and warnings then name the user's line, with the stage on and off, and tracebacks of errors in the user's program
    leave hlotag's frames out.

    Args:
        path: A file, or a folder.
    """
    from jax._src import source_info_util, traceback_util

    for register in (source_info_util.register_exclusion, traceback_util.register_exclusion):
        register(path)
