"""Reads partitions of a cluster, and compares the producers' state that the log yields with what their leaders remember."""

import sys
from collections.abc import Sequence

from kaudit.cli.exits import ExitCode
from kaudit.cli.loading import loaded
from kaudit.cli.progress import progress_on_stderr
from kaudit.cli.request import AuditRequest
from kaudit.cli.streams import write_pieces
from kaudit.cli.targets import console_of
from kaudit.engines.engine import Engine
from kaudit.errors import UnreadableInputError, UsageError
from kaudit.listings import live_states
from kaudit.listings.query import Query
from kaudit.model.producer_listing import ComparedPartition
from kaudit.report.text.live_producers import live_document, live_table
from kaudit.source.kafka.answers import TopicPartition
from kaudit.source.kafka.client import KafkaClient
from kaudit.source.kafka.command_config import load_settings
from kaudit.source.kafka.options import TopicUrl
from kaudit.source.uri import KAFKA, Uri, UrlError

_FORMATS = ("table", "json")


def run_live(request: AuditRequest, engine: Engine) -> ExitCode:
    """Compare with the brokers and show; return 1 where something differs without an explanation.

    Raises UsageError for inputs that are not on one cluster, UnreadableInputError where the leaders cannot be asked.
    """
    uris = [Uri.parse(path) for path in request.options.paths]
    if any(uri.scheme != KAFKA for uri in uris):
        raise UsageError("--live asks brokers: PATH is kafka://HOST:PORT/TOPIC[/PARTITION]")
    names = [target.form.name for target in request.targets]
    if not set(names) <= set(_FORMATS):
        raise UsageError(f"--live: --output-format is {' or '.join(_FORMATS)}")
    try:
        urls = [TopicUrl.of(uri) for uri in uris]
    except UrlError as error:
        raise UsageError(str(error)) from None
    if len({url.servers for url in urls}) > 1:
        raise UsageError("--live compares with one cluster: the URLs name different brokers")
    compared = _compare_with_brokers(request, engine, urls[0].servers)
    if request.redactor is not None:
        compared = loaded("redacting", "redacted_result")(request.redactor, compared, request.options.paths)
    for target in request.targets:
        text = (
            live_document(compared)
            if target.form.name == "json"
            else live_table(compared, console_of(target, request.color))
        )
        write_pieces(target.file, [text])
    return ExitCode.FINDINGS if any(part.unexplained for part in compared) and not request.exit_zero else ExitCode.OK


def _compare_with_brokers(request: AuditRequest, engine: Engine, servers: str) -> list[ComparedPartition]:
    """Ask the leaders, read the log, and ask again: what moved meanwhile is not a difference.

    Raises UnreadableInputError where the leaders cannot be asked.
    """
    options = request.options
    try:
        with KafkaClient(servers, load_settings(options.cluster.command_config)) as client:
            before = live_states.describe(client, _partitions(client, options.paths))
            # every id: an engine lists but the first ones where no number is asked for
            query = Query(limit=sys.maxsize)
            with (
                progress_on_stderr(quiet=request.quiet, verbose=request.verbose) as progress,
                engine.listed_producers(options, progress, query) as listed,
            ):
                result = listed.result
            log = live_states.rebuilt_states(result.producers)
            summaries = {TopicPartition(each.topic, each.partition): each for each in result.scan.partitions}
            after = live_states.describe(client, summaries)
            compared = []
            for partition, summary in summaries.items():
                node = client.leader(partition)
                states = live_states.PartitionStates(
                    log.get(partition, {}), before.get(partition, {}), after[partition]
                )
                expiration = live_states.expiration_of(client, node)
                compared.append(live_states.compare_states(summary, node, states, expiration))
            return compared
    except UrlError as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        raise UnreadableInputError(f"{error.filename}: {error.strerror}") from None


def _partitions(client: KafkaClient, paths: Sequence[str]) -> list[TopicPartition]:
    found = []
    for url in map(TopicUrl.of, map(Uri.parse, paths)):
        for topic in client.describe_topics([url.topic]):
            wanted = (own.partition for own in topic.partitions if url.partition in (None, own.partition))
            found += [TopicPartition(topic.topic, partition) for partition in wanted]
    return found
