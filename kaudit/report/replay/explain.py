"""Two explanations for people: one attempt told from before to after, and what sets the releases apart."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kaudit.broker.attempts.attempt import Attempt
from kaudit.broker.broker import Broker
from kaudit.broker.producer_state.producer_state_entry import UNKNOWN, ProducerStateEntry
from kaudit.broker.releases.profile import Profile, profile_groups
from kaudit.broker.releases.version import Version
from kaudit.broker.response import Answer
from kaudit.model.sequence import add as add_sequence
from kaudit.replay.session import Session, attempts_only
from kaudit.report.replay.broker_rules import release_span
from kaudit.report.replay.render import plain

if TYPE_CHECKING:
    from kaudit.replay.what_if import RecordedLog


class NoSuchAttemptError(ValueError):
    """No attempt has the index asked for."""


def explain(
    lines: Iterable[bytes], index: int, profile: Profile | None, recorded: "RecordedLog | None" = None
) -> Iterator[str]:
    """Yield the lines that tell attempt `index`: state before, what came, the rule, state after, other versions.

    Raises AttemptError for bad lines up to it and NoSuchAttemptError when there is none.
    """
    session = Session(lines, Broker(profile, recorded), attempts_only)
    others = [Broker(other, recorded) for other, _ in profile_groups()]
    for attempt, answer in session.answered():
        assert isinstance(attempt, dict)
        said = [other.answer(attempt) for other in others]
        if answer.attempt == index:
            yield from _story(attempt, answer, session.broker)
            yield from _elsewhere(answer, said)
            return
    raise NoSuchAttemptError(f"no attempt has index {index}")


def _story(attempt: Attempt, answer: Answer, broker: Broker) -> Iterator[str]:
    partition = f" on {plain(attempt['topic'])}-{attempt['partition']}" if "topic" in attempt else ""
    yield f"Attempt {answer.attempt}: {attempt['op']}{partition}, answered by {broker.profile.version}"
    yield ""
    if answer.producer is not None:
        producer_id, before, after = answer.producer
        yield f"Remembered before, of producer id {producer_id}:"
        yield from _state(before, broker.profile)
        yield ""
        yield "What came:"
        yield f"  {_what_came(attempt)}"
        yield ""
        yield f"Answer: {said(answer)}"
        yield f"Why: {plain(answer.why)}"
        yield ""
        if after == before:
            yield "Remembered afterwards: the same."
        else:
            yield "Remembered afterwards:"
            yield from _state(after, broker.profile)
    else:
        yield f"What came: {_what_came(attempt)}"
        yield f"Answer: {said(answer)}"
        yield f"Why: {plain(answer.why)}"


def _from_to(name: str, first: int, last: int) -> str:
    return f"{name} {first}" if first == last else f"{name}s {first} to {last}"


_TOLD = ("topic", "partition", "op", "index", "records_hex", "at", "transaction_version", "granted_producer_id")

_BATCH = ("producer_id", "producer_epoch", "base_sequence", "record_count")


def _what_came(attempt: Attempt) -> str:
    described = all(attempt.get(name) is not None for name in _BATCH)
    if attempt["op"] != "produce" or not described or "batches" in attempt:
        told = [
            f"{name} {plain(str(value))}" for name, value in attempt.items() if name not in _TOLD and value is not None
        ]
        return ", ".join(told) or plain(attempt["op"])
    producer_id, epoch, first, count = (attempt[name] for name in _BATCH)
    sequences = _from_to("sequence", first, add_sequence(first, count - 1) if count > 1 else first)
    records = f"{count} {'record' if count == 1 else 'records'}"
    parts = [f"{records} of producer id {producer_id} epoch {epoch}, {sequences}"]
    if attempt.get("is_transactional"):
        owner = attempt.get("transactional_id")
        parts.append(
            "transactional, in a request without a transactional id"
            if owner is None
            else f"transactional as {plain(owner)}"
        )
    if attempt.get("acks") == 0:
        parts.append("acks 0, so no answer is expected")
    return ", ".join(parts)


def _state(state: ProducerStateEntry, profile: Profile) -> Iterator[str]:
    if state == UNKNOWN:
        yield "  nothing"
        return
    transaction = f", transaction open since offset {state.current_txn_first_offset}" if state.in_transaction else ""
    coordinator = f", coordinator epoch {state.coordinator_epoch}" if state.coordinator_epoch >= 0 else ""
    yield f"  epoch {state.epoch}{coordinator}{transaction}"
    for batch in state.batches:
        sequences = _from_to("sequence", batch.first_sequence(profile), batch.last_sequence)
        yield f"  {sequences} at {_from_to('offset', batch.first_offset, batch.last_offset)}"
    if not state.batches:
        yield "  no batch of this epoch"


def said(answer: Answer) -> str:
    """Return an answer in a few words: outcome, error code and name, offset, producer id and epoch given."""
    fields = answer.fields
    words = str(fields.get("outcome", "noted"))
    if fields.get("error", "NONE") != "NONE":
        words += f" with {fields['error_code']} {fields['error']}"
    if "base_offset" in fields:
        words += f" at offset {fields['base_offset']}"
    if fields.get("producer_epoch", -1) >= 0:
        words += f", producer id {fields['producer_id']} epoch {fields['producer_epoch']}"
    if "last_stable_offset" in fields:
        words += f", stable to {fields['last_stable_offset']} of {fields['high_watermark']}"
    return words


def _elsewhere(answer: Answer, others: list[Answer]) -> Iterator[str]:
    """Yield what neighbouring releases say, those that agree in one line."""
    spans: list[tuple[Version, Version, str]] = []
    for (_, versions), other in zip(profile_groups(), others, strict=True):
        words = said(other)
        if spans and spans[-1][2] == words:
            spans[-1] = (spans[-1][0], versions[-1], words)
        else:
            spans.append((versions[0], versions[-1], words))
    yield ""
    if len(spans) == 1:
        yield "Every version says the same."
        return
    yield "Other versions, asked the same from the beginning:"
    for first, last, words in spans:
        mark = "=" if words == said(answer) else " "
        yield f"  {mark} {release_span(first, last):<22}{words}"
