"""Runs a watch: rounds until it is to end, and after each the findings, the table, the metrics and the state file.

The first line of a state file is JSON: whose it is, and length and SHA-256 of the rest, which is JSON too. A new one replaces
the old one as a whole, so a watch that is killed leaves the one before.
"""

import hashlib
import json
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kaudit import __version__
from kaudit.cli.commands.watch import WatchOptions, WatchRun
from kaudit.cli.exits import ExitCode
from kaudit.cli.progress import ends_on_signals
from kaudit.cli.request import AuditRequest, audit_request
from kaudit.cli.settings import Settings
from kaudit.cli.streams import whole_file
from kaudit.cli.targets import output_file
from kaudit.cli.watch_outputs import Metrics, Outputs, served
from kaudit.errors import NothingToAuditError, UsageError
from kaudit.model.result import ScanResult
from kaudit.model.severity import Severity, Status
from kaudit.report.machine.metrics import render_metrics
from kaudit.scanning.options import ScanOptions
from kaudit.source.bytes import open_regular
from kaudit.source.kafka.options import TopicUrl
from kaudit.source.option import parse_duration
from kaudit.source.uri import KAFKA, Uri, UrlError
from kaudit.watch.live_partitions import LivePartitions
from kaudit.watch.log_directories import LogDirectories
from kaudit.watch.memory import Memory
from kaudit.watch.watcher import Round, StatusTracker, Watcher

SCHEMA = "kaudit.watch-state/1"
_LONGEST_HEADER = 1 << 20
_LARGEST = 4 << 30
_SHORTEST_SECONDS = 0.1
_SAVE_SECONDS = 10.0
"""Findings are saved as they are reported; how much was read, only so often."""


class _Times(Struct, frozen=True):
    """How often to look, and when to end, in seconds."""

    interval: float
    until_idle: float | None
    for_: float | None


def run_watch(settings: Settings, paths: Sequence[str], options: WatchOptions) -> ExitCode:
    """Watch until it is to end; return the exit code for what was reported."""
    request = audit_request(
        settings, replace(options.audit, paths=paths), options.output, options.findings, options.display
    )
    times = _times(options.run)
    state = output_file(options.run.state, paths, "--state")
    metrics_file = output_file(options.output.metrics_file, paths, "--metrics-file")
    if request.redactor is not None:
        request.redactor.learn_paths(paths)
    memory = (load_state(state, paths) if state is not None else None) or Memory()
    logs = _logs(request.options)
    stop = threading.Event()
    watcher = Watcher(request.options, logs, memory, _decisions(request), stop.is_set)
    with ExitStack() as stack:
        stack.enter_context(ends_on_signals(stop))
        metrics = stack.enter_context(_metrics(options, metrics_file))
        outputs = stack.enter_context(Outputs(request, resumed=bool(memory.findings)))
        tracker = StatusTracker(paths, watcher)
        saved = time.monotonic()

        def save(*, at_once: bool) -> None:
            nonlocal saved
            if state is not None and (at_once or time.monotonic() - saved >= _SAVE_SECONDS):
                save_state(state, request.options.paths, memory)
                saved = time.monotonic()

        def publish(found: Round, seconds: float) -> None:
            status = tracker.after(found, seconds) if metrics is not None or outputs.is_live else None
            outputs.write(found.new, status)
            save(at_once=bool(found.new))
            if metrics is not None and status is not None:
                names = request.redactor
                metrics.publish(render_metrics(status if names is None else names.learned(status)))

        worst = _rounds(watcher, times, stop, publish)
        save(at_once=True)
        if watcher.result is None and worst is None:
            nothing = logs.nothing or NothingToAuditError(f"nothing to audit under {', '.join(request.options.paths)}")
            raise nothing if request.redactor is None else request.redactor.of_error(nothing, paths)
        outputs.end(watcher.result, memory, len(watcher.waiting.held))
    return _exit_code(request, watcher.result, worst)


@contextmanager
def _metrics(options: WatchOptions, file: Path | None) -> Iterator[Metrics | None]:
    """Yield where metrics are published, None for nowhere."""
    output = options.output
    if output.metrics_port is None:
        yield None if file is None else Metrics(file)
        return
    metrics = Metrics(file)
    with served(metrics, output.metrics_address, output.metrics_port) as port:
        if not options.display.quiet:
            sys.stderr.write(f"kaudit: metrics at http://{output.metrics_address}:{port}/metrics\n")
        yield metrics


def _logs(options: ScanOptions) -> LogDirectories | LivePartitions:
    """Return what looks at the inputs. Raises UsageError where some are on disks and some on brokers."""
    live = [path for path in options.paths if Uri.parse(path).scheme == KAFKA]
    if not live:
        return LogDirectories(options)
    if len(live) < len(options.paths):
        raise UsageError(f"{live[0]}: one watch follows directories or kafka://, not both")
    try:
        for path in live:
            TopicUrl.of(Uri.parse(path))
    except UrlError as error:
        raise UsageError(str(error)) from None
    return LivePartitions(options)


