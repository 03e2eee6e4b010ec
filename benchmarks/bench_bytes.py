"""Decompression against the codec libraries' own speed, and text of kafka-dump-log: `python -m benchmarks.bench_bytes`.

Ratios are of the same frames in one run, least of five rounds, interleaved; microseconds are of this machine.
"""

import time
from collections.abc import Callable
from functools import partial
from random import Random

import lz4.frame
import zstandard

from kaudit.formats.dump_text.text import read_dump, read_dump_columns
from kaudit.formats.log.codecs import Codec, decompress
from kaudit.formats.log.records import DEFAULT_LIMIT
from kaudit.reading.dump_text import dump_text_batches
from kaudit.source.layout import TextRange
from kaudit.source.text import SegmentText
from tests.memory import Memory

SIZES = (1 << 10, 4 << 10, 16 << 10, 128 << 10)
ROUNDS = 5
LINES = 100_000
_SHALLOW = (
    "baseOffset: {0} lastOffset: {0} count: 1 baseSequence: {0} lastSequence: {0} producerId: {1} producerEpoch: 0 "
    "partitionLeaderEpoch: 0 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty position: {2} "
    "CreateTime: {3} size: 120 magic: 2 compresscodec: none crc: {4} isvalid: true\n"
)
_RECORD = (
    "| offset: {0} CreateTime: {3} keySize: 8 valueSize: 30 sequence: {0} headerKeys: [] key: key-0001 payload: {5}\n"
)


def _least(*works: Callable[[], object]) -> list[float]:
    """Seconds of each, least of the rounds, one after the other in each round."""
    least = [float("inf")] * len(works)
    for _ in range(ROUNDS):
        for index, work in enumerate(works):
            started = time.perf_counter()
            work()
            least[index] = min(least[index], time.perf_counter() - started)
    return least


def _payload(size: int) -> bytes:
    random = Random(size)
    words = [bytes(random.choices(b"abcdefghijklmnopqrstuvwxyz", k=random.randint(3, 9))) for _ in range(500)]
    return b" ".join(random.choices(words, k=size // 4))[:size]


def _library(work: Callable[[memoryview], bytes], frame: memoryview, count: int) -> None:
    for _ in range(count):
        work(frame)


def _bounded(codec: int, frame: memoryview, count: int) -> None:
    """As kaudit.formats.log.records calls it: the codec is a plain int, three bits of the attributes."""
    for _ in range(count):
        decompress(codec, 2, frame, DEFAULT_LIMIT)


def codecs() -> None:
    print("| payload | codec | library, us | kaudit, us | of the library's speed |\n|---:|---|---:|---:|---:|")
    for size in SIZES:
        payload = _payload(size)
        count = max(20, (1 << 21) // size)
        own = zstandard.ZstdDecompressor()
        for codec, frame, library in (
            (Codec.LZ4, lz4.frame.compress(payload, store_size=False), lz4.frame.decompress),
            (
                Codec.ZSTD,
                zstandard.ZstdCompressor(write_content_size=False).compress(payload),
                partial(own.decompress, max_output_size=size),
            ),
        ):
            held = memoryview(bytearray(frame))  # what a batch read from a file is held in
            theirs, ours = _least(partial(_library, library, held, count), partial(_bounded, int(codec), held, count))
            name = codec.name.lower()
            print(f"| {size} | {name} | {theirs / count * 1e6:.1f} | {ours / count * 1e6:.1f} | {theirs / ours:.0%} |")


def text() -> None:
    numbers = [(n, 1000 + n % 7, 120 * n, 1_795_240_108_273 + n, n * 7919 % 2**32, "x" * 30) for n in range(LINES)]
    shallow = "".join(_SHALLOW.format(*row) for row in numbers).encode()
    deep = "".join((_SHALLOW + _RECORD).format(*row) for row in numbers[: LINES // 2]).encode()
    print("| text | work | us a line |\n|---|---|---:|")
    for name, data in (("shallow", shallow), ("deep, with data", deep)):
        source = SegmentText(Memory(data), TextRange(0, len(data)))
        works = (
            ("typed columns and rows", lambda data=data: [None for _ in read_dump_columns([data])]),
            ("a row object a line", lambda data=data: [None for _ in read_dump([data])]),
            ("batches for scan", lambda source=source: list(dump_text_batches(source, 0))),
        )
        for (work, _), seconds in zip(works, _least(*(run for _, run in works)), strict=True):
            print(f"| {name} | {work} | {seconds / LINES * 1e6:.2f} |")


if __name__ == "__main__":
    codecs()
    print()
    text()
