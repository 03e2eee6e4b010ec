"""What an audit was asked for, as the arguments of a command: the inputs, and the options that decide what is found."""

from collections.abc import Iterator

from kaudit.checks.command_line import CommandLine
from kaudit.model.json_record import rfc3339
from kaudit.scanning.options import Depth, ScanOptions
from kaudit.source.layout import INTERNAL_TOPICS, Layout, PartitionDirectory
from kaudit.source.uri import Uri


def asked_for(options: ScanOptions, layout: Layout) -> CommandLine:
    """Return what was asked for, without what chooses partitions, producers and times."""
    return CommandLine(
        inputs=options.paths,
        paths=[str(Uri.parse(path)) for path in options.paths],
        options=list(_deciding(options)),
        evidence=[entry.directory for entry in layout.everything if entry.topic in INTERNAL_TOPICS],
    )


def asked_of(partition: PartitionDirectory, asked: CommandLine, options: ScanOptions) -> CommandLine:
    """Return what was asked for, of one partition: beside it, files of others that no name places would take its name."""
    inputs = asked.inputs if partition.named else [segment.path for segment in partition.segments]
    compacted = ["--compacted"] if options.says_compacted(partition.topic) else []
    return CommandLine(inputs, asked.paths if partition.named else inputs, [*asked.options, *compacted], asked.evidence)


def _deciding(options: ScanOptions) -> Iterator[str]:
    values = {
        "--broker-version": options.broker_version if options.broker_version != "auto" else None,
        "--log-start-offset": options.log_start_offset,
        "--now": None if options.now_ms is None else rfc3339(options.now_ms) or options.now_ms,
        "--zookeeper": options.zookeeper,
        "--blocks": options.blocks,
        "--metadata": options.metadata,
        "--layout": options.layout,
        "--command-config": options.cluster.command_config,
        "--from-offset": options.cluster.from_offset,
        "--to-offset": options.cluster.to_offset,
        "--from-time": None if options.cluster.from_ms is None else rfc3339(options.cluster.from_ms),
        "--to-time": None if options.cluster.to_ms is None else rfc3339(options.cluster.to_ms),
        "--depth": None if options.depth is Depth.CRC else options.depth.value,
    }
    for name, value in values.items():
        if value is not None:
            yield from (name, str(value))
