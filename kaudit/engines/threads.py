"""Reading ranges of large batches side by side in threads: what takes the time there, the copy out of the page cache and the CRC, holds no lock."""

from collections import deque
from collections.abc import Generator, Iterator
from queue import SimpleQueue
from threading import Thread

from kaudit.engines.ranges import Range, RangeRead, read_most, reads
from kaudit.reading.chunk_plan import ChunkSpec
from kaudit.reading.chunk_rows import ChunkRows, Outcome

_LARGE_BYTES = 4 << 10
"""Of batches smaller than this on average the interpreter's part is what takes the time."""


_Answers = SimpleQueue[list[Outcome] | None]
_Tasks = SimpleQueue[tuple[ChunkSpec, _Answers] | None]


def read_in_threads(found: Iterator[Range], threads: int) -> Generator[RangeRead, None, Range | None]:
    """Read ranges in order while they are plain files of large batches.

    Return the first range that is not read here, None if all have been read.
    """
    tasks: _Tasks = SimpleQueue()
    # whoever interrupts kaudit does not wait for them
    readers = [Thread(target=_serve, args=(tasks,), daemon=True) for _ in range(threads)]
    for reader in readers:
        reader.start()
    waiting: deque[tuple[Range, _Answers]] = deque()
    following = next(found, None)
    most = 1  # of the batches nothing is known yet
    try:
        while True:
            while following is not None and len(waiting) < most and _is_plain(following.spec):
                waiting.append((following, SimpleQueue()))
                tasks.put((following.spec, waiting[-1][1]))
                following = next(found, None)
            if not waiting:
                break
            entry, answers = waiting.popleft()
            outcomes = answers.get()
            if outcomes is None:
                outcomes = read_most(entry.spec)
            most = threads + 1 if most and all(map(_has_large_batches, outcomes)) else 0
            yield from reads(entry, outcomes)
    finally:
        for _ in readers:
            tasks.put(None)
    for reader in readers:
        reader.join()  # processes that are forked now would lack them
    return following


def _serve(tasks: _Tasks) -> None:
    """Read what is asked for until nobody asks any more."""
    while (task := tasks.get()) is not None:
        spec, answers = task
        try:
            answers.put(read_most(spec))
        except Exception:  # noqa: BLE001 - whoever asked reads the range and sees what is wrong with it
            answers.put(None)


def _is_plain(spec: ChunkSpec) -> bool:
    """Whether a range is copied and checked, and nothing else: not decompressed, decrypted, decoded or parsed."""
    file = spec.file
    return not (spec.decode or spec.saved or file.text or file.fetched or file.key_files or "!" in file.path)


def _has_large_batches(outcome: Outcome) -> bool:
    if not isinstance(outcome, ChunkRows):
        return False
    return outcome.counts.batches * _LARGE_BYTES <= outcome.read_to - outcome.start
