"""The index of saved ranges: for which plans a range holds, and what of a damaged index is refused."""

from collections.abc import Sequence

import pytest

from kaudit.reading.saved_partition import DamagedStateError, FileIdentity, Settings
from kaudit.reading.state_files import (
    Checkpoint,
    PartitionIndex,
    SavedRange,
    SavedSegment,
    decode_index,
    digest_of,
    encode_index,
)


def saved(**more: object) -> SavedRange:
    stated: dict[str, object] = {
        "segment": 0,
        "joined": 0,
        "start": 0,
        "stop": 900,
        "file": 0,
        "at": 0,
        "length": 50,
        "crc": 7,
        "log_start_offset": 10,
        "first_offset": 20,
        "max_timestamp": 1000,
        "least_beyond": 2000,
        "last_batch": None,
    }
    return SavedRange(**(stated | more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("latest", "holds"), [(999, False), (1000, True), (1500, True), (1999, True), (2000, False), (2001, False)]
)
def test_the_latest_timestamp_must_part_the_same_timestamps(latest, holds):
    assert saved().holds(10, latest) is holds


@pytest.mark.parametrize(("latest", "holds"), [(999, False), (1000, True), (10**12, True)])
def test_where_no_timestamp_is_beyond_any_later_one_will_do(latest, holds):
    assert saved(least_beyond=None).holds(10, latest) is holds


@pytest.mark.parametrize(
    ("before", "now", "first", "holds"),
    [
        *((10, 20, 20, True), (10, 21, 20, False), (20, 10, 20, True), (21, 10, 20, False)),
        *((None, 20, 20, True), (None, 21, 20, False), (20, None, 20, True), (21, None, 20, False)),
        *((21, 21, 20, True), (None, None, 20, True), (None, None, None, True)),
        *((10, 11, None, False), (None, 0, None, False), (None, 0, 0, True), (None, 1, 0, False)),
    ],
)
def test_another_log_start_offset_must_leave_the_same_batches(before, now, first, holds):
    assert saved(log_start_offset=before, first_offset=first).holds(now, 1500) is holds


def index(ranges: Sequence[SavedRange] = (), files: Sequence[str] = ("rows-1",), **more: object) -> PartitionIndex:
    segments = [SavedSegment(f"{base:020d}.log", base, 900, 5, FileIdentity(base, 3)) for base in (0, 100)]
    return PartitionIndex(Settings("crc"), b"orders-0", segments, ranges, files, **more)  # type: ignore[arg-type]


def checkpoint(ranges: int, file: str = "state-1") -> Checkpoint:
    return Checkpoint(ranges, file, 9, 8, 7, 0, is_compacted=False, snapshots=[])


def test_an_index_comes_back_as_it_was():
    whole = index([saved(), saved(segment=1, joined=0, start=4)], ["rows-1"], checkpoint=checkpoint(2))
    encoded = encode_index(whole)
    assert decode_index(encoded) == whole
    assert whole.names == ["rows-1", "state-1"]
    assert index().names == ["rows-1"]
    assert len(digest_of(encoded)) == 64
    assert digest_of(encoded) != digest_of(encode_index(index()))


@pytest.mark.parametrize(
    "more",
    [{"segment": 1}, {"joined": 1}, {"start": 900}, {"start": 0, "stop": 0}],
    ids=str,
)
def test_the_last_of_everything_is_there(more):
    assert decode_index(encode_index(index([saved(**more)]))).ranges == [saved(**more)]


@pytest.mark.parametrize(
    "more",
    [
        *({"segment": 2}, {"segment": -1}, {"segment": 1, "joined": 1}, {"joined": 2}, {"joined": -1}),
        *({"file": 1}, {"file": -1}, {"start": 901}, {"start": -1}),
    ],
    ids=str,
)
def test_ranges_of_what_is_not_there_are_damage(more):
    with pytest.raises(DamagedStateError, match="it names what is not there"):
        decode_index(encode_index(index([saved(), saved(**more)])))


@pytest.mark.parametrize("name", ["", ".", "..", "../rows", "a/b", "/"])
def test_files_of_other_directories_are_never_opened(name):
    with pytest.raises(DamagedStateError, match="it names what is not there"):
        decode_index(encode_index(index(files=[name])))
    with pytest.raises(DamagedStateError, match="it names what is not there"):
        decode_index(encode_index(index([saved()], checkpoint=checkpoint(1, name))))


@pytest.mark.parametrize("ranges", [-1, 0, 3])
def test_a_checkpoint_of_ranges_that_are_not_there_is_damage(ranges):
    with pytest.raises(DamagedStateError, match="its checkpoint is of ranges that are not there"):
        decode_index(encode_index(index([saved(), saved()], checkpoint=checkpoint(ranges))))


@pytest.mark.parametrize("ranges", [1, 2])
def test_a_checkpoint_of_some_or_all_ranges_is_whole(ranges):
    whole = index([saved(), saved()], checkpoint=checkpoint(ranges))
    assert decode_index(encode_index(whole)).checkpoint == checkpoint(ranges)


def test_any_changed_byte_is_noticed():
    encoded = encode_index(index())
    for at in range(len(encoded)):
        with pytest.raises(DamagedStateError, match="an index is damaged"):
            decode_index(encoded[:at] + bytes([encoded[at] ^ 1]) + encoded[at + 1 :])
        with pytest.raises(DamagedStateError, match="an index is damaged"):
            decode_index(encoded[:at])
