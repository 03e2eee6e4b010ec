"""What brokers log of the produce attempts they refuse, and how far attempts follow from that: tables in docs/log-messages.md.

Recomputed from the recordings in tests/data/server-logs by `python -m tests.conformance.server_logs docs/log-messages.md`.
"""

import json
import lzma
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from kaudit.audits.log_events.application_logs import log_events, log_lines
from kaudit.audits.log_events.clock import ClockOffset
from kaudit.broker.broker import Broker
from kaudit.broker.releases.version import Version
from kaudit.formats.application_log.pieces import LogCounts
from kaudit.model.application_logs import LogEvent
from kaudit.model.internal_topics import TRANSACTIONS
from kaudit.replay.reconstruction.account import LeftOut
from kaudit.replay.reconstruction.broker_logs import BrokerSettings
from kaudit.replay.reconstruction.reconstruct import (
    Evidence,
    Reconstruction,
)
from kaudit.replay.reconstruction.refusals import ERRORS, REFUSALS
from kaudit.replay.session import Session
from kaudit.report.text.generated_pages import write_section
from kaudit.source.discover import discover
from kaudit.source.layout import INTERNAL_TOPICS, furthest_replicas
from kaudit.source.schemes import open_segment
from tests.conformance.comparison import Json, replayed
from tests.unpacked import unpacked

DATA = Path(__file__).parents[1] / "data" / "server-logs"
TABLE_BEGIN = "<!-- refusals: written by python -m tests.conformance.server_logs docs/log-messages.md -->"
TABLE_END = "<!-- end of refusals -->"
ANSWERED_LATE_MS = 6_000
"""A recorder notes when it sent a batch; the broker logs it later, much later where it asks again while it is busy."""
BY_STATE = {error.name for errors in ERRORS.values() for error in errors}
"""What a broker answers because of what it remembers of a producer."""


class Refused(NamedTuple):
    """An attempt that a broker refused, for one partition: a produce attempt, or a marker.

    `error` is a name; where the broker hung up, that of kaudit's answer.
    """

    topic: str
    partition: int
    attempt: Json
    error: str
    at: int


class Recorded(NamedTuple):
    """One recording, unpacked below `home`."""

    version: str
    name: str
    folder: Path
    home: Path

    def lines(self, kind: str) -> list[Json]:
        """The attempts, or the answers to them."""
        with lzma.open(self.folder / f"{self.name}.{kind}.jsonl.xz", "rt") as lines:
            return [json.loads(line) for line in lines]

    @property
    def server_logs(self) -> list[str]:
        """The logs of all brokers."""
        return sorted(str(path) for path in self.home.rglob("logs/*.log*"))

    @property
    def log_directories(self) -> list[str]:
        """The log directories of all brokers."""
        return sorted(str(path) for path in self.home.rglob("data") if path.is_dir())


def recordings() -> list[tuple[str, str]]:
    """Version and name of every recording with server logs, oldest release first."""
    found = [(path.parent.name, path.name.partition(".")[0]) for path in DATA.glob("*/*.server-logs.tar.xz")]
    return sorted(found, key=lambda each: (Version.parse(each[0]), each[1]))


def recording(version: str, name: str, data: Path = DATA) -> Recorded:
    """Return one recording, unpacked, to be read."""
    folder = data / version
    home = unpacked(*(folder / f"{name}.{kind}.tar.xz" for kind in ("server-logs", "logdir")))
    return Recorded(version, name, folder, home)


_BATCH = ("topic", "partition", "producer_id", "producer_epoch", "base_sequence", "record_count")


def _batch(attempt: Json) -> tuple[str, int, *tuple[int, ...]]:
    topic, partition, *values = (attempt[name] for name in _BATCH)
    return (topic, partition, *values)


