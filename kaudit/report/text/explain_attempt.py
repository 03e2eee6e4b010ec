"""One attempt explained: the state before, the request, the answer and its rule, the state after, other releases."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from msgspec import to_builtins
from msgspec.structs import asdict

from kaudit.broker.attempts import BATCH_FIELDS, Attempt, Produce, StartBroker, op_of
from kaudit.broker.attempts.base import NOT_STATED
from kaudit.broker.broker import Broker
from kaudit.broker.producer_state.producer_state_entry import UNKNOWN, ProducerStateEntry
from kaudit.broker.releases.profile import Profile, profile_groups
from kaudit.broker.releases.version import Version
from kaudit.broker.response import Answer
from kaudit.model.sequence import add as add_sequence
from kaudit.replay.session import Session
from kaudit.report.text.answers import printable
from kaudit.report.text.broker_rules import release_span

if TYPE_CHECKING:
    from kaudit.broker.recorded_log import RecordedLog


class NoSuchAttemptError(ValueError):
    """No attempt has the index asked for."""


def explain(
    lines: Iterable[bytes], index: int, profile: Profile | None, recorded: "RecordedLog | None" = None
) -> Iterator[str]:
    """Yield the lines that explain attempt `index`: state before, request, answer and rule, state after, other versions.

    Raises AttemptError for bad lines up to it and NoSuchAttemptError when there is none.
    """
    session = Session(lines, Broker(profile, recorded))
    others = [Broker(other, recorded) for other, _ in profile_groups()]
    for attempt, answer in session.answered():
        other_answers = [other.answer(attempt) for other in others]
        if answer.attempt == index:
            yield from _story(attempt, answer, session.broker)
            yield from _other_versions(answer, other_answers)
            return
    raise NoSuchAttemptError(f"no attempt has index {index}")


def _story(attempt: Attempt, answer: Answer, broker: Broker) -> Iterator[str]:
    place = "" if isinstance(attempt, StartBroker) else f" on {printable(attempt.topic)}-{attempt.partition}"
    yield f"Attempt {answer.attempt}: {op_of(attempt)}{place}, answered by {broker.profile.version}"
    yield ""
    if answer.producer is None:
        yield f"Request: {_request(attempt)}"
        yield f"Answer: {_short(answer)}"
        yield f"Why: {printable(answer.why)}"
        return
    producer_id, before, after = answer.producer
    yield f"Remembered before, of producer id {producer_id}:"
    yield from _state(before, broker.profile)
    yield ""
    yield "Request:"
    yield f"  {_request(attempt)}"
    yield ""
    yield f"Answer: {_short(answer)}"
    yield f"Why: {printable(answer.why)}"
    yield ""
    if after == before:
        yield "Remembered afterwards: the same."
    else:
        yield "Remembered afterwards:"
        yield from _state(after, broker.profile)


def _from_to(name: str, first: int, last: int) -> str:
    return f"{name} {first}" if first == last else f"{name}s {first} to {last}"


_LEFT_OUT = ("topic", "partition", "index", "records_hex", "at", "transaction_version", "granted_producer_id")


def _request(attempt: Attempt) -> str:
    if isinstance(attempt, Produce) and attempt.batches is None:
        fields = [getattr(attempt, name) for name in BATCH_FIELDS]
        if None not in fields:
            return _produce_request(attempt, *fields)
    unstated = {"api_version"} if getattr(attempt, "api_version", None) == NOT_STATED else set()
    left_out = unstated.union(_LEFT_OUT)
    values = {name: value for name, value in asdict(attempt).items() if value is not None and name not in left_out}
    return ", ".join(f"{name} {printable(str(to_builtins(value)))}" for name, value in values.items()) or op_of(attempt)


def _produce_request(attempt: Produce, producer_id: int, epoch: int, first: int, count: int) -> str:
    sequences = _from_to("sequence", first, add_sequence(first, count - 1) if count > 1 else first)
    records = f"{count} {'record' if count == 1 else 'records'}"
    parts = [f"{records} of producer id {producer_id} epoch {epoch}, {sequences}"]
    if attempt.is_transactional:
        owner = attempt.transactional_id
        parts.append(
            "transactional, in a request without a transactional id"
            if owner is None
            else f"transactional as {printable(owner)}"
        )
    if attempt.acks == 0:
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


def _short(answer: Answer) -> str:
    """Return a short form of an answer: outcome, error code and name, offset, producer id and epoch given."""
    fields = answer.fields
    text = str(fields.get("outcome", "noted"))
    if fields.get("error", "NONE") != "NONE":
        text += f" with {fields['error_code']} {fields['error']}"
    if "base_offset" in fields:
        text += f" at offset {fields['base_offset']}"
    if fields.get("producer_epoch", -1) >= 0:
        text += f", producer id {fields['producer_id']} epoch {fields['producer_epoch']}"
    if "last_stable_offset" in fields:
        text += f", stable to {fields['last_stable_offset']} of {fields['high_watermark']}"
    return text


def _other_versions(answer: Answer, others: list[Answer]) -> Iterator[str]:
    """Yield the answers of all releases, consecutive releases with the same answer in one line."""
    spans: list[tuple[Version, Version, str]] = []
    for (_, versions), other in zip(profile_groups(), others, strict=True):
        text = _short(other)
        if spans and spans[-1][2] == text:
            spans[-1] = (spans[-1][0], versions[-1], text)
        else:
            spans.append((versions[0], versions[-1], text))
    yield ""
    if len(spans) == 1:
        yield "All versions answer the same."
        return
    yield "Other versions, given the same attempts from the beginning:"
    for first, last, text in spans:
        mark = "=" if text == _short(answer) else " "
        yield f"  {mark} {release_span(first, last):<22}{text}"
