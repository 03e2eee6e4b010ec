"""Which entries of the history of blocks a listing of producer ids names."""

import pytest

from kaudit.listings.producer_listing import _is_grant
from kaudit.model.producer_ids import BlockEntry, EntryKind


@pytest.mark.parametrize("kind", list(EntryKind))
def test_only_blocks_that_a_broker_got_are_listed(kind):
    assert _is_grant(BlockEntry(kind, "znode", 2000, 2999)) == (kind is EntryKind.GRANTED)
    assert not _is_grant(BlockEntry(kind, "znode", 2000, None))
    assert not _is_grant(BlockEntry(kind, "znode", None, 2999))
