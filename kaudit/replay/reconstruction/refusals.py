"""Turns a refusal in a server log into the attempt that was refused: fields its line states, and fields that are assumed."""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import product
from typing import Any

from kaudit.broker.errors import KafkaError
from kaudit.broker.producer_state.producer_state_entry import ProducerStateEntry
from kaudit.model.application_logs import LogEvent, LogEventKind
from kaudit.model.batch_fields import NO_PRODUCER_EPOCH
from kaudit.model.sequence import next_sequence

Line = dict[str, Any]
OF_MARKERS = "epoch-of-marker-smaller"
"""The pattern of a refused marker that has words of its own; other releases refuse markers and batches in the same words."""
_NEVER_FIRST = 1
_COUNTS = range(1, 7)
"""Record counts to try: more than a broker remembers batches, so that at least one makes no duplicate."""
ERRORS = {
    LogEventKind.OUT_OF_ORDER_SEQUENCE: frozenset({KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER}),
    LogEventKind.INVALID_PRODUCER_EPOCH: frozenset({KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED}),
    LogEventKind.FENCED_PRODUCER: frozenset({KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED}),
    LogEventKind.UNKNOWN_PRODUCER_ID: frozenset({KafkaError.UNKNOWN_PRODUCER_ID}),
    LogEventKind.DUPLICATE_SEQUENCE: frozenset({KafkaError.DUPLICATE_SEQUENCE_NUMBER}),
    LogEventKind.INVALID_TXN_STATE: frozenset({KafkaError.INVALID_TXN_STATE}),
    LogEventKind.TRANSACTION_COORDINATOR_FENCED: frozenset({KafkaError.TRANSACTION_COORDINATOR_FENCED}),
}
"""Refusals by producer state, and the errors they are answered with."""
REFUSALS = frozenset({*ERRORS, LogEventKind.RECORD_REJECTED, LogEventKind.INVALID_PRODUCER_ID_MAPPING})
"""All refusals of a batch in a partition."""


def possible_producer(
    event: LogEvent, states: Mapping[int, ProducerStateEntry], epochs: Mapping[int, AbstractSet[int]]
) -> int | None:
    """Return the producer id a refusal is of: the line's, else one that the line fits, None where none does.

    Of the producers that are remembered it is the one that wrote last; else one with this epoch that is not remembered,
    where `epochs` has what all producers of the log have at any time. Brokers before 2.8 name no producer id with most
    refusals of an epoch.
    """
    if event.producer_id is not None:
        return event.producer_id
    fitting = [producer_id for producer_id, state in states.items() if _fits(event, state)]
    if fitting:
        return max(fitting, key=lambda producer_id: (states[producer_id].last_offset, producer_id))
    forgotten = [producer_id for producer_id, state in states.items() if says_forgotten(event, state)]
    strangers = [producer_id for producer_id in epochs if producer_id not in states]
    if not (forgotten or _of_unknown(event)):
        return None
    return max(strangers or forgotten, key=lambda one: (event.producer_epoch in epochs.get(one, ()), one), default=None)


def says_forgotten(event: LogEvent, state: ProducerStateEntry) -> bool:
    """Whether a line says that the broker does not remember a producer; `state` is what follows from the log."""
    if event.event is LogEventKind.UNKNOWN_PRODUCER_ID:
        return True
    return _is_new_epoch(event) and state.epoch == event.producer_epoch and not state.in_transaction


def _is_new_epoch(event: LogEvent) -> bool:
    """Whether a line says that an epoch is new, which it is to a producer that is not remembered too."""
    stated = event.producer_epoch is not None and event.last_sequence is None
    return event.event is LogEventKind.OUT_OF_ORDER_SEQUENCE and stated


def _of_unknown(event: LogEvent) -> bool:
    return _is_new_epoch(event) or event.expected_epoch == NO_PRODUCER_EPOCH


def _fits(event: LogEvent, state: ProducerStateEntry) -> bool:
    if event.event in (LogEventKind.FENCED_PRODUCER, LogEventKind.INVALID_PRODUCER_EPOCH):
        return event.expected_epoch is not None and state.epoch == event.expected_epoch
    if _is_new_epoch(event):
        assert event.producer_epoch is not None
        return NO_PRODUCER_EPOCH < state.epoch < event.producer_epoch
    return False


def candidates(event: LogEvent, producer_id: int, state: ProducerStateEntry) -> Iterator[tuple[Line, list[str]]]:
    """Yield what may have been sent, likeliest first, with the names of the fields that are assumed.

    `state` is what the broker remembers of the producer then. Assumed are the smallest batch and the epoch and sequence
    that the rules need to get as far as this refusal.
    """
    if event.event is LogEventKind.TRANSACTION_COORDINATOR_FENCED or event.pattern == OF_MARKERS:
        yield from _markers(event, producer_id, state)
        return
    assumed = ["record_count", "is_transactional"]
    for name in ("producer_id", "producer_epoch", "base_sequence"):
        assumed += [name] if getattr(event, name) is None else []
    epochs = _epochs(state) if event.producer_epoch is None else (event.producer_epoch,)
    sequences = _sequences(state) if event.base_sequence is None else (event.base_sequence,)
    transactional = state.in_transaction and event.event is not LogEventKind.INVALID_TXN_STATE
    for flag, epoch, sequence, count in product((transactional, not transactional), epochs, sequences, _COUNTS):
        yield (
            {
                "op": "produce",
                "producer_id": producer_id,
                "producer_epoch": epoch,
                "base_sequence": sequence,
                "record_count": count,
                "is_transactional": flag,
            },
            assumed,
        )


def _sequences(state: ProducerStateEntry) -> tuple[int, ...]:
    """One that a producer nobody remembers cannot begin with, and the next one of a producer that is remembered."""
    return (_NEVER_FIRST, next_sequence(state.last_sequence)) if state.batches else (_NEVER_FIRST,)


def _epochs(state: ProducerStateEntry) -> tuple[int, ...]:
    if state.epoch == NO_PRODUCER_EPOCH:
        return (0,)
    return (state.epoch, state.epoch + 1, max(state.epoch - 1, 0))


def _markers(event: LogEvent, producer_id: int, state: ProducerStateEntry) -> Iterator[tuple[Line, list[str]]]:
    known = event.coordinator_epoch is not None
    coordinator_epoch = event.coordinator_epoch if known else max(state.coordinator_epoch, 0)
    epoch = max(state.epoch, 0) if event.producer_epoch is None else event.producer_epoch
    yield (
        {
            "op": "write_marker",
            "producer_id": producer_id,
            "producer_epoch": epoch,
            "commit": False,
            "coordinator_epoch": coordinator_epoch,
        },
        [
            "commit",
            *([] if known else ["coordinator_epoch"]),
            *([] if event.producer_epoch is not None else ["producer_epoch"]),
        ],
    )


def expected_by(event: LogEvent) -> Line:
    """Return the sequence that the broker waited for, as `expected_sequence`; nothing where the line names none."""
    expected = event.expected_sequence if event.last_sequence is None else next_sequence(event.last_sequence)
    return {} if expected is None else {"expected_sequence": expected}


def agrees(event: LogEvent, state: ProducerStateEntry, log_end: int) -> bool:
    """Whether what the line says of the broker's state is what the broker's rules remember then."""
    stated = (
        (event.last_sequence, state.last_sequence),
        (event.expected_epoch, state.epoch),
        (event.offset, log_end),
    )
    return all(value is None or value == known for value, known in stated)