def _same(line: Json, offset: int, known: dict[tuple[str, int, *tuple[int, ...]], set[int | None]]) -> bool:
    """Whether the recorded broker appended this batch at this offset, as far as the recording shows."""
    offsets = known.get(_batch(line))
    return offsets is None or bool(offsets & {offset, None})


class Read:
    """What one recording holds: its events, its refusals and which belong together, and the attempts made of it."""

    def __init__(self, recorded: Recorded) -> None:
        self.recorded = recorded
        self.settings = BrokerSettings()
        self.events: list[LogEvent] = []
        for path in recorded.server_logs:
            self.events += log_events(path, "server", LogCounts())
            if "server.log" in path:
                self.settings.read(log_lines(path))
        self.reconstruction = self._reconstruction()
        self.made = list(self.reconstruction.lines())

    def _reconstruction(self) -> Reconstruction:
        layout = discover(self.recorded.log_directories)
        partitions = [one for one in furthest_replicas(layout.partitions) if one.topic not in INTERNAL_TOPICS]
        assert self.settings.version is not None
        evidence = Evidence(
            partitions,
            furthest_replicas(layout.partitions, (TRANSACTIONS,)),
            self.events,
            self.settings,
            self.settings.version,
        )
        return Reconstruction(evidence, open_segment)

    @cached_property
    def refused(self) -> list[Refused]:
        """What the broker refused, one for each partition."""
        attempts, answers = self.recorded.lines("attempts"), self.recorded.lines("answers")
        heard = replayed({**attempt, "acks": -1} if attempt.get("acks") == 0 else attempt for attempt in attempts)
        found: list[Refused] = []
        for attempt, answer, ours in zip(attempts, answers, heard, strict=True):
            if attempt["op"] == "produce":
                found += _refused(attempt, answer, ours.fields)
            elif attempt["op"] == "write_marker" and answer["outcome"] == "rejected":
                found.append(Refused(attempt["topic"], attempt["partition"], attempt, answer["error"], attempt["at"]))
        return found

    @cached_property
    def duplicates(self) -> int:
        """How many produce attempts were answered as duplicates."""
        return sum(answer.get("outcome") == "duplicate" for answer in self.recorded.lines("answers"))

    @cached_property
    def appended(self) -> dict[tuple[str, int, *tuple[int, ...]], set[int | None]]:
        """The base offsets of what the broker appended, by topic, partition and _BATCH; None where it answered without one."""
        found: dict[tuple[str, int, *tuple[int, ...]], set[int | None]] = {}
        for attempt, answer in zip(self.recorded.lines("attempts"), self.recorded.lines("answers"), strict=True):
            if answer.get("outcome") in ("appended", "no-response") and "producer_id" in attempt:
                found.setdefault(_batch(attempt), set()).add(answer.get("base_offset"))
        return found

    @cached_property
    def lines_of_refusals(self) -> list[LogEvent]:
        """The events of refused batches, of the brokers' own words about a partition."""
        logged = [event for event in self.events if event.event in REFUSALS and event.partition is not None]
        return sorted(logged, key=lambda event: (event.timestamp_ms or 0, event.path, event.line))

    @cached_property
    def matched(self) -> dict[int, LogEvent]:
        """The line of each refusal that has one, by its number in `refused`."""
        return match(self.refused, self.lines_of_refusals, self._to_utc)

    def _to_utc(self, event: LogEvent) -> int | None:
        logs = {path: log for log in self.reconstruction.logs for path in log.paths}
        log = logs[event.path]
        if event.timestamp_ms is None or not log.has_times:
            return None
        return log.batch_time(event)

    @cached_property
    def answered(self) -> list[tuple[Json, Json]]:
        """The lines that were made, each with kaudit's answer to it."""
        text = (json.dumps(line).encode() for line in self.made)
        answers = (answer.fields for _, answer in Session(text, Broker()).answered())
        return list(zip(self.made, answers, strict=True))


