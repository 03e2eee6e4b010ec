"""Runs `kaudit attempts`: reads segments and server logs, and writes the attempts that they show."""

import multiprocessing
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from itertools import islice

import msgspec
from msgspec.structs import replace

from kaudit.audits.log_events.application_logs import GivenLogs, given_logs, log_events, log_lines
from kaudit.broker.releases.profile import UnknownVersionError, profile_for
from kaudit.cli.exits import ExitCode, FailOn, exit_code
from kaudit.cli.options import Redaction
from kaudit.cli.streams import write_pieces
from kaudit.cli.targets import output_file
from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.errors import UsageError
from kaudit.formats.application_log.pieces import LogCounts
from kaudit.model.application_logs import LogEvent, Origin, zone_text
from kaudit.model.internal_topics import TRANSACTIONS
from kaudit.replay.reconstruction.broker_logs import BrokerLog, BrokerSettings, kept
from kaudit.replay.reconstruction.reconstruct import Evidence, Reconstruction
from kaudit.replay.reconstruction.stated_attempts import newest_writing, stated_refusals
from kaudit.report.console import visible
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.plan import chosen_input
from kaudit.source.layout import INTERNAL_TOPICS, ApplicationLog, Layout, furthest_replicas
from kaudit.source.schemes import open_segment
from kaudit.source.uri import Uri

_MAX_EVENTS = 1_000_000
"""Events that are kept; they take a gigabyte."""
_LogRead = Sequence[tuple[Origin, LogCounts, list[LogEvent]]]
"""What a log holds by each origin that it may have."""


def run_attempts(
    paths: Sequence[str], asked: ScanOptions, output: str | None, redaction: Redaction, *, quiet: bool
) -> ExitCode:
    """Write the attempts to `output`, None for stdout; return the exit code. Raises UsageError for options that mean nothing.

    `quiet`: only what could not be read is said, not how the attempts were made.
    """
    options = replace(asked, paths=paths)
    place = output_file(output, options.given)
    layout = chosen_input(options)
    given = given_logs(layout, asked.server_logs, asked.client_logs)
    names = redaction.redactor()
    if names is not None:
        names.learn_paths(options.given)
        names.learn({"topic": [one.topic for one in layout.everything], "path": _paths(layout, given)})

    def say(text: str) -> None:
        sys.stderr.write(f"kaudit: {visible(text if names is None else names.text(text))}\n")

    code = _code(options, layout, given)
    made = Reconstruction(_evidence(asked, layout, given, say, quiet=quiet), open_segment)
    encode = msgspec.json.Encoder().encode
    lines = made.lines() if names is None else map(names.learned, made.lines())
    write_pieces(place, (encode(line).decode() + "\n" for line in lines))
    for line in [*([] if quiet else _remarks(made)), *made.account.problems()]:
        say(line)
    return code


def _remarks(made: Reconstruction) -> Iterator[str]:
    yield from (_clock(log) for log in made.logs)
    written = ", ".join(f"{count:,} {what}" for what, count in sorted(made.account.written.items()))
    yield f"written: {written or 'no attempts'}"
    yield from made.account.notes()


def _paths(layout: Layout, given: GivenLogs) -> list[str]:
    """Return the places that notes may name."""
    logs = [place for log in given.logs for place in (log.path, log.name)]
    return [*logs, *(skipped.path for skipped in given.skipped), *(one.directory for one in layout.everything)]


def _evidence(
    asked: ScanOptions, layout: Layout, given: GivenLogs, say: Callable[[str], None], *, quiet: bool
) -> Evidence:
    """Read the logs. Raises UsageError if it is not known which release's rules to ask."""
    settings = BrokerSettings()
    events = _events(given, settings, say, asked.jobs)
    release = settings.version if asked.broker_version == "auto" else asked.broker_version
    if release is None and not layout.partitions:
        release = newest_writing(events)
        if not quiet:
            say(f"no line names the broker's release: it is taken for {release}; --broker-version says another")
    if release is None:
        raise UsageError("no server log names the broker's release: pass --broker-version")
    try:
        profile_for(release)
    except UnknownVersionError as error:
        raise UsageError(str(error)) from None
    everything = layout.everything
    return Evidence(
        [one for one in furthest_replicas(layout.partitions) if asked.topics or one.topic not in INTERNAL_TOPICS],
        furthest_replicas(everything, (TRANSACTIONS,)),
        events,
        settings,
        release,
        [one for one in everything if one.topic in INTERNAL_TOPICS],
        stated_refusals(
            events, lambda *key: _is_wanted(asked, *key), [(one.topic, one.partition) for one in everything]
        ),
    )


