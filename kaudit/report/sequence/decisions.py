"""A broker's decisions as text: short for one line of a diagram, in full beside the steps of a page."""

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

from kaudit.broker.errors import KafkaError
from kaudit.broker.producer_state.producer_state_entry import BatchMetadata, DataBatch, MarkerBatch, ProducerStateEntry
from kaudit.broker.producer_state.verdict import Compared, Outcome, Verdict
from kaudit.broker.releases.profile import Profile
from kaudit.broker.response import Answer, Ruling
from kaudit.model.batch_fields import NO_OFFSET
from kaudit.model.sequence import next_sequence, subtract
from kaudit.report.sequence.page_model import Decision, Slot, Window
from kaudit.simulate.trace import BrokerAnswer, EventKind, TraceEvent, numbers_text

REFUSALS = frozenset({Outcome.REJECTED.value, "connection-closed"})
_Item = TypeVar("_Item", bound=Hashable)


class Interned(Generic[_Item]):
    """A list that holds equal items once."""

    def __init__(self) -> None:
        self.items: list[_Item] = []
        self._places: dict[_Item, int] = {}

    def place(self, item: _Item) -> int:
        """Return the item's place in the list, adding it if it is not there."""
        found = self._places.get(item)
        if found is None:
            found = self._places[item] = len(self.items)
            self.items.append(item)
        return found


def reason_of(event: TraceEvent) -> str:
    """Return in short why a response is an error; empty for requests and for other responses."""
    if event.kind is EventKind.REQUEST:
        return ""
    return "; ".join(filter(None, (short_reason(decided) for decided in event.answers if _is_refused(decided))))


def _is_refused(decided: BrokerAnswer) -> bool:
    """Whether the client gets an error, or no answer because of one."""
    refused = decided.answer is not None and decided.answer.fields.get("outcome") in REFUSALS
    return refused or decided.error is not KafkaError.NONE


def short_reason(decided: BrokerAnswer) -> str:
    """Return why a broker refused, in short."""
    if decided.why or decided.answer is None:
        return decided.why
    verdict = _verdict(decided.answer)
    if verdict is None or not verdict.expected:
        return decided.answer.why
    held = verdict.state.batches
    more = ""
    if held and verdict.rule.compared in (Compared.SEQUENCES, Compared.WINDOW):
        first = subtract(held[0].last_sequence, held[0].offset_delta)
        more = f"; remembered: sequences {numbers_text(first, held[-1].last_sequence)}"
    return f"expected {verdict.expected}, got {verdict.got}: {verdict.rule.reason}{more}"


def window(partition: str, producer_id: int, entry: ProducerStateEntry, profile: Profile) -> Window:
    """Return a producer id's state as a broker remembers it."""
    slots = tuple(_slot(batch, profile) for batch in entry.batches)
    open_from = entry.current_txn_first_offset
    return Window(
        partition,
        str(producer_id),
        entry.epoch,
        entry.coordinator_epoch,
        slots,
        profile.window,
        next_sequence(entry.last_sequence),
        None if open_from == NO_OFFSET else str(open_from),
    )


def decision(decided: BrokerAnswer, profile: Profile, windows: Interned[Window], history: str = "") -> Decision:
    """Return a decision about one partition's part of a request; `history` is the earlier history of the batch."""
    error = "" if decided.error is KafkaError.NONE else decided.error.name
    answer = decided.answer
    if answer is None:
        outcome = Outcome.REJECTED.value if error else "ok"
        return Decision(decided.partition, outcome, error, decided.why, "", "", "", None, None, None, history)
    before = after = None
    if answer.producer is not None:
        producer_id, old, new = answer.producer
        before = windows.place(window(decided.partition, producer_id, old, profile))
        after = windows.place(window(decided.partition, producer_id, new, profile))
    verdict = _verdict(answer)
    expected = "" if verdict is None else verdict.expected
    own = str(answer.fields.get("error", "NONE"))
    return Decision(
        decided.partition,
        str(answer.fields.get("outcome", "")),
        error or ("" if own == "NONE" else own),
        decided.why or (answer.why if verdict is None else verdict.rule.reason),
        expected,
        verdict.got if verdict is not None and expected else "",
        "" if verdict is None else _incoming(verdict.batch),
        before,
        after,
        None if verdict is None else _matched(verdict),
        history,
    )


def _matched(verdict: Verdict) -> int | None:
    """Return the slot that a duplicate repeats."""
    if verdict.outcome is not Outcome.DUPLICATE:
        return None
    offsets = [batch.first_offset for batch in verdict.state.batches]
    return offsets.index(verdict.base_offset) if verdict.base_offset in offsets else None


def _verdict(answer: Answer) -> Verdict | None:
    return answer.verdict if isinstance(answer, Ruling) else None


def _slot(batch: BatchMetadata, profile: Profile) -> Slot:
    return Slot(
        numbers_text(batch.first_sequence(profile), batch.last_sequence),
        numbers_text(batch.first_offset, batch.last_offset),
    )


def _incoming(batch: DataBatch | MarkerBatch) -> str:
    if isinstance(batch, MarkerBatch):
        return f"{'commit' if batch.commit else 'abort'} marker, epoch {batch.producer_epoch}"
    sequences = numbers_text(batch.base_sequence, batch.last_sequence)
    many = "" if batch.base_sequence == batch.last_sequence else "s"
    return f"epoch {batch.producer_epoch}, sequence{many} {sequences}"


_OTHERS = ("controller", "znode")


def participants(rows: Iterable[TraceEvent], producers: Iterable[str], brokers: Iterable[str]) -> list[str]:
    """Return the participants that appear in the rows: producers, brokers, then others."""
    seen: set[str] = set()
    for row in rows:
        seen.update((row.source, row.target))
    return [name for name in (*producers, *brokers, *_OTHERS) if name in seen]
