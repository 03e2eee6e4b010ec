"""KA005: batches whose CRC holds and whose content is wrong."""

import pytest

from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.scanning.options import Depth, ScanOptions
from tests.checks.log.batches import NAME, edited, found, sealed, written
from tests.logs import Log, data, varint


@pytest.mark.parametrize("depth", [Depth.CRC, Depth.RECORDS])
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda raw: edited(raw, 57, ">i", 4), "4 records in 3 offsets"),
        (lambda raw: edited(raw, 57, ">i", -1), "count is -1"),
        (lambda raw: edited(raw, 21, ">h", 6), "codec is 6"),
        (lambda raw: edited(raw, 21, ">h", 0x20), "control batch"),
    ],
)
def test_headers_that_contradict_themselves(tmp_path, change, reason, depth):
    directory, position = written(tmp_path, change)
    result = scan(ScanOptions([str(directory)], depth=depth), SilentProgress())
    own = [entry for entry in result.findings if entry.code == "KA005"]
    assert [(entry.position, entry.offset, entry.last_offset) for entry in own] == [(position, 3, 5)]
    assert reason in own[0].message


@pytest.mark.parametrize(
    "change",
    [
        lambda raw: sealed(raw + b"\0"),
        lambda raw: sealed(raw[:-1]),
        lambda raw: edited(raw, 61, ">B", 0x7E),
        lambda raw: edited(raw, 21, ">h", 1),
        lambda raw: sealed(raw[:61] + b"\0" * (len(raw) - 61)),
    ],
    ids=["a byte too many", "a byte too few", "a length too long", "not gzip", "zeros"],
)
def test_records_that_contradict_themselves_show_when_decoded(tmp_path, change):
    directory, position = written(tmp_path, change)
    assert found(directory) == []
    assert found(directory, Depth.RECORDS) == [("KA005", position, 3, 5)]


def test_fewer_records_than_offsets_are_compaction(tmp_path):
    log = Log()
    log.append(data(5, 0, 0, 3, kept=1))
    log.append(data(5, 0, 3, 3, kept=0))
    assert found(log.write(tmp_path / "t-0"), Depth.RECORDS) == []


def test_offsets_that_fall_inside_a_batch(tmp_path):
    def twice(raw):
        def one(delta):
            body = b"\0" + varint(0) + varint(delta) + varint(-1) + varint(1) + b"x" + varint(0)
            return varint(len(body)) + body

        return sealed(raw[:61] + one(0) + one(2) + one(1))

    directory, position = written(tmp_path, twice)
    assert found(directory, Depth.RECORDS) == [("KA005", position, 3, 5)]


@pytest.mark.parametrize("capture", ["clients-mix", "legacy-formats", "retention-compaction-2.8.2", "txn-mix-2.8.2"])
def test_every_record_of_real_clients_decodes(evidence, capture):
    root = evidence.capture(capture) / "logdirs"
    result = scan(ScanOptions([str(root)], depth=Depth.RECORDS), SilentProgress())
    assert [entry for entry in result.findings if entry.code in ("KA005", "KA010")] == []
    assert result.summary.records


def test_many_malformed_batches_are_counted_on(tmp_path):
    log = Log()
    raw = b"".join(edited(log.append(data(5, 0, sequence)).encode(), 21, ">h", 6) for sequence in range(1500))
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / NAME).write_bytes(raw)
    result = scan(ScanOptions([str(tmp_path / "t-0")]), SilentProgress())
    assert len(result.findings) == 1000
    assert any(entry.reason.startswith("500 more") for entry in result.not_audited)
