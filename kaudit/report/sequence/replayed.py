"""The page of a replay: attempts as steps between clients and the broker, each with its answer, the rule and the window.

A file of attempts may be of any length. Of a short one all rows are kept, of a longer one its beginning and the rows around
refusals and duplicates; the page says how many are left out.
"""

from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from kaudit import __version__
from kaudit.broker.attempts import (
    Attempt,
    ConfigureTopic,
    DeleteRecords,
    Describe,
    FollowerRestart,
    LeaderChange,
    Produce,
    Restart,
    StartBroker,
    Wait,
)
from kaudit.broker.broker import Broker
from kaudit.broker.producer_state.append_result import Outcome
from kaudit.broker.producer_state.producer_state_entry import ProducerStateEntry
from kaudit.broker.releases.profile import Profile
from kaudit.broker.response import Answer, Ruling
from kaudit.report.html.page_model import LeftOut
from kaudit.report.sequence.decisions import REFUSALS, BatchHistory, Interned, decision, short_reason, window
from kaudit.report.sequence.html import fitting_page
from kaudit.report.sequence.page_model import (
    Lane,
    SequencePage,
    State,
    Step,
    Tone,
    Window,
)
from kaudit.report.text.answers import answer_text, request_text
from kaudit.simulate.trace import BrokerAnswer, Transaction

MOST_STEPS = 1_000
_BEGINNING = 20
"""Attempts shown from the beginning of a longer file."""
_BEFORE, _AFTER = 6, 2
"""Attempts of the same partition shown before and after one that is refused or a duplicate."""
_PARTITIONS = 512
"""Partitions whose last attempts are kept: the most recently used."""
_CLIENTS = 40
_OTHERS = "other producers"
_PRODUCERS = 5
"""Producers of a partition shown after what happened to its broker."""
_RESTARTS = (Restart, LeaderChange, FollowerRestart)
_FAULTS = (*_RESTARTS, StartBroker)
_PROBLEMS = frozenset({"refused", "duplicate", "fault"})
_QUIET = (Describe, Wait, ConfigureTopic, DeleteRecords)


class _Row(NamedTuple):
    """An attempt that may be shown; `place` counts all from 0, `place_here` those of its partition."""

    place: int
    place_here: int
    partition: str
    tone: Tone
    attempt: Attempt
    answer: Answer
    profile: Profile
    remembered: Sequence[tuple[int, ProducerStateEntry]]
    transaction: Transaction | None

    @property
    def client(self) -> str:
        return _client(self.attempt)

    @property
    def text(self) -> str:
        return ": ".join(filter(None, (request_text(self.attempt), answer_text(self.answer))))


