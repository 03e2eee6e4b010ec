"""Small logs written batch by batch, and what an audit of each reports."""

from pathlib import Path
from typing import Any, NamedTuple

from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.model.finding import Finding
from kaudit.scanning.options import ScanOptions
from tests.logs import Batch, Log, data, marker


class Missing(NamedTuple):
    """Offsets that nothing in the log has."""

    offsets: int


class Later(NamedTuple):
    """Time that passes; the next batch is a millisecond after it."""

    ms: int


class Again(NamedTuple):
    """A batch of the story, by its place, with the same bytes."""

    place: int


def plain(sequence: int, count: int = 1, *, epoch: int = 0, who: int = 1, **more: Any) -> Batch:
    """A batch of an idempotent producer."""
    return data(who, epoch, sequence, count, **more)


def transactional(sequence: int, count: int = 1, *, epoch: int = 0, who: int = 1, **more: Any) -> Batch:
    """A batch of a transactional producer."""
    return data(who, epoch, sequence, count, transactional=True, **more)


def commit(*, epoch: int = 0, who: int = 1, **more: Any) -> Batch:
    """A commit marker."""
    return marker(who, epoch, commit=True, **more)


def abort(*, epoch: int = 0, who: int = 1, **more: Any) -> Batch:
    """An abort marker."""
    return marker(who, epoch, commit=False, **more)


def log_of(*parts: Batch | Missing | Later | Again) -> Log:
    """The log of a story."""
    log = Log()
    for part in parts:
        match part:
            case Missing(offsets):
                log.skip(offsets)
            case Later(ms):
                log.clock += ms
            case Again(place):
                log.append(log.batches[place], keep_time=True)
            case _:
                log.append(part)
    return log


def findings(log: Log, directory: Path, *codes: str, **options: Any) -> list[Finding]:
    """What an audit reports of the log, in a partition directory of its own, under codes that begin like these."""
    written = log.write(directory / "orders-0")
    found = scan(ScanOptions([str(written)], **options), SilentProgress()).findings
    return [finding for finding in found if finding.code.startswith(codes or "KA")]


def position(log: Log, offset: int) -> int:
    """The byte at which the batch with this base offset begins."""
    return sum(len(batch.encode()) for batch in log.batches if batch.base_offset < offset)


def shown(log: Log, offset: int) -> dict[str, Any]:
    """The batch with this base offset as evidence shows it."""
    (batch,) = [batch for batch in log.batches if batch.base_offset == offset]
    return {
        "offset": offset,
        "last_offset": batch.last_offset,
        "timestamp": batch.timestamp,
        "producer_id": batch.producer_id,
        "producer_epoch": batch.epoch,
        "base_sequence": batch.sequence,
        "last_sequence": (batch.sequence + batch.count - 1) % 2**31,
        "is_transactional": bool(batch.attributes & 0x10),
        "crc": int.from_bytes(batch.encode()[17:21]),
        "position": position(log, offset),
        "leader_epoch": batch.leader_epoch,
    }
