"""`dedup` over what an outbox connector wrote that was killed: exactly the events it wrote again, whatever their tracing headers."""

import pytest

from kaudit.engines.progress import SilentProgress
from kaudit.engines.repeated_records import repeated_records
from kaudit.model.duplicates import Duplicate, RepeatedRange
from kaudit.model.severity import Confidence
from kaudit.scanning.options import ScanOptions
from tests.outbox.connector import Outbox


@pytest.mark.parametrize("seed", range(8))
def test_the_events_that_were_written_again(tmp_path, seed):
    outbox = Outbox(seed)
    outbox.events(40)
    for killed_after in (17, 9, 1000):
        outbox.run(killed_after)
    outbox.events(20)
    outbox.run(1000)
    path = outbox.write(tmp_path / "outbox-0")
    with repeated_records(ScanOptions(paths=[str(path)]), SilentProgress()) as listing:
        found = [each for _, each in listing.found(read_committed=False)]
    again = [(each.offset, each.original_offset) for each in found if isinstance(each, Duplicate) and each.repeats]
    ranges = [each for each in found if isinstance(each, RepeatedRange)]
    assert outbox.truth.again
    assert again == outbox.truth.again
    assert {each.confidence for each in ranges} == {Confidence.CERTAIN}
    assert {(each.recognisable_by or "").split(", ")[0] for each in ranges} == {"header id"}
    assert listing.totals[0].records == outbox.truth.records


def test_a_connector_that_stores_its_offset_writes_nothing_again(tmp_path):
    outbox = Outbox(1)
    outbox.events(60)
    outbox.run(1000)
    path = outbox.write(tmp_path / "outbox-0")
    with repeated_records(ScanOptions(paths=[str(path)]), SilentProgress()) as listing:
        assert not list(listing.found(read_committed=False))
