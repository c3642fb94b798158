# SPDX-License-Identifier: Apache-2.0
"""What compiles with JAX alone compiles with hlotag: keys of each kind. `compile_matrix.py` by itself tries all."""

import jax
import pytest
from compile_matrix import compare

pytestmark = pytest.mark.skipif(jax.__version_info__ < (0, 12), reason="compared with JAX alone on jax 0.12 only")

# Of fusions, of schedules, of streams, of collectives, of loops; a user's, and an unknown one of XLA's form.
KEYS = ("MUST_FUSE", "_scheduling_group_id", "_xla_stream_annotation", "collective_communication_domain", "combiner_key", "_mine")


def test_what_compiles_with_jax_alone_compiles_with_hlotag():
    count, worse = compare(KEYS)
    assert count > 300
    assert worse == []