def _times(run: WatchRun) -> _Times:
    interval, until_idle, for_ = (
        parse_duration(text, option)
        for text, option in ((run.interval, "--interval"), (run.until_idle, "--until-idle"), (run.for_, "--for"))
    )
    if not interval:
        raise UsageError(f"--interval {run.interval}: not long enough to look")
    return _Times(
        interval / 1000,
        None if until_idle is None else until_idle / 1000,
        None if for_ is None else for_ / 1000,
    )


def _decisions(request: AuditRequest) -> Callable[[ScanResult], ScanResult]:
    return lambda result: request.policy.apply(request.selection.of_scan(result), request.scope)


def _rounds(
    watcher: Watcher, times: _Times, stop: threading.Event, publish: Callable[[Round, float], None]
) -> Severity | None:
    """Run rounds until a signal, until --for is over, or until the logs are idle; a last round then reports what was held back.

    Returns the highest severity of what was reported and is new.
    """
    began = grown = time.monotonic()
    pause = _SHORTEST_SECONDS
    severities: set[Severity] = set()
    last = False
    while not stop.is_set():
        started = time.monotonic()
        found = watcher.round(last=last)
        now = time.monotonic()
        publish(found, now - started)
        severities.update(finding.severity for finding in found.new if finding.status is Status.NEW)
        grown = now if found.changed else grown
        left = math.inf if times.for_ is None else times.for_ - (now - began)
        if last or left <= 0:
            break
        last = times.until_idle is not None and now - grown >= times.until_idle
        # after a change the next one is near; at most half of the time is spent on looking
        pause = _SHORTEST_SECONDS if found.changed else min(2 * pause, times.interval)
        if not last:
            stop.wait(min(max(pause, now - started), left))
    return max(severities, default=None)


def _exit_code(request: AuditRequest, result: ScanResult | None, worst: Severity | None) -> ExitCode:
    if request.fail_on.reached(worst):
        return ExitCode.OK if request.exit_zero else ExitCode.FINDINGS
    unreadable = result is not None and any(item.unreadable for item in result.not_audited)
    return ExitCode.UNREADABLE if unreadable else ExitCode.OK


class _Header(Struct):
    schema: str
    kaudit: str
    inputs: list[str]
    bytes: int
    sha256: str


def load_state(file: Path, inputs: Sequence[str]) -> Memory | None:
    """Return what a state file remembers, None if there is none yet.

    Raises:
        UsageError: it is damaged, no state file, of another version, or of a watch of other inputs.

    """
    try:
        with open(file, "rb", opener=open_regular) as stream:
            first = stream.readline(_LONGEST_HEADER)
            body = stream.read(_LARGEST)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"--state {file} cannot be read: {error.strerror or error}") from error
    header = _header(file, first)
    if header.inputs != _absolute(inputs):
        raise UsageError(f"--state {file}: belongs to a watch of {', '.join(header.inputs)}; name another file")
    if len(body) != header.bytes or hashlib.sha256(body).hexdigest() != header.sha256:
        raise UsageError(f"--state {file}: damaged; delete it to begin again, which reports all findings again")
    try:
        return msgspec.json.decode(body, type=Memory)
    except msgspec.DecodeError as error:
        raise UsageError(f"--state {file}: {error}; delete it to begin again") from error


def save_state(file: Path, inputs: Sequence[str], memory: Memory) -> None:
    """Write the state, whole or not at all.

    Raises:
        UsageError: it cannot be written.

    """
    body = msgspec.json.encode(memory)
    header = _Header(SCHEMA, __version__, _absolute(inputs), len(body), hashlib.sha256(body).hexdigest())
    with whole_file(file, "--state") as out:
        out.write(msgspec.json.encode(header) + b"\n" + body)


def _header(file: Path, line: bytes) -> _Header:
    try:
        schema = json.loads(line).get("schema")
    except (ValueError, AttributeError, RecursionError):
        schema = None
    if not isinstance(schema, str) or not schema.startswith("kaudit.watch-state/"):
        raise UsageError(f"--state {file}: not a state file of kaudit watch")
    if schema != SCHEMA:
        raise UsageError(f"--state {file}: has the form {schema}, this kaudit reads {SCHEMA}; delete it to begin again")
    try:
        return msgspec.json.decode(line, type=_Header)
    except msgspec.DecodeError as error:
        raise UsageError(f"--state {file}: damaged ({error}); delete it to begin again") from error


def _absolute(inputs: Sequence[str]) -> list[str]:
    return sorted(entry if "://" in entry else os.path.realpath(entry) for entry in inputs)
