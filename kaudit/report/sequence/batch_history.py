"""The history of batches that a broker remembered: where it wrote them, and when it forgot them."""

from typing import NamedTuple

from kaudit.broker.producer_state.producer_state_entry import BatchMetadata, DataBatch, ProducerStateEntry
from kaudit.broker.producer_state.verdict import Outcome, Rule
from kaudit.broker.releases.profile import Profile
from kaudit.broker.response import Answer, Ruling
from kaudit.report.text.formatting import plural
from kaudit.simulate.trace import Copy, numbers_text

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
        if not isinstance(answer, Ruling) or not isinstance(answer.verdict.batch, DataBatch):
            return ""
        batch = answer.verdict.batch
        itself = self._forgotten.get((key, batch.producer_epoch, batch.last_sequence))
        if itself is not None and itself.first_sequence == batch.base_sequence:
            return self._story(numbers_text(batch.base_sequence, batch.last_sequence), itself)
        if answer.verdict.rule is not Rule.OUT_OF_ORDER or batch.base_sequence == 0:
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
    batch = answer.verdict.batch
    if copy.producer_id != batch.producer_id:
        return f"They were sent under producer id {copy.producer_id} then: a broker compares batches of one producer id only."
    if copy.epoch != batch.producer_epoch:
        return f"They were sent under epoch {copy.epoch} then: a broker compares batches of the current epoch only."
    return "The broker had forgotten them."
