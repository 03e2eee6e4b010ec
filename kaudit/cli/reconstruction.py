"""Runs `kaudit attempts`: reads segments and server logs, and writes the attempts that they show."""

import sys
from collections.abc import Sequence
from itertools import islice

import msgspec
from msgspec.structs import replace

from kaudit.audits.log_events.application_logs import GivenLogs, given_logs, log_events, log_lines
from kaudit.broker.releases.profile import UnknownVersionError, profile_for
from kaudit.cli.exits import ExitCode
from kaudit.cli.streams import write_pieces
from kaudit.cli.targets import output_file
from kaudit.errors import UsageError
from kaudit.formats.application_log.pieces import LogCounts
from kaudit.model.application_logs import LogEvent, zone_text
from kaudit.replay.reconstruction.broker_logs import BrokerLog, BrokerSettings, kept
from kaudit.replay.reconstruction.reconstruct import Evidence, Reconstruction, chosen_replicas
from kaudit.replay.reconstruction.reconstruct import coordinator_partitions as coordinators
from kaudit.report.console import visible
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.plan import find_input
from kaudit.source.layout import INTERNAL_TOPICS
from kaudit.source.schemes import open_segment

_MAX_EVENTS = 1_000_000
"""Events that are kept; they take a gigabyte."""


def run_attempts(paths: Sequence[str], asked: ScanOptions, output: str | None) -> ExitCode:
    """Write the attempts to `output`, None for stdout; return the exit code. Raises UsageError for options that mean nothing."""
    place = output_file(output, [*paths, *asked.server_logs, *asked.client_logs])
    layout = find_input(replace(asked, paths=paths))
    settings = BrokerSettings()
    given = given_logs(layout, asked.server_logs, asked.client_logs)
    events = _events(given, settings)
    release = settings.version if asked.broker_version == "auto" else asked.broker_version
    if release is None:
        raise UsageError("no server log names the broker's release: pass --broker-version")
    try:
        profile_for(release)
    except UnknownVersionError as error:
        raise UsageError(str(error)) from None
    partitions = [one for one in chosen_replicas(layout.partitions) if asked.topics or one.topic not in INTERNAL_TOPICS]
    internal = [one for one in layout.everything if one.topic in INTERNAL_TOPICS]
    evidence = Evidence(partitions, coordinators(layout.everything), events, settings, release, internal)
    made = Reconstruction(evidence, open_segment)
    encode = msgspec.json.Encoder().encode
    write_pieces(place, (encode(line).decode() + "\n" for line in made.lines()))
    for log in made.logs:
        _say(_clock(log))
    written = ", ".join(f"{count:,} {what}" for what, count in sorted(made.account.written.items()))
    _say(f"written: {written or 'no attempts'}")
    for note in made.account.notes():
        _say(note)
    return ExitCode.UNREADABLE if any(skipped.unreadable for skipped in given.skipped) else ExitCode.OK


def _events(given: GivenLogs, settings: BrokerSettings) -> list[LogEvent]:
    """Read every log once for its events, server logs also for what they say of the broker."""
    found: list[LogEvent] = []
    for skipped in given.skipped:
        _say(f"{skipped.path}: {skipped.reason}")
    for log in given.logs:
        for origin in log.origins:
            counts = LogCounts()
            found += islice(kept(log_events(log.path, origin, counts, log.name)), _MAX_EVENTS + 1 - len(found))
            if len(found) > _MAX_EVENTS:
                raise UsageError(f"{log.name}: more than {_MAX_EVENTS:,} events in all; name fewer logs")
            if origin == "server":
                settings.read(log_lines(log.path))
            if not counts.events:
                _say(f"{log.name}: no line of it is understood as a {origin}'s ({counts.lines:,} lines)")
    return found


def _clock(log: BrokerLog) -> str:
    """How a log's clock goes, in one line."""
    home = log.home or "."
    if log.clock is None or not log.clock.offsets:
        how = "as they are" if log.has_times else "by no clock: places follow from offsets and order alone"
        return f"{home}: no line tells of what the logs have with a broker's time; times are taken {how}"
    offset = log.clock.offsets[-1]
    zone = "" if offset.zone_minutes is None else f"local time {zone_text(offset.zone_minutes)}, "
    agreeing, anchors = sum(offset.agreeing.values()), sum(offset.anchors.values())
    return (
        f"{home}: {zone}batches' time is the log's {offset.lower_ms:+,} to {offset.upper_ms:+,} ms "
        f"({agreeing:,} of {anchors:,} lines agree)"
    )


def _say(text: str) -> None:
    sys.stderr.write(f"kaudit: {visible(text)}\n")
