"""Of the segments in remote storage those are read in which brokers look offsets up: by __remote_log_metadata, where it is given."""

import base64
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.plan import input_without_remote
from kaudit.scanning.remote_segments import planned_objects
from tests.logs import Log, data
from tests.remote_log import DELETED, DELETING, FINISHED, begun, updated, write_records
from tests.remote_storage import AivenPlugin, LocalTieredStorage, Segment, dated, id_of, split, starts_of

WRITTEN = 1_700_100_000
PLUGINS = {"local": LocalTieredStorage, "chunks": AivenPlugin}


def numbered(epochs: Mapping[int, int], count: int = 40, payload: bytes = b"") -> Log:
    """A log of one producer, its leader epochs as given by their first offsets."""
    log = Log()
    for number in range(count):
        batch = log.append(data(100, 0, number, payload=payload + b"%d" % number))
        epoch = max(epoch for epoch, first in epochs.items() if first <= batch.base_offset)
        log.batches[-1] = batch.__class__(**{**batch.__dict__, "leader_epoch": epoch})
    return log


@dataclass
class Tiered:
    """A log of four segments, of which the last is here, and the records about the others."""

    root: Path
    plugin: AivenPlugin | LocalTieredStorage
    epochs: Mapping[int, int] = field(default_factory=lambda: {0: 0})
    records: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.whole = split(numbered(self.epochs).write(self.root / "whole" / "orders-0"))
        self.starts = starts_of(self.whole)
        self.here, self.there = self.root / "here", self.root / "there"
        shutil.copytree(self.root / "whole", self.here)
        rows = "".join(f"{epoch} {first}\n" for epoch, first in self.epochs.items())
        for directory in (self.whole, self.here / "orders-0"):
            (directory / "leader-epoch-checkpoint").write_text(f"0\n{len(self.epochs)}\n{rows}")
        for file in (self.here / "orders-0").glob("[0-9]*"):
            if int(file.name[:20]) < self.starts[-1]:
                file.unlink()
        (self.here / "log-start-offset-checkpoint").write_text("0\n1\norders 0 0\n")

    def copy(self, segment: Segment, *states: int, again: str = "", epochs: Mapping[int, int] | None = None) -> Path:
        """Copy a segment, and say in which states it was."""
        copied = self.plugin.copy(segment, self.there, "orders", 0, again)
        own_id = base64.urlsafe_b64decode(id_of(f"orders 0 {segment.start}{again}") + "==")
        topic = "orders", base64.urlsafe_b64decode(segment.topic_id + "=="), 0
        known = epochs or {
            epoch: max(first, segment.start)
            for epoch, first in self.epochs.items()
            if first <= segment.end and not any(first < other <= segment.start for other in self.epochs.values())
        }
        self.records.append(begun(own_id, (segment.start, segment.end), known, topic=topic))
        self.records += [updated(own_id, state, topic=topic) for state in states]
        return copied

    def copy_all(self) -> list[Path]:
        """Copy all but the last segment, as it should be."""
        return [self.copy(Segment.of(self.whole, *each), FINISHED) for each in pairwise(self.starts)]

    def audited(self, *, with_records: bool = True):
        """Audit what is here and there."""
        if with_records:
            write_records(self.here, self.records)
        dated(self.root, WRITTEN)
        options = ScanOptions([str(self.here)], topics=["orders"], remote=str(self.there), jobs=1, digests=True)
        return scan(options, SilentProgress())

    def on_disk(self):
        """Audit the whole log."""
        dated(self.root, WRITTEN)
        return scan(ScanOptions([str(self.whole)], jobs=1, digests=True), SilentProgress())


@pytest.fixture(params=PLUGINS)
def tiered(request, tmp_path):
    """Return such a log, in one of the layouts."""
    return lambda epochs=None: Tiered(tmp_path, PLUGINS[request.param](), epochs or {0: 0})


def found(result):
    """What is found in the log, what became of its offsets, and the digest of its batches."""
    (account,), (digest,) = result.coverage, result.digests.partitions
    of_log = [(each.code, each.offset, each.message) for each in result.findings if not "KA510" <= each.code <= "KA519"]
    return of_log, account.offsets, digest.digest


def notes(result):
    return [
        entry.reason
        for entry in result.not_audited
        if "in remote storage" in entry.reason or "segments" in entry.reason
    ]


def other(first: int, last: int) -> Segment:
    """A segment with records that are not the log's."""
    log = numbered({0: 0}, last + 1, b"another ")
    return Segment(
        first,
        last,
        {
            "log": b"".join(batch.encode() for batch in log.batches[first:]),
            "index": b"",
            "timeindex": b"",
            "snapshot": b"",
            "leader_epoch_checkpoint": b"0\n0\n",
        },
        id_of("orders"),
    )


def test_all_is_as_it_should_be(tiered):
    log = tiered()
    log.copy_all()
    result = log.audited()
    assert found(result) == found(log.on_disk())
    assert notes(result) == []


def test_a_copy_that_never_finished_is_not_the_log(tiered):
    """It is longer than the one that finished, and by names it would be read."""
    log = tiered()
    log.copy(other(0, 30), again="first attempt")
    log.copy_all()
    log.copy(other(log.starts[1], 35), DELETING, again="failed")
    result = log.audited()
    assert found(result) == found(log.on_disk())
    assert notes(result) == [
        f"segments in {log.there} are not its log by __remote_log_metadata and were not read: 2 whose copies have not finished"
    ]


