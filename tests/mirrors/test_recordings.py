"""The ledger of topics that MirrorMaker 2 mirrored between real clusters, beside what consumers read on both sides."""

from collections.abc import Iterator

import pytest

from kaudit.diff.records.group_offsets import translated
from kaudit.engines.progress import SilentProgress
from kaudit.engines.record_ledger import LedgerRequest, record_ledger
from kaudit.model.ledger import TopicLedger, mapped_ranges
from kaudit.model.replicas import Replica
from kaudit.scanning.options import ScanOptions
from tests.mirrors.recordings import NAMES, PREFIX, Read, Recording
from tests.mirrors.truth import Place

ISOLATIONS = ("read_committed", "read_uncommitted")


@pytest.fixture(scope="module", params=NAMES)
def recording(request):
    return Recording(request.param)


@pytest.fixture(scope="module", params=ISOLATIONS)
def isolation(request):
    return request.param


@pytest.fixture(scope="module")
def ledgers(recording, isolation):
    sides = Replica("source", str(recording.source)), Replica("target", str(recording.target))
    options = ScanOptions([side.path for side in sides], jobs=1)
    request = LedgerRequest(read_committed=isolation == "read_committed")
    with record_ledger(options, sides, request, SilentProgress()) as result:
        own = [each for each in result.ledgers if each.source in recording.topics]
        return {
            each.source: (each, dict(pairs_of(each)), list(translated([each], recording.committed()))) for each in own
        }


def pairs_of(ledger: TopicLedger) -> Iterator[tuple[Place, Place]]:
    """Source and target place of all that lies in a range of the map."""
    for each in mapped_ranges(ledger.map_file):
        for offset in range(each.source_first_offset, each.source_last_offset + 1):
            yield (
                (each.source_partition, offset),
                (each.target_partition, offset + each.target_first_offset - each.source_first_offset),
            )


def counts(read: Read) -> dict[str, int]:
    """What became of the records by their numbers, which are written once."""
    copies = read.copies()
    last = {part: max(at for (own, at), found in copies.items() if found and own == part) for part, _ in copies}
    had = set(read.source.values())
    lost = [place for place, found in copies.items() if not found]
    return {
        "matched": len(copies) - len(lost),
        "missing": sum(at < last[part] for part, at in lost),
        "pending": sum(at > last[part] for part, at in lost),
        "repeated": sum(len(found) - 1 for found in copies.values() if found),
        "new": sum(number not in had for number in read.target.values()),
    }


def test_records_are_counted_as_consumers_read_them(recording, isolation, ledgers):
    for topic in recording.topics:
        ledger, _, _ = ledgers[topic]
        assert ledger.target == PREFIX + topic
        new = ledger.cleaned + ledger.only_in_target + ledger.ahead
        found = {name: getattr(ledger, name) for name in ("matched", "missing", "pending", "repeated")} | {"new": new}
        assert found == counts(recording.read(topic, isolation)), topic
        assert ledger.out_of_order == 0


def test_the_map_leads_to_the_first_copy_of_each_record(recording, isolation, ledgers):
    for topic in recording.topics:
        _, mapped, _ = ledgers[topic]
        copies = recording.read(topic, isolation).copies()
        assert {place: mapped[place] for place, found in copies.items() if found} == {
            place: found[0] for place, found in copies.items() if found
        }, topic


def test_the_map_agrees_with_every_offset_sync(recording, isolation, ledgers):
    for topic in recording.topics:
        ledger, mapped, _ = ledgers[topic]
        read = recording.read(topic, isolation)
        for source, (part, at) in recording.offset_syncs(topic):
            again = any(
                each.first <= at <= each.last and each.source_first_offset <= source[1] <= each.source_last_offset
                for each in ledger.repeated_ranges
                if (each.partition, each.source_partition) == (part, source[0])
            )
            # compacted records and those of aborted transactions are on one side only
            assert source not in read.source or (part, at) not in read.target or again or mapped[source] == (part, at)


def test_groups_go_on_with_their_first_unread_record_and_no_earlier_than_at_a_checkpoint(recording, isolation, ledgers):
    for topic in recording.topics:
        copies = recording.read(topic, isolation).copies()
        found = {each.group: each.offset for each in ledgers[topic][2]}
        for group, part, offset, checkpoint in recording.checkpoints(topic):
            unread = [own for (source, at), own in copies.items() if own and source == part and at >= offset]
            end = max(own[-1][1] for (source, _), own in copies.items() if own and source == part) + 1
            # of a record that was mirrored again its last copy counts, as for MirrorMaker: all that is unread follows it
            assert found[group] == min([own[-1][1] for own in unread], default=end), (topic, group)
            assert found[group] >= checkpoint, (topic, group)