def _code(options: ScanOptions, layout: Layout, given: GivenLogs) -> ExitCode:
    """Return the exit code: of logs alone that of their scan."""
    if any(one.segments for one in layout.partitions):
        return ExitCode.UNREADABLE if any(skipped.unreadable for skipped in given.skipped) else ExitCode.OK
    return exit_code(local.scan(options, SilentProgress()), FailOn.ERROR, exit_zero=False)


def _is_wanted(asked: ScanOptions, topic: str, partition: int) -> bool:
    return asked.asks_for(topic, partition) and bool(asked.topics or topic not in INTERNAL_TOPICS)


def _events(
    given: GivenLogs, settings: BrokerSettings, say: Callable[[str], None], processes: int | None
) -> list[LogEvent]:
    """Read every log once for its events, server logs also for what they say of the broker."""
    found: list[LogEvent] = []
    for skipped in given.skipped:
        say(f"{skipped.path}: {skipped.reason}")
    for log, read in zip(given.logs, _reads(given.logs, processes), strict=True):
        for origin, counts, events in read:
            found += events
            if len(found) > _MAX_EVENTS:
                raise UsageError(f"{log.name}: more than {_MAX_EVENTS:,} events in all; name fewer logs")
            if origin == "server":
                settings.read(log_lines(log.path))
            if not counts.events:
                say(f"{log.name}: no line of it is understood as a {origin}'s ({counts.lines:,} lines)")
    return found


def _reads(logs: Sequence[ApplicationLog], processes: int | None) -> Iterator[_LogRead]:
    """Yield what each log holds, in their order, read in so many processes (None: one per core), at most one log ahead of each."""
    number = min(processes or os.cpu_count() or 1, len(logs))
    # clients of remote stores have threads, which a fork would leave with their locks held
    if number < 2 or not all(Uri.parse(log.path).is_local for log in logs):
        yield from map(_read_log, logs)
        return
    waiting: deque[Future[_LogRead]] = deque()
    with ProcessPoolExecutor(number, mp_context=multiprocessing.get_context("fork")) as pool:
        for log in logs:
            waiting.append(pool.submit(_read_log, log))
            if len(waiting) > number:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _read_log(log: ApplicationLog) -> _LogRead:
    """Read one log. Raises UsageError if it is not there, OSError if it cannot be read."""
    read: list[tuple[Origin, LogCounts, list[LogEvent]]] = []
    for origin in log.origins:
        counts = LogCounts()
        events = kept(log_events(log.path, origin, counts, log.name))
        read.append((origin, counts, list(islice(events, _MAX_EVENTS + 1))))
    return read


def _clock(log: BrokerLog) -> str:
    """How a log's clock goes, in one line."""
    home = log.home or "."
    if log.clock is None or not log.clock.offsets:
        how = "as they are" if log.has_times else "as UTC, and places follow from offsets and order alone"
        return f"{home}: no line names a record that the logs have with a broker's time; times are taken {how}"
    offset = log.clock.offsets[-1]
    zone = "" if offset.zone_minutes is None else f"local time {zone_text(offset.zone_minutes)}, "
    agreeing, anchors = sum(offset.agreeing.values()), sum(offset.anchors.values())
    return (
        f"{home}: {zone}batches' time is the log's {offset.lower_ms:+,} to {offset.upper_ms:+,} ms "
        f"({agreeing:,} of {anchors:,} lines agree)"
    )
