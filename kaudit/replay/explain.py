"""Two explanations for people: one attempt told from before to after, and what sets the releases apart."""

from collections.abc import Iterable, Iterator

from kaudit.replay.answer import Answer
from kaudit.replay.attempts import Attempt
from kaudit.replay.broker import Broker
from kaudit.replay.profile import Profile, profile_for, profile_groups
from kaudit.replay.releases import CHANGES, RELEASES
from kaudit.replay.render import plain
from kaudit.replay.session import Session
from kaudit.replay.state import UNKNOWN, ProducerState
from kaudit.replay.version import Version


class NoSuchAttemptError(ValueError):
    """No attempt has the index asked for."""


def explain(lines: Iterable[str | bytes], index: int, profile: Profile | None) -> Iterator[str]:
    """Yield the lines that tell attempt `index`: state before, what came, the rule, state after, other versions.

    Raises AttemptError for bad lines up to it and NoSuchAttemptError when there is none.
    """
    session = Session(lines, Broker(profile))
    others = [Broker(other) for other, _ in profile_groups()]
    for attempt, answer in session.answered():
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
        yield "What came:"
        yield f"  {_what_came(attempt)}"
        yield f"Answer: {said(answer)}"
        yield f"Why: {plain(answer.why)}"
        if after == before:
            yield "Remembered afterwards: the same."
        else:
            yield "Remembered afterwards:"
            yield from _state(after, broker.profile)
    else:
        yield f"What came: {_what_came(attempt)}"
        yield f"Answer: {said(answer)}"
        yield f"Why: {plain(answer.why)}"


_TOLD = ("topic", "partition", "op", "index", "records_hex", "at")


def _what_came(attempt: Attempt) -> str:
    return ", ".join(f"{name} {plain(str(value))}" for name, value in attempt.items() if name not in _TOLD)


def _state(state: ProducerState, profile: Profile) -> Iterator[str]:
    if state == UNKNOWN:
        yield "  nothing"
        return
    transaction = f", transaction open since offset {state.current_txn_first_offset}" if state.in_transaction else ""
    yield f"  epoch {state.epoch}, coordinator epoch {state.coordinator_epoch}{transaction}"
    for batch in state.batches:
        yield (
            f"  sequences {batch.first_sequence(profile)} to {batch.last_sequence} "
            f"at offsets {batch.first_offset} to {batch.last_offset}"
        )
    if not state.batches:
        yield "  no batch"


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
        yield f"  {mark} {_span(first, last):<22}{words}"


def _span(first: Version, last: Version) -> str:
    if last == RELEASES[-1]:
        return f"{first} and later"
    return str(first) if first == last else f"{first} to {last}"


def list_profiles() -> Iterator[str]:
    """Yield the lines that say which releases share their rules, and what each group changed."""
    for number, (_, versions) in enumerate(profile_groups()):
        yield f"{_span(versions[0], versions[-1])}"
        if number == 0:
            yield "  the rules all others are described against"
        yield from what_changed(versions[0])


def what_changed(version: Version) -> Iterator[str]:
    """Yield what a release does differently from the one before it, with the source of each change."""
    position = RELEASES.index(version)
    if position == 0:
        return
    before, after = profile_for(RELEASES[position - 1]), profile_for(version)
    for switch in before.differences(after):
        sources = [
            change.source for change in CHANGES if change.switch == switch and version.includes_fix(*change.since)
        ]
        source = sources[-1] if sources else "not in this line"
        yield f"  {switch}: {_shown(getattr(before, switch))} -> {_shown(getattr(after, switch))}   ({source})"


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return getattr(value, "name", None) or ("none" if value is None else str(value))
