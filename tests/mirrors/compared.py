"""What the ledger says of a history, beside what became of its records."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from kaudit.engines.progress import SilentProgress
from kaudit.engines.record_ledger import LOCAL_RECORDS, LedgerRequest, RecordEngine, record_ledger
from kaudit.model.ledger import RecordRange, RepeatedRange, TopicLedger, mapped_ranges
from kaudit.model.replicas import Replica
from kaudit.reading.identity.columns import IdentityReader
from kaudit.reading.identity.grammar import parse_identity
from kaudit.scanning.options import ScanOptions
from tests.mirrors.histories import History
from tests.mirrors.truth import Place, Truth, truth

Answer = dict[str, Any]


def expected(history: History, told: Truth) -> Answer:
    """What the ledger must say: sets of places, and counts of what is no difference."""
    apart = {
        place
        for place, first in told.added.items()
        if _told_apart(history, told, place) and (first == place or not _before(history, told, first))
    }
    return {
        "matched": len(told.copies),
        "missing": told.missing,
        "pending": told.beyond,
        "repeated": {place for copies in told.copies.values() for place in copies[1:]},
        "only in target": apart,
        "no difference": len(told.before) + len(told.superseded) + len(told.outlived) + len(told.added.keys() - apart),
        "map": {place: copies[0] for place, copies in told.copies.items()},
        "out of order": set(_moved(history, told)),
    }


def _told_apart(history: History, told: Truth, place: Place) -> bool:
    """Whether a record that only the target has lies among others; after the last it may be new, before the first deleted there."""
    known = _known(told, place[0])
    last = max((at for _, at in known), default=place[1] + 1)
    return not _before(history, told, place) and place[1] < last


def _before(history: History, told: Truth, place: Place) -> bool:
    """Whether a target record lies before the first one of the source, where that begins later."""
    known = _known(told, place[0])
    return bool(known) and any(log.start for log in history.source) and place[1] < min(known)[1]


def _known(told: Truth, partition: int) -> list[tuple[Place, int]]:
    """Source place and target offset of what both have, of a target partition."""
    return [(source, at) for source, copies in told.copies.items() for target, at in copies if target == partition]


def _moved(history: History, told: Truth) -> Iterator[Place]:
    """Source places whose key's record before them is after them in the target, of the same two partitions."""
    before: dict[tuple[int, int, bytes], int] = {}
    for partition, log in enumerate(history.source):
        for offset, record in log.visible(committed=history.settings.committed):
            copies = told.copies.get((partition, offset))
            if copies and record.key is not None:
                target, place = copies[0]
                group = (partition, target, record.key)
                if place < before.get(group, -1):
                    yield partition, offset
                before[group] = place


def request_of(history: History, window_ms: int | None = None) -> LedgerRequest:
    """How the two sides of a history are compared."""
    settings = history.settings
    return LedgerRequest(
        IdentityReader(
            parse_identity("key,value,headers,timestamp" if settings.with_timestamp else "key,value,headers")
        ),
        given=True,
        read_committed=settings.committed,
        maps=[f"orders={settings.renamed}"],
        window_ms=window_ms,
    )


class Way(NamedTuple):
    """On what engine, and by what windows, a ledger is made."""

    name: str
    engine: RecordEngine = LOCAL_RECORDS
    window_ms: int | None = None


PLAIN = Way("local")


def answered(history: History, source: str, target: str, way: Way = PLAIN) -> Answer:
    """What the ledger says of the history's two sides, directories or URLs."""
    options = ScanOptions([source, target], jobs=1)
    sides = Replica("source", source), Replica("target", target)
    with record_ledger(options, sides, request_of(history, way.window_ms), SilentProgress(), way.engine) as result:
        (ledger,) = result.ledgers
        return _answer(history, ledger)


def _answer(history: History, ledger: TopicLedger) -> Answer:
    """The ranges as the places in them; a range of the map also has places of records without a copy."""
    committed = history.settings.committed
    rows = [
        [[offset for offset, _ in log.visible(committed=committed)] for log in logs]
        for logs in (history.source, history.target)
    ]

    def places(ranges: Iterable[RecordRange | RepeatedRange], side: int) -> set[Place]:
        return {
            (each.partition, offset)
            for each in ranges
            for offset in rows[side][each.partition]
            if each.first <= offset <= each.last
        }

    mapped = {}
    for each in mapped_ranges(ledger.map_file):
        for offset in rows[0][each.source_partition]:
            if each.source_first_offset <= offset <= each.source_last_offset:
                mapped[each.source_partition, offset] = (
                    each.target_partition,
                    offset + each.target_first_offset - each.source_first_offset,
                )
    return {
        "matched": ledger.matched,
        "missing": places(ledger.missing_ranges, 0),
        "pending": places(ledger.pending_ranges, 0),
        "repeated": places(ledger.repeated_ranges, 1),
        "only in target": places(ledger.only_in_target_ranges, 1),
        "no difference": ledger.expired + ledger.older + ledger.cleaned + ledger.ahead,
        "map": mapped,
        "out of order": {(each.source_partition, each.source_offset) for each in ledger.moved},
    }


def wrong(history: History, source: str, target: str, way: Way = PLAIN) -> list[str]:
    """What the ledger says of these otherwise than it is, in words."""
    told = truth(history)
    want, got = expected(history, told), answered(history, source, target, way)
    got["map"] = {place: at for place, at in got["map"].items() if place in told.copies}
    return [f"{name}: {_shown(got[name])} instead of {_shown(want[name])}" for name in want if want[name] != got[name]]


def _shown(found: object) -> str:
    return (
        str(sorted(found.items() if isinstance(found, dict) else found))
        if isinstance(found, set | dict)
        else str(found)
    )