def _refused(attempt: Json, answer: Json, ours: Json) -> Iterator[Refused]:
    if answer["outcome"] == "connection-closed":
        answer = ours
    parts = [(attempt, answer)]
    parts += zip(attempt.get("other_partitions", ()), answer.get("other_partitions", ()), strict=False)
    for sent, answered in parts:
        if answered["outcome"] in ("rejected", "connection-closed"):
            place = {**attempt, **answered}
            error = answered.get("error", "connection closed")
            yield Refused(place["topic"], place["partition"], {**attempt, **sent}, error, attempt["at"])


def match(
    refused: list[Refused], events: Iterable[LogEvent], to_utc: Callable[[LogEvent], int | None]
) -> dict[int, LogEvent]:
    """Give each refusal its line: of the same partition, with the values the line states, both in their order.

    Of all ways to do so, one that leaves the fewest without.
    """
    asked: dict[tuple[str, int], list[int]] = {}
    for number, one in enumerate(refused):
        asked.setdefault((one.topic, one.partition), []).append(number)
    logged: dict[tuple[str, int], list[LogEvent]] = {}
    for event in events:
        logged.setdefault((event.topic or "", event.partition or 0), []).append(event)
    found: dict[int, LogEvent] = {}
    for place, numbers in asked.items():
        lines = logged.get(place, [])
        fits = [[_fits(refused[number], event, to_utc(event)) for event in lines] for number in numbers]
        found |= {numbers[row]: lines[column] for row, column in _in_order(fits)}
    return found


def _in_order(fits: list[list[bool]]) -> Iterator[tuple[int, int]]:
    """Yield as many (row, column) as possible that fit and ascend in both."""
    columns = len(fits[0]) if fits else 0
    most = [[0] * (columns + 1) for _ in range(len(fits) + 1)]
    for row in range(len(fits) - 1, -1, -1):
        for column in range(columns - 1, -1, -1):
            without = max(most[row + 1][column], most[row][column + 1])
            most[row][column] = max(without, most[row + 1][column + 1] + 1) if fits[row][column] else without
    row = column = 0
    while row < len(fits) and column < columns:
        if fits[row][column] and most[row][column] == most[row + 1][column + 1] + 1:
            yield row, column
            row, column = row + 1, column + 1
        elif most[row + 1][column] >= most[row][column + 1]:
            row += 1
        else:
            column += 1


def _fits(refused: Refused, event: LogEvent, at: int | None) -> bool:
    sent = refused.attempt
    if at is not None and not -1_000 <= at - refused.at <= ANSWERED_LATE_MS:
        return False
    if event.event in ERRORS:
        names = {error.name for error in ERRORS[event.event]}
        if refused.error not in names:
            return False
    elif refused.error in BY_STATE:
        return False
    stated = ("producer_id", "producer_epoch", "base_sequence")
    return all(getattr(event, name) in (None, sent.get(name)) for name in stated if sent.get(name) is not None)


class Figures(NamedTuple):
    """What one recording comes to.

    `refused` and `logged` are produce attempts by error, all and those with a line, `duplicates` those that were answered as
    such. Of the lines about refused batches `lines` there are, `matched` belong to an attempt, a marker's included. Of the
    refusals by producer state that have a line, `remade` are in the attempts file and answered with the same error, `lost`
    speak of offsets that a later leader does not have. Of `accepted` lines `appended` are answered so, at the recorded offset.
    """

    refused: Counter[str]
    logged: Counter[str]
    duplicates: int
    lines: int
    matched: int
    remade: int
    lost: int
    accepted: int
    appended: int
    clocks: list[ClockOffset | None]
    """Of each broker's logs."""

    @property
    def by_state(self) -> int:
        """Refusals by producer state that have a line."""
        return sum(count for error, count in self.logged.items() if error in BY_STATE)


