"""`--output-format chrome-trace`: the Trace Event format in its JSON object form, for ui.perfetto.dev and chrome://tracing.

A partition replica is a process, a producer id in one epoch a thread. Runs are slices ("X"), within a slice of their
transaction if they have one; markers, missing offsets and findings are instants ("i"). Times are the log's, in microseconds; an event
without a time is placed at the end of the event before it. `args` hold what the log says.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from msgspec import Struct, field

from kaudit import __version__
from kaudit.model.finding import Finding
from kaudit.model.json_record import rfc3339
from kaudit.model.result import ScanResult, TimelineResult
from kaudit.model.timeline import RUN, Entry, FindingEntry, Histories, HistoryRow, MissingEntry
from kaudit.report.console import visible
from kaudit.report.lanes import with_epochs
from kaudit.report.render_options import RenderOptions
from kaudit.report.text.formatting import timestamp_of
from kaudit.report.text.history_cells import event


class Slice(Struct):
    """An event from `start` to `end` (microseconds); `inner` holds the events during it."""

    name: str
    category: str
    start: int
    end: int
    args: Mapping[str, object] = field(default_factory=dict)
    inner: list["Slice"] = field(default_factory=list)

    @property
    def least(self) -> int:
        """The microseconds it takes at least: one for each slice in it."""
        return max(len(self.inner), 1)


def arranged(slices: Sequence[Slice], first: int = 0, last: int | None = None) -> Iterator[Slice]:
    """Yield the slices by start, each followed by its inner ones, all within `first` to `last` (microseconds); none overlap partly.

    A slice ends where the next begins at the latest, and lasts at least 1 microsecond, so that batches of one ms do not
    overlap. There must be room for that.
    """
    ordered = sorted(slices, key=lambda one: one.start)
    room = sum(one.least for one in ordered)
    at = first
    for one, following in pairwise([*ordered, None]):
        assert one is not None
        start = max(one.start, at) if last is None else min(max(one.start, at), last - room)
        limit = last if following is None else following.start
        end = max(one.end if limit is None else min(one.end, limit), start + one.least)
        room -= one.least
        at = end if last is None else min(end, last - room)
        yield Slice(one.name, one.category, start, at, one.args)
        yield from arranged(one.inner, start, at)


_LARGEST_EXACT = 2**53 - 1
"""The largest integer that a browser represents exactly."""
_LATEST_MS = _LARGEST_EXACT // 1000
_Event = dict[str, object]
_Place = tuple[str | None, int | None, str | None]
"""Topic, partition and replica; the topic is None for findings about no partition."""


def render_timeline(result: TimelineResult, options: RenderOptions) -> Iterator[str]:
    """Yield the trace of the timelines and of all findings, an event a line."""
    scan = result.scan
    about = {
        "tool": f"kaudit {__version__}",
        "inputs": list(scan.inputs),
        "incomplete": scan.incomplete,
        "not_audited": [item.to_dict() for item in scan.not_audited],
        "omitted_findings": scan.summary.omitted,
        **({} if options.run is None else {"run": dict(options.run)}),
    }
    yield f'{{"displayTimeUnit": "ms",\n"otherData": {json.dumps(about, sort_keys=True)},\n"traceEvents": ['
    separator = "\n"
    for one in _events(result):
        yield separator + json.dumps(one)
        separator = ",\n"
    yield "\n]}\n"


def render_scan(result: ScanResult, options: RenderOptions) -> Iterator[str]:
    """Yield the trace of the findings: only a timeline has runs."""
    yield from render_timeline(TimelineResult(result, ()), options)


class _Thread(NamedTuple):
    """A producer id in one epoch in one partition replica; without a producer id: the events of no producer."""

    place: _Place
    producer_id: int | None
    epoch: object


class _Numbers(Struct):
    """Numbers of processes and threads, all different: viewers take a thread with its process's number for the main thread."""

    processes: dict[_Place, int] = field(default_factory=dict)
    threads: dict[_Thread, int] = field(default_factory=dict)

    def named(self, thread: _Thread, transactional_id: str | None) -> Iterator[_Event]:
        """Yield the events that name the thread and its process, the first time."""
        if thread.place not in self.processes:
            pid = self.processes[thread.place] = self._next()
            yield {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": _process_name(thread.place)}}
        if thread not in self.threads:
            tid = self.threads[thread] = self._next()
            own = self.of(thread)
            yield {"ph": "M", "name": "thread_name", **own, "args": {"name": _thread_name(thread, transactional_id)}}
            yield {"ph": "M", "name": "thread_sort_index", **own, "args": {"sort_index": tid}}

    def of(self, thread: _Thread) -> _Event:
        """Return the numbers of a thread that has been named."""
        return {"pid": self.processes[thread.place], "tid": self.threads[thread]}

    def _next(self) -> int:
        return len(self.processes) + len(self.threads) + 1


def _events(result: TimelineResult) -> Iterator[_Event]:
    numbers = _Numbers()
    times = (each.rows[name] for each in result.histories for name in ("min_timestamp", "max_timestamp"))
    placed = (some[(some >= 0) & (some <= _LATEST_MS)] for some in times)
    origin = min((int(some.min()) * 1000 for some in placed if len(some)), default=0)
    found_at: dict[tuple[_Place, str], int] = {}
    for histories in result.histories:
        for producer_id, entries in histories.timelines():
            yield from _TimelineEvents(histories, producer_id, numbers, found_at, origin, origin).events(entries)
    for finding in result.scan.findings:
        place = (finding.topic, finding.partition, finding.replica)
        known = timestamp_of(finding)
        time = (
            known * 1000
            if known is not None and known <= _LATEST_MS
            else found_at.get((place, finding.fingerprint), origin)
        )
        thread = _Thread(place, finding.producer_id, finding.producer_epoch)
        yield from numbers.named(thread, None)
        yield _instant(f"{finding.code} {finding.name}", "finding", time, numbers.of(thread), _finding_args(finding))


class _TimelineEvents(Struct):
    """One producer id's events. `start` and `end` (microseconds) are those of the latest run or marker.

    Records the times of findings in `found_at`.
    """

    histories: Histories
    producer_id: int
    numbers: _Numbers
    found_at: dict[tuple[_Place, str], int]
    start: int
    end: int
    slices: dict[_Thread, list[Slice]] = field(default_factory=dict)
    transaction: Slice | None = None

    def events(self, entries: Iterable[Entry]) -> Iterator[_Event]:
        """Yield the events: instants as they come, then the slices of each thread by time."""
        place, name = self.histories.place, self.histories.transactional_ids.get(self.producer_id)
        for entry, epoch in with_epochs(entries):
            thread = _Thread(place, self.producer_id, epoch)
            if isinstance(entry, HistoryRow):
                self.start, self.end = _span(entry) or (self.end, self.end)
                yield from self.numbers.named(thread, name)
            match entry:
                case FindingEntry():
                    self.found_at[place, entry.fingerprint] = self.start
                case HistoryRow() if entry.row == RUN:
                    self._run(entry, self.slices.setdefault(thread, []))
                case HistoryRow():
                    if self.transaction is not None:
                        self.transaction.end, self.transaction = max(self.transaction.end, self.end), None
                    yield _instant(event(entry), "marker", self.start, self.numbers.of(thread), _args(entry))
                case MissingEntry() if epoch is not None:
                    yield _instant("missing", "missing", self.end, self.numbers.of(thread), _args(entry))
        for thread, slices in self.slices.items():
            for one in arranged(slices):
                span = {"ts": one.start, "dur": one.end - one.start, **self.numbers.of(thread)}
                yield {"ph": "X", "name": one.name, "cat": one.category, **span, "args": _exact(one.args)}

    def _run(self, entry: HistoryRow, slices: list[Slice]) -> None:
        run = Slice(event(entry), "run", self.start, self.end, _args(entry))
        args = entry.transaction
        if args is None:
            slices.append(run)
            return
        if self.transaction is None or self.transaction.args != args:
            name = f"transaction {args['outcome']}"
            self.transaction = Slice(name, "transaction", self.start, self.end, args)
            slices.append(self.transaction)
        self.transaction.inner.append(run)
        self.transaction.end = max(self.transaction.end, self.end)


def _finding_args(finding: Finding) -> Mapping[str, object]:
    fields = finding.to_dict()
    names = ("severity", "confidence", "message", "offset", "last_offset", "status", "fingerprint")
    return {name: fields[name] for name in names if fields[name] is not None}


def _instant(name: str, category: str, time: int, numbers: _Event, args: Mapping[str, object]) -> _Event:
    return {"ph": "i", "name": name, "cat": category, "ts": time, "s": "t", **numbers, "args": _exact(args)}


def _span(entry: HistoryRow) -> tuple[int, int] | None:
    """Return first and last time in microseconds, None where the log has none or one that no trace can hold."""
    known = [time * 1000 for time in (entry.min_timestamp, entry.max_timestamp) if 0 <= time <= _LATEST_MS]
    return (min(known), max(known)) if known else None


def _process_name(place: _Place) -> str:
    topic, partition, replica = place
    name = "no partition" if topic is None else visible(topic if partition is None else f"{topic}-{partition}")
    return f"{name} ({visible(replica)})" if replica else name


def _thread_name(thread: _Thread, transactional_id: str | None) -> str:
    if thread.producer_id is None:
        return "no producer"
    name = f"producer {thread.producer_id}" + ("" if thread.epoch is None else f" epoch {thread.epoch}")
    return name if transactional_id is None else f"{name} {visible(transactional_id)}"


def _args(entry: Entry) -> Mapping[str, object]:
    """Return the entry's fields, timestamps as people read them."""
    return {
        name: rfc3339(value) or value if name.endswith("timestamp") and isinstance(value, int) and value >= 0 else value
        for name, value in entry.to_dict().items()
        if name not in {"kind", "transaction"}
    }


def _exact(args: Mapping[str, object]) -> Mapping[str, object]:
    """Write numbers that a browser would round as text, and make text visible."""
    return {name: _shown(value) for name, value in args.items()}


def _shown(value: object) -> object:
    if isinstance(value, int) and abs(value) > _LARGEST_EXACT:
        return str(value)
    return visible(value) if isinstance(value, str) else value
