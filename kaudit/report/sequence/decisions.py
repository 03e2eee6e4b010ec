"""A broker's decisions as text: short for one line of a diagram, in full beside the steps of a page."""

from collections.abc import Hashable, Iterable
from typing import Generic, NamedTuple, TypeVar

from kaudit.broker.errors import KafkaError
from kaudit.broker.producer_state.append_result import AppendResult, Compared, Outcome, Rule
from kaudit.broker.producer_state.producer_state_entry import BatchMetadata, DataBatch, MarkerBatch, ProducerStateEntry
from kaudit.broker.releases.profile import Profile
from kaudit.broker.response import Answer, Ruling
from kaudit.model.batch_fields import NO_OFFSET
from kaudit.model.sequence import next_sequence, subtract
from kaudit.report.sequence.page_model import Decision, Slot, Window
from kaudit.report.text.formatting import plural
from kaudit.simulate.trace import BrokerAnswer, Copy, EventKind, TraceEvent, numbers_text

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
    result = _result(decided.answer)
    if result is None or not result.expected:
        return decided.answer.why
    held = result.state.batches
    more = ""
    if held and result.rule.compared in (Compared.SEQUENCES, Compared.WINDOW):
        first = subtract(held[0].last_sequence, held[0].offset_delta)
        more = f"; remembered: sequences {numbers_text(first, held[-1].last_sequence)}"
    return f"expected {result.expected}, got {result.got}: {result.rule.reason}{more}"


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
    result = _result(answer)
    expected = "" if result is None else result.expected
    own = str(answer.fields.get("error", "NONE"))
    return Decision(
        decided.partition,
        str(answer.fields.get("outcome", "")),
        error or ("" if own == "NONE" else own),
        decided.why or (answer.why if result is None else result.rule.reason),
        expected,
        result.got if result is not None and expected else "",
        "" if result is None else _incoming(result.batch),
        before,
        after,
        None if result is None else _matched(result),
        history,
    )


def _matched(result: AppendResult) -> int | None:
    """Return the slot that a duplicate repeats."""
    if result.outcome is not Outcome.DUPLICATE:
        return None
    offsets = [batch.first_offset for batch in result.state.batches]
    return offsets.index(result.base_offset) if result.base_offset in offsets else None


def _result(answer: Answer) -> AppendResult | None:
    return answer.result if isinstance(answer, Ruling) else None


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


Key = tuple[str, int]
"""A partition and a producer id."""


class _ForgottenBatch(NamedTuple):
    """A batch that is no longer remembered: its first sequence and offset, the steps that wrote and forgot it, and why."""

    first_sequence: int
    offset: int
    written: int
    forgotten: int
    because: str


class BatchHistory:
    """Follows what brokers remember from step to step."""

    def __init__(self, profile: Profile, unit: str = "step") -> None:
        """`unit` is what a step is called."""
        self._profile = profile
        self._unit = unit
        self._entries: dict[Key, ProducerStateEntry] = {}
        self._written: dict[tuple[Key, BatchMetadata], int] = {}
        self._forgotten: dict[tuple[Key, int, int], _ForgottenBatch] = {}
        """By producer, epoch and last sequence."""

    def follow(self, key: Key, entry: ProducerStateEntry, step: int) -> None:
        """Record the state that a broker remembers after a step."""
        before = self._entries.get(key)
        if before is entry:
            return
        self._entries[key] = entry
        for batch in entry.batches:
            self._written.setdefault((key, batch), step)
        if before is None:
            return
        for batch in before.batches:
            if batch not in entry.batches:
                written = self._written.pop((key, batch), step)
                self._forgotten[key, before.epoch, batch.last_sequence] = _ForgottenBatch(
                    batch.first_sequence(self._profile), batch.first_offset, written, step, self._because(before, entry)
                )

    def of(self, key: Key, answer: Answer | None, copies: tuple[Copy, ...]) -> str:
        """Return the earlier history of the batch that an answer is about; empty where there is none."""
        if answer is not None and copies and answer.fields.get("outcome") == Outcome.APPENDED.value:
            (copy, *_) = copies
            return f"The log holds the same records already, at offset {copy.offset}. {_unrecognised(answer, copy)}"
        if not isinstance(answer, Ruling) or not isinstance(answer.result.batch, DataBatch):
            return ""
        batch = answer.result.batch
        itself = self._forgotten.get((key, batch.producer_epoch, batch.last_sequence))
        if itself is not None and itself.first_sequence == batch.base_sequence:
            return self._story(numbers_text(batch.base_sequence, batch.last_sequence), itself)
        if answer.result.rule is not Rule.OUT_OF_ORDER or batch.base_sequence == 0:
            return ""
        before = self._forgotten.get((key, batch.producer_epoch, batch.base_sequence - 1))
        return "" if before is None else self._story(f"{batch.base_sequence - 1}, which comes before it,", before)

    def _story(self, sequence: str, batch: _ForgottenBatch) -> str:
        return (
            f"Sequence {sequence} was written at offset {batch.offset} in {self._unit} {batch.written}, "
            f"and forgotten in {self._unit} {batch.forgotten}: {batch.because}."
        )

    def _because(self, before: ProducerStateEntry, after: ProducerStateEntry) -> str:
        if after.epoch != before.epoch:
            return f"epoch {after.epoch} took the place of epoch {before.epoch}"
        if before.batches[-1] in after.batches[:-1]:  # one more was written
            return f"a broker remembers the last {plural(self._profile.window, 'batch', 'batches')} of a producer id"
        return "the broker has lost it, or another one leads"


def _unrecognised(answer: Answer, copy: Copy) -> str:
    """Return why a broker writes records that its log already holds."""
    if not isinstance(answer, Ruling):
        return "Without a producer id a broker compares nothing."
    batch = answer.result.batch
    if copy.producer_id != batch.producer_id:
        return f"They were sent under producer id {copy.producer_id} then: a broker compares batches of one producer id only."
    if copy.epoch != batch.producer_epoch:
        return f"They were sent under epoch {copy.epoch} then: a broker compares batches of the current epoch only."
    return "The broker had forgotten them."
