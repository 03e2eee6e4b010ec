"""What became of the batches a broker remembered: where they were written, and when it forgot them."""

from typing import NamedTuple

from kaudit.broker.producer_state.producer_state_entry import BatchMetadata, DataBatch, ProducerStateEntry
from kaudit.broker.producer_state.verdict import Outcome, Rule
from kaudit.broker.releases.profile import Profile
from kaudit.broker.response import Answer, Ruling
from kaudit.report.formatting import plural
from kaudit.report.sequence_diagram.decisions import span

Key = tuple[str, int]
"""A partition and a producer id."""


class _Forgotten(NamedTuple):
    """A batch that is no longer remembered: its first offset, the steps that wrote and forgot it, and why."""

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
        self._forgotten: dict[tuple[Key, int, int, int], _Forgotten] = {}

    def follow(self, key: Key, entry: ProducerStateEntry, step: int) -> None:
        """Take note of what is remembered after a step."""
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
                sequences = (batch.first_sequence(self._profile), batch.last_sequence)
                because = self._because(before, entry)
                self._forgotten[key, before.epoch, *sequences] = _Forgotten(batch.first_offset, written, step, because)

    def of(self, key: Key, answer: Answer | None, copies: tuple[int, ...]) -> str:
        """Return what became before of the batch an answer is about; empty where there is nothing to say."""
        if answer is not None and answer.fields.get("outcome") == Outcome.APPENDED.value:
            return (
                f"The log holds the same records already, at offset {copies[0]}. {_unrecognised(answer)}"
                if copies
                else ""
            )
        batch = answer.verdict.batch if isinstance(answer, Ruling) else None
        if not isinstance(batch, DataBatch):
            return ""
        known = self._forgotten.get((key, batch.producer_epoch, batch.base_sequence, batch.last_sequence))
        if known is None:
            return ""
        sequences = span(batch.base_sequence, batch.last_sequence)
        return (
            f"Sequence {sequences} is in the log at offset {known.offset}, written in {self._unit} {known.written}, "
            f"but was forgotten in {self._unit} {known.forgotten}: {known.because}."
        )

    def _because(self, before: ProducerStateEntry, after: ProducerStateEntry) -> str:
        if after.epoch != before.epoch:
            return f"epoch {after.epoch} took the place of epoch {before.epoch}"
        if len(after.batches) == self._profile.window:
            return f"a broker remembers the last {plural(self._profile.window, 'batch', 'batches')} of a producer id"
        return "the broker that leads now never knew it"


def _unrecognised(answer: Answer) -> str:
    """Return why a broker writes records again that it has."""
    if not isinstance(answer, Ruling):
        return "Without a producer id a broker compares nothing."
    rule = answer.verdict.rule
    if rule is Rule.NEW_EPOCH:
        return "Sequences begin at 0 again in a new epoch, so the broker cannot recognise them."
    if rule in (Rule.FIRST, Rule.UNKNOWN_ACCEPTED):
        return "The broker remembers nothing of this producer id, so it cannot recognise them."
    return "The broker has forgotten them."
