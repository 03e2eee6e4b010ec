"""Texts too long for one range, and batches of a text that are read again."""

import re

import numpy as np
import pytest

from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.partition import job
from kaudit.reading import chunk_reader as read
from kaudit.reading import dump_text as printed
from kaudit.reading.dump_text import dump_text_batches
from kaudit.scanning.options import ScanOptions
from kaudit.source import text as source_text
from kaudit.source.layout import TextRange
from kaudit.source.text import SegmentText

BATCH = (
    "baseOffset: {0} lastOffset: {0} count: 1 baseSequence: {0} lastSequence: {0} producerId: 1000 producerEpoch: 0 "
    "partitionLeaderEpoch: 0 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty position: {1} "
    "CreateTime: 1795240108273 size: 120 magic: 2 compresscodec: none crc: {0} isvalid: true\n"
)
RECORD = (
    "| offset: {0} CreateTime: 1795240108273 keySize: 1 valueSize: 1 sequence: {0} headerKeys: [] key: k payload: {2}\n"
)


class Memory:
    def __init__(self, data):
        self.data = data
        self.read = 0

    def size(self):
        return len(self.data)

    def read_into(self, position, buffer):
        piece = self.data[position : position + len(buffer)]
        buffer[: len(piece)] = piece
        self.read += len(piece)
        return len(piece)

    def close(self):
        pass


def audit(path):
    result = local.scan(ScanOptions([str(path)], jobs=1, now_ms=1_800_000_000_000), SilentProgress())
    return result.findings, result.summary, result.partitions, result.not_audited


@pytest.mark.parametrize("capture", ["txn-mix-2.8.2", "torn-writes", "retry-dup", "legacy-formats"])
def test_pieces_of_a_long_text_are_audited_as_the_whole_is(evidence, capture, monkeypatch):
    texts = sorted((evidence.capture(capture) / "dumps").glob("*.log.*.txt"))[::5]
    texts = [text for text in texts if not re.search("-(delete|future|stray)__", text.name)]  # put aside: not audited
    assert texts
    whole = [audit(text) for text in texts]
    monkeypatch.setattr(job, "LONGEST_TEXT_BYTES", 0)
    monkeypatch.setattr(read, "CHUNK_BATCHES", 5)
    monkeypatch.setattr(printed, "_MAX_HELD", 3)
    assert [audit(text) for text in texts] == whole


@pytest.mark.parametrize(
    "payload", ["v", "v\nbaseOffset: 9 position: 1 imitated", "v\nbaseOffset: 9 position: 999999999 "]
)
def test_reading_again_from_a_batch_gives_the_same(payload, monkeypatch):
    monkeypatch.setattr(source_text, "PROBE_BYTES", 4096)
    monkeypatch.setattr(source_text, "PIECE_BYTES", 4096)
    count = 1000
    memory = Memory("".join((BATCH + RECORD).format(n, 120 * n, payload) for n in range(count)).encode())
    source = SegmentText(memory, TextRange(0, len(memory.data)))
    for number in (0, 1, 7, 500, 998, 999):
        offsets = np.concatenate(
            [batches["base_offset"] for batches, _, _, _ in dump_text_batches(source, 120 * number)]
        )
        assert offsets.tolist() == list(range(number, count))


def test_reading_again_from_a_batch_finds_it_without_what_is_before(monkeypatch):
    monkeypatch.setattr(source_text, "PROBE_BYTES", 4096)
    monkeypatch.setattr(source_text, "PIECE_BYTES", 4096)
    memory = Memory("".join((BATCH + RECORD).format(n, 120 * n, "v") for n in range(3000)).encode())
    source = SegmentText(memory, TextRange(0, len(memory.data)))
    first, _, _, _ = next(iter(dump_text_batches(source, 120 * 2000)))
    assert first["base_offset"][0] == 2000
    assert memory.read < len(memory.data) // 3


def test_a_position_the_text_does_not_show_gives_what_lies_behind_it():
    data = "".join(BATCH.format(n, 120 * n) for n in range(900)).encode()
    source = SegmentText(Memory(data), TextRange(0, len(data)))
    batches, _, _, _ = next(iter(dump_text_batches(source, 120 * 800 + 1)))
    assert batches["base_offset"].tolist() == list(range(801, 900))