def figures(version: str, name: str, data: Path = DATA) -> Figures:
    """Read one recording, match it, make its attempts, and replay them."""
    recorded = recording(version, name, data)
    read = Read(recorded)
    refused: Counter[str] = Counter()
    logged: Counter[str] = Counter()
    remade = 0
    answered = {line.get("source"): answer for line, answer in read.answered}
    for number, one in enumerate(read.refused):
        if one.attempt["op"] != "produce":
            continue
        refused[one.error] += 1
        event = read.matched.get(number)
        if event is not None:
            logged[one.error] += 1
            answer = answered.get(f"{event.path}:{event.line}", {})
            remade += one.error in BY_STATE and answer.get("error") == one.error
    accepted = [(line, answer) for line, answer in read.answered if line.get("recorded") == "appended"]
    known = read.appended
    return Figures(
        refused,
        logged,
        read.duplicates,
        len(read.lines_of_refusals),
        len(read.matched),
        remade,
        read.reconstruction.account.left_out.get(LeftOut.LOST, Counter()).total(),
        len(accepted),
        sum(answer["outcome"] == "appended" and _same(line, answer["base_offset"], known) for line, answer in accepted),
        [
            log.clock.offsets[0] if log.clock and log.has_times and log.clock.offsets else None
            for log in read.reconstruction.logs
        ],
    )


def by_release() -> dict[str, list[Figures]]:
    """The figures of every recording, by release."""
    found: dict[str, list[Figures]] = {}
    for version, name in recordings():
        found.setdefault(version, []).append(figures(version, name))
    return found


_COLUMNS = {
    "OUT_OF_ORDER_ SEQUENCE_NUMBER": ("OUT_OF_ORDER_SEQUENCE_NUMBER",),
    "INVALID_ PRODUCER_EPOCH": ("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"),
    "UNKNOWN_ PRODUCER_ID": ("UNKNOWN_PRODUCER_ID",),
    "INVALID_ TXN_STATE": ("INVALID_TXN_STATE",),
    "TRANSACTION_ ABORTABLE": ("TRANSACTION_ABORTABLE",),
    "INVALID_RECORD, CORRUPT_MESSAGE": ("INVALID_RECORD", "CORRUPT_MESSAGE"),
}


def table() -> Iterator[str]:
    """Lines of both tables in Markdown."""
    found = by_release()
    headings = [*_COLUMNS, "other errors", "duplicates"]
    yield f"| release | {' | '.join(headings)} |"
    yield "|---" * (len(headings) + 1) + "|"
    named = {error for errors in _COLUMNS.values() for error in errors}
    for version, read in found.items():
        refused = Counter(error for one in read for error in one.refused.elements())
        logged = Counter(error for one in read for error in one.logged.elements())
        cells = []
        for errors in (*_COLUMNS.values(), set(refused) - named):
            count = sum(refused[error] for error in errors)
            cells.append(f"{sum(logged[error] for error in errors)} of {count}" if count else "")
        yield f"| {version} | {' | '.join(cells)} | 0 of {sum(one.duplicates for one in read)} |"
    yield ""
    yield "| release | lines of refused batches | matched | refusals by producer state | lost with their offsets | same error in replay | accepted batches | appended in replay |"
    yield "|---|---|---|---|---|---|---|---|"
    everything = [one for read in found.values() for one in read]
    for version, read in [*found.items(), ("all", everything)]:
        lines, matched, by_state, lost, remade, accepted, appended = (
            sum(getattr(one, name) for one in read)
            for name in ("lines", "matched", "by_state", "lost", "remade", "accepted", "appended")
        )
        yield (
            f"| {version} | {lines:,} | {_share(matched, lines)} | {by_state:,} | {lost or ''} "
            f"| {_share(remade, by_state - lost)} | {accepted:,} | {_share(appended, accepted)} |"
        )


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.4g} %"


def write_table(page: Path) -> None:
    """Put the tables into a page, between the two comments that mark their place."""
    write_section(page, TABLE_BEGIN, TABLE_END, "\n".join(table()))


if __name__ == "__main__":
    write_table(Path(sys.argv[1]))