def test_by_names_nobody_can_tell_and_that_is_said(tiered):
    log = tiered()
    log.copy(other(0, 30), again="first attempt")
    log.copy_all()
    result = log.audited(with_records=False)
    assert found(result) != found(log.on_disk())
    (note,) = notes(result)
    assert note.startswith(
        "the segments of orders-0 were chosen by their names, as no record of __remote_log_metadata names them"
    )


@pytest.mark.parametrize("state", [DELETING, DELETED])
def test_a_deleted_segment_is_not_the_log_though_its_objects_are_there(tiered, state):
    log = tiered()
    log.copy_all()
    own_id = base64.urlsafe_b64decode(id_of(f"orders 0 {log.starts[1]}") + "==")
    topic = "orders", base64.urlsafe_b64decode(id_of("orders") + "=="), 0
    log.records += [updated(own_id, each, topic=topic) for each in range(DELETING, state + 1)]
    result = log.audited()
    (hole,) = [each for each in result.findings if each.code == "KA008"]
    assert (hole.offset, hole.last_offset) == (log.starts[1], log.starts[2] - 1)
    assert notes(result)[-1].endswith("were not read: 1 that were deleted")


def test_of_two_leader_epochs_the_logs_own_is_read(tiered):
    """An unclean election: epoch 1 copied two segments that were then cut off, and epoch 2 wrote these offsets anew."""
    log = tiered({0: 0, 2: 14})
    starts = log.starts
    assert starts[1] < 14 < starts[2] < starts[3]
    log.copy(Segment.of(log.whole, 0, starts[1]), FINISHED)
    log.copy(other(starts[1], 30), FINISHED, again="old leader", epochs={0: starts[1], 1: 14})
    log.copy(other(31, 38), FINISHED, again="old leader", epochs={1: 31})
    for each in pairwise(starts[1:]):
        log.copy(Segment.of(log.whole, *each), FINISHED)
    result = log.audited()
    assert found(result) == found(log.on_disk())
    assert "1 of other leader epochs" in notes(result)[-1]


def test_a_segment_is_read_up_to_where_the_lineage_leaves_it(tiered):
    """The old leader's segment has the shared part, and nothing else does; what follows was copied by the new leader from there on."""
    log = tiered({0: 0, 2: 14})
    starts = log.starts
    log.copy(Segment.of(log.whole, 0, starts[1]), FINISHED)
    mixed = Segment.of(log.whole, starts[1], 14)
    content = numbered(log.epochs).batches
    strangers = numbered({0: 0}, 25, b"another ").batches
    mixed.files["log"] = b"".join(batch.encode() for batch in [*content[starts[1] : 14], *strangers[14:]])
    mixed.end = 24
    log.copy(mixed, FINISHED, again="old leader", epochs={0: starts[1], 1: 14})
    rest = Segment.of(log.whole, starts[2], starts[3])
    rest.start, rest.files["log"] = 14, b"".join(batch.encode() for batch in content[14 : starts[3]])
    log.copy(rest, FINISHED, epochs={2: 14})
    result = log.audited()
    assert found(result) == found(log.on_disk())


def test_a_segment_that_records_name_and_nothing_has_is_missing(tiered):
    log = tiered()
    copies = log.copy_all()
    for file in copies[0].parent.glob(f"{copies[0].stem}.*"):
        file.unlink()
    result = log.audited()
    assert result.incomplete
    (missing,) = [each for each in result.findings if each.code == "KA516" and copies[0].name in each.message]
    assert "it is missing with all files beside it" in missing.message
    (unread,) = [each for each in result.findings if each.code == "KA012"]
    assert unread.file == str(copies[0]) or unread.file == f"{copies[0]}!"
    (account,) = result.coverage
    assert account.offsets["unknown"] == log.starts[1]


def test_a_partition_without_any_of_its_segments_misses_all(tiered):
    log = tiered()
    log.copy_all()
    shutil.move(log.there, log.root / "aside")
    log.plugin.copy(other(0, 3), log.there, "bills", 0)
    result = log.audited()
    assert len([each for each in result.findings if each.code == "KA516"]) == 3
    (account,) = result.coverage
    assert account.offsets["unknown"] == log.starts[-1]


def test_segments_that_are_newer_than_the_records_are_read_by_their_names(tiered):
    """The records were copied before the last two segments were."""
    log = tiered()
    log.copy_all()
    log.records = log.records[:2]
    result = log.audited()
    assert found(result)[1:] == found(log.on_disk())[1:]
    assert any(note.startswith("2 segments in ") and "no record of" in note for note in notes(result))


def test_a_segment_that_no_record_names_and_a_named_one_stands_for_is_not_read(tiered):
    log = tiered()
    log.copy_all()
    log.plugin.copy(other(0, 12), log.there, "orders", 0, again="nobody knows")
    result = log.audited()
    assert found(result) == found(log.on_disk())
    assert notes(result)[-1].endswith("were not read: 1 that no record names")


def test_the_plan_lists_what_is_read(tiered):
    log = tiered()
    log.copy(other(0, 30), again="first attempt")
    copies = log.copy_all()
    write_records(log.here, log.records)
    options = ScanOptions([str(log.here)], topics=["orders"], remote=str(log.there))
    objects, _ = planned_objects(options, input_without_remote(options))
    assert {Path(each.path).name for each in objects if each.path.endswith(".log")} == {copy.name for copy in copies}
