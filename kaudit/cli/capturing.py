"""Runs `kaudit capture` until all is copied or a signal ends it."""

import threading
from collections.abc import Mapping, Sequence

from kaudit.capture.account import Account, PartitionAccount
from kaudit.capture.capture import Capture, CaptureRequest, require_there
from kaudit.capture.directory import CaptureDirectory, OccupiedError
from kaudit.cli.commands.capture import CaptureOptions
from kaudit.cli.exits import ExitCode
from kaudit.cli.options import TextFormat
from kaudit.cli.progress import capture_progress, ends_on_signals
from kaudit.cli.streams import write_stdout
from kaudit.errors import UnreadableInputError, UsageError
from kaudit.report.console import visible
from kaudit.results.scope import size
from kaudit.source.kafka.client import KafkaClient
from kaudit.source.kafka.command_config import load_settings
from kaudit.source.kafka.failures import UnknownTopicError
from kaudit.source.kafka.fetched_segment import BrokerError
from kaudit.source.kafka.options import TopicUrl
from kaudit.source.uri import Uri, UrlError


def run_capture(urls: Sequence[str], options: CaptureOptions) -> ExitCode:
    """Copy the partitions that URLs name into the directory or URL asked for; return the exit code.

    Raises UsageError for a topic or partition that is not there and a place that cannot be written, UnreadableInputError for a
    broker that cannot be read from, and where nothing was captured.
    """
    servers, topics = _wanted(urls)
    account = _captured(servers, topics, options, options.output)
    as_json = options.output_format is TextFormat.JSON
    parts = [
        part
        for part in account.partitions
        if part.topic in topics and part.partition in (topics[part.topic] or [part.partition])
    ]
    if as_json or not options.quiet:
        write_stdout(account.text() if as_json else _summary(account, parts, options.output))
    return _code(account, parts)


def captured_into(urls: Sequence[str], options: CaptureOptions, output: str) -> ExitCode:
    """Copy the partitions that URLs name into `output`; return the exit code. Nothing is printed but progress. Raises as `run_capture`."""
    servers, topics = _wanted(urls)
    account = _captured(servers, topics, options, output)
    return _code(account, account.partitions)


def _code(account: Account, parts: Sequence[PartitionAccount]) -> ExitCode:
    outcome = account.runs[-1].outcome
    if outcome == "complete" and not any(_has_offsets(part) for part in parts):
        raise UnreadableInputError("nothing was captured: no partition that was asked for has a batch")
    return {"incomplete": ExitCode.UNREADABLE, "interrupted": ExitCode.INTERRUPTED}.get(outcome, ExitCode.OK)


def _captured(
    servers: str, topics: Mapping[str, Sequence[int] | None], options: CaptureOptions, output: str
) -> Account:
    """Copy partitions, None for all, by topic; return the account of it."""
    cluster = options.connection.cluster
    request = CaptureRequest(topics, options.from_replica, options.follow, cluster.max_bytes_per_second)
    try:
        with (
            KafkaClient(servers, load_settings(cluster.command_config)) as client,
            ends_on_signals(stop := threading.Event()),
            capture_progress(quiet=options.quiet, verbose=options.verbose) as progress,
        ):
            there = require_there(client, request)  # before there is a directory
            directory = CaptureDirectory(output)
            try:
                work = Capture(client, directory, request, there, progress)
                work.run(stop)
            finally:
                directory.close()
    except (UrlError, OccupiedError) as error:
        raise UsageError(str(error)) from None
    except UnknownTopicError as error:
        raise UsageError(f"{error.filename}: {error.strerror}") from None
    except BrokerError as error:
        raise UnreadableInputError(f"{error.filename}: {error.strerror}") from None
    except OSError as error:
        raise UsageError(f"--output {output}: {error.strerror or error}") from error
    return work.account


def _wanted(urls: Sequence[str]) -> tuple[str, dict[str, list[int] | None]]:
    """Return the servers, and partitions, None for all, by topic. Raises UsageError, also for URLs of several clusters."""
    parsed = []
    for text in urls:
        try:
            uri = Uri.parse(text)
            if uri.scheme != "kafka":
                raise UsageError(
                    f"{text}: kaudit capture reads kafka://HOST:PORT/TOPIC[/PARTITION], with --redact log directories too"
                )
            parsed.append(TopicUrl.of(uri))
        except UrlError as error:
            raise UsageError(str(error)) from None
    if len({url.servers for url in parsed}) > 1:
        raise UsageError("one capture is of one cluster: the URLs name different brokers")
    topics: dict[str, list[int] | None] = {}
    for url in parsed:
        known = topics.setdefault(url.topic, [])
        if url.partition is None or known is None:
            topics[url.topic] = None
        elif url.partition not in known:
            known.append(url.partition)
    return parsed[0].servers, topics


def _has_offsets(part: PartitionAccount) -> bool:
    return part.next_offset > part.first_offset


def _summary(account: Account, parts: Sequence[PartitionAccount], output: str) -> str:
    """Return a line for each partition that was asked for, and one for all."""
    lines = []
    for part in parts:
        offsets = f"offsets {part.first_offset} to {part.next_offset - 1}" if _has_offsets(part) else "nothing"
        missing = sum(each.last_offset - each.first_offset + 1 for each in part.missing)
        notes = [f"{missing:,} offsets are missing"] if missing else []
        notes += [f"{part.compacted_offsets:,} compacted away"] if part.compacted_offsets else []
        notes += [part.problem] if part.problem else []
        lines.append(", ".join([f"{part.name}: {offsets}", size(part.bytes), *notes]))
    run = account.runs[-1]
    lines.append(f"{size(run.bytes)} captured into {output}")
    return "".join(f"{visible(line)}\n" for line in lines)
