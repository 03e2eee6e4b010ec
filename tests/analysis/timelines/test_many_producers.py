"""A timeline for each of many producers looks at what the partition has of that producer only."""

import pytest
from msgspec.structs import replace

from kaudit.analysis.scan.options import ScanOptions, SilentProgress
from kaudit.analysis.timelines import timeline as timelines
from kaudit.engines.local import timeline
from tests.logs import Log, data

PRODUCERS = 300
HOLE = 3


@pytest.fixture
def looked_at(monkeypatch):
    """What was looked at of the open transactions and missing offsets of a partition, each time it was."""
    seen = []

    class Counted(list[object]):
        def __iter__(self):
            for item in super().__iter__():
                seen.append(item)
                yield item

        def __getitem__(self, key):
            found = super().__getitem__(key)
            seen.extend(found if isinstance(key, slice) else [found])
            return found

    original = timelines.partition_timelines

    def counting(partition, *arguments):
        own = replace(partition, opened=Counted(partition.opened), missing=Counted(partition.missing))
        return original(own, *arguments)

    monkeypatch.setattr(timelines, "partition_timelines", counting)
    return seen


def test_open_transactions_and_holes_are_looked_at_once_not_for_each_producer(tmp_path, looked_at):
    log = Log()
    for producer_id in range(PRODUCERS):
        log.append(data(producer_id, 0, 0, transactional=True, payload=b"x"))
        log.skip(HOLE)
        log.append(data(producer_id, 0, 1, transactional=True, payload=b"x"))
    log.write(tmp_path / "t-0")
    result = timeline(ScanOptions([str(tmp_path)], jobs=1), SilentProgress())
    found = [
        (
            own.producer_id,
            own.state["current_txn_start_offset"],
            [(entry["first_offset"], entry["offsets"]) for entry in own.entries if entry["kind"] == "missing"],
        )
        for own in result.timelines
    ]
    length = 2 + HOLE
    assert found == [(number, number * length, [(number * length + 1, HOLE)]) for number in range(PRODUCERS)]
    assert 0 < len(looked_at) < 20 * PRODUCERS