class ReplayDiagram:
    """Takes every attempt with its answer, and keeps the rows that the page shows: memory does not grow with the file."""

    def __init__(self, broker: Broker, most: int = MOST_STEPS) -> None:
        self._broker = broker
        self._most = most
        self._attempts = 0
        self._in_partition: Counter[str] = Counter()
        self._outcomes: Counter[str] = Counter()
        self._first: list[_Row] = []
        self._around: dict[int, _Row] = {}
        self._last: OrderedDict[str, deque[_Row]] = OrderedDict()
        self._following: dict[str, int] = {}
        self._left_out_problems = 0

    def add(self, attempt: Attempt, answer: Answer) -> None:
        """Take the next attempt, which the broker has just answered; the bytes it sent are dropped."""
        if isinstance(attempt, Produce):
            attempt.records_hex = attempt.batches = attempt.other_partitions = None
        partition = _partition(attempt)
        outcome, error = _outcome(answer)
        tone = _tone(attempt, outcome)
        place, place_here = self._attempts, self._in_partition[partition]
        remembered, transaction = self._remembered(attempt, answer), self._transaction(attempt)
        row = _Row(place, place_here, partition, tone, attempt, answer, self._broker.profile, remembered, transaction)
        self._attempts = place + 1
        self._in_partition[partition] = place_here + 1
        self._outcomes[error or outcome] += 1
        if place <= self._most:
            self._first.append(row)
        before = self._last.get(partition)
        if before is None:
            before = self._last[partition] = deque(maxlen=_BEFORE)
            if len(self._last) > _PARTITIONS:
                self._last.popitem(last=False)
        else:
            self._last.move_to_end(partition)
        if tone in _PROBLEMS or self._following:
            self._select(row, before)
        before.append(row)

    def _select(self, row: _Row, before: Iterable[_Row]) -> None:
        has_room = len(self._around) < self._most - _BEGINNING
        partition = row.partition
        if row.tone in _PROBLEMS:
            if has_room:
                self._around.update((kept.place, kept) for kept in (*before, row))
                self._following[partition] = _AFTER
            else:
                self._left_out_problems += 1
        elif partition in self._following:
            self._around[row.place] = row
            self._following[partition] -= 1
            if not self._following[partition] or not has_room:
                del self._following[partition]

    def _remembered(self, attempt: Attempt, answer: Answer) -> Sequence[tuple[int, ProducerStateEntry]]:
        if answer.producer is not None:
            producer_id, _, after = answer.producer
            return ((producer_id, after),)
        if isinstance(attempt, _RESTARTS):
            return list(self._broker.remembered((attempt.topic, attempt.partition)).items())[-_PRODUCERS:]
        return ()

    def _transaction(self, attempt: Attempt) -> Transaction | None:
        transactional_id: str | None = getattr(attempt, "transactional_id", None)
        known = None if transactional_id is None else self._broker.transaction(transactional_id)
        if known is None or transactional_id is None:
            return None
        partitions = tuple(f"{topic}-{number}" for topic, number in known.partitions)
        return Transaction(
            transactional_id,
            str(known.producer_id),
            known.epoch,
            known.state.label,
            partitions,
            known.started_at,
            known.timeout_ms,
        )

    def html(self, title: str, command: str) -> str:
        """Return the page as text, with as many attempts as fit into it."""
        return fitting_page(partial(self.page, title, command), MOST_STEPS)

    # -- the page ----------------------------------------------------------------------------------------------------
    def page(self, title: str, command: str, most: int | None = None) -> SequencePage:
        """Return the page of everything that was kept, or of its first `most` attempts."""
        rows = (self._first if self._attempts <= self._most else self._chosen())[:most]
        versions = {str(row.profile.version) for row in rows}
        broker = f"broker {versions.pop()}" if len(versions) == 1 else "broker"
        clients = list(dict.fromkeys(row.client for row in rows if row.client))
        lanes = [*(Lane(name, "client") for name in clients[:_CLIENTS])]
        if len(clients) > _CLIENTS:
            lanes.append(Lane(_OTHERS, "client"))
        lanes.append(Lane(broker, "broker"))
        windows: Interned[Window] = Interned()
        transactions: Interned[Transaction] = Interned()
        return SequencePage(
            title,
            "What the broker would have answered to each attempt, by the rules of its release.",
            command,
            f"kaudit {__version__}",
            self._facts(),
            max((row.profile.window for row in rows), default=1),
            lanes,
            list(self._steps(rows, lanes, windows, transactions)),
            windows.items,
            (),
            (),
            transactions.items,
            list(self._left_out(len(rows))),
            "attempt",
        )

    def _chosen(self) -> list[_Row]:
        chosen = {row.place: row for row in self._first[:_BEGINNING]} | self._around
        return [chosen[place] for place in sorted(chosen)]

    def _facts(self) -> Sequence[tuple[str, str]]:
        counts = [(name, f"{count:,}") for name, count in self._outcomes.most_common()]
        return [("attempts", f"{self._attempts:,}"), *counts]

    def _left_out(self, shown: int) -> Iterator[LeftOut]:
        if self._attempts > shown:
            problems = f", {self._left_out_problems:,} of them refusals, duplicates or faults"
            what = f"attempts{problems if self._left_out_problems else ''}"
            yield LeftOut(what, self._attempts - shown, "--output-format table lists every one")

    def _steps(
        self,
        rows: Sequence[_Row],
        lanes: Sequence[Lane],
        windows: Interned[Window],
        transactions: Interned[Transaction],
    ) -> Iterator[Step]:
        places = {lane.name: place for place, lane in enumerate(lanes)}
        broker = len(lanes) - 1
        began = next((row.attempt.at for row in rows if row.attempt.at is not None), 0)
        history = _RowHistories(complete=self._attempts == len(rows))
        before, before_here = -1, Counter({row.partition: -1 for row in rows})
        for row in rows:
            client, when = row.client, row.attempt.at
            source = places.get(client, places.get(_OTHERS, broker)) if client else broker
            decided = BrokerAnswer(row.partition, row.answer)
            at = None if when is None else when - began
            yield Step(
                row.answer.attempt,
                row.place - before - 1,
                row.place_here - before_here[row.partition] - 1,
                at,
                at,
                source,
                broker,
                "request",
                row.tone,
                row.text,
                short_reason(decided) if row.tone == "refused" else "",
                (row.partition,) if row.partition else (),
                None if row.answer.producer is None else str(row.answer.producer[0]),
                [decision(decided, row.profile, windows, history.of(row))] if "outcome" in row.answer.fields else [],
                State(
                    windows=[
                        windows.place(window(row.partition, producer_id, entry, row.profile))
                        for producer_id, entry in row.remembered
                    ],
                    transactions=[]
                    if row.transaction is None
                    else [transactions.place(_since(row.transaction, began))],
                ),
            )
            before, before_here[row.partition] = row.place, row.place_here


