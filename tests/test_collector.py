# SPDX-License-Identifier: Apache-2.0
"""The garbage collector is as it was after a block that turns it off."""

import gc
from contextlib import suppress

import pytest

from hlotag._util.collection import no_collection


@pytest.mark.parametrize("was_on", [True, False])
def test_the_garbage_collector_is_off_within_the_block_only(was_on):
    try:
        (gc.enable if was_on else gc.disable)()
        with suppress(KeyError), no_collection():
            with no_collection():
                assert not gc.isenabled()
            assert not gc.isenabled()
            raise KeyError
        assert gc.isenabled() is was_on
    finally:
        gc.enable()
