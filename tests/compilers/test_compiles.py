# SPDX-License-Identifier: Apache-2.0
"""What compiles with JAX alone compiles with hlotag: keys of each kind. `compile_matrix.py` by itself tries all."""

import jax
import pytest
from compile_matrix import compare

pytestmark = pytest.mark.skipif(jax.__version_info__ < (0, 12), reason="compared with JAX alone on jax 0.12 only")

# Of TPU's fusions, of GPU's streams, and an unknown one of XLA's form. A rule tags as a block does.
KEYS, FORMS = ("MUST_FUSE", "_xla_stream_annotation", "_mine"), ("value", "block")


def test_what_compiles_with_jax_alone_compiles_with_hlotag():
    count, worse = compare(KEYS, FORMS)
    assert count >= 100
    assert worse == []