def _since(transaction: Transaction, began: int) -> Transaction:
    """Return a transaction with its start relative to the first attempt, as all times of the page are."""
    started = transaction.started_at
    return transaction if started is None else replace(transaction, started_at=started - began)


class _RowHistories:
    """The earlier histories of batches, only where no attempt is left out that could have changed them."""

    def __init__(self, *, complete: bool) -> None:
        self._complete = complete
        self._histories: dict[Profile, BatchHistory] = {}

    def of(self, row: _Row) -> str:
        """Return the earlier history of the row's batch, and record the changes of the row."""
        if not self._complete:
            return ""
        history = self._histories.setdefault(row.profile, BatchHistory(row.profile, "attempt"))
        text = (
            "" if row.answer.producer is None else history.of((row.partition, row.answer.producer[0]), row.answer, ())
        )
        for producer_id, entry in row.remembered:
            history.follow((row.partition, producer_id), entry, row.answer.attempt)
        return text


def _client(attempt: Attempt) -> str:
    """Return the client that made an attempt; empty for an event of the broker."""
    if isinstance(attempt, (*_FAULTS, *_QUIET)):
        return ""
    name = getattr(attempt, "transactional_id", None)
    if name:
        return str(name)
    producer_id = getattr(attempt, "producer_id", None)
    return "a producer" if producer_id is None else f"producer id {producer_id}"


def _partition(attempt: Attempt) -> str:
    """Return the partition of an attempt, the topic for its configuration; empty for the broker."""
    if isinstance(attempt, StartBroker):
        return ""
    return attempt.topic if isinstance(attempt, ConfigureTopic) else f"{attempt.topic}-{attempt.partition}"


def _outcome(answer: Answer) -> tuple[str, str]:
    """Return an answer's outcome and error, empty for none."""
    if isinstance(answer, Ruling):  # its fields would be made for this
        result = answer.result
        return result.outcome.value, result.error.name if result.error else ""
    error = str(answer.fields.get("error", "NONE"))
    return str(answer.fields.get("outcome", "ok")), "" if error == "NONE" else error


def _tone(attempt: Attempt, outcome: str) -> Tone:
    if outcome in REFUSALS:
        return "refused"
    if outcome == Outcome.DUPLICATE.value:
        return "duplicate"
    if isinstance(attempt, _FAULTS):
        return "fault"
    return "note" if isinstance(attempt, _QUIET) else "ok"
