"""What an audit was asked for, as the arguments of a command: the inputs, and the options that decide what is found."""

from collections.abc import Iterator
from enum import Enum
from typing import Any

from kaudit.checks.command_line import CommandLine
from kaudit.model.json_record import rfc3339
from kaudit.scanning.options import ScanOptions
from kaudit.source.kafka.options import ClusterOptions
from kaudit.source.layout import INTERNAL_TOPICS, Layout, PartitionDirectory
from kaudit.source.option import options_of
from kaudit.source.uri import Uri

_DECLARED = options_of(ScanOptions, ClusterOptions)
_DECIDING = (
    *("broker-version", "log-start-offset", "now", "zookeeper", "blocks", "metadata", "layout", "command-config"),
    *("from-offset", "to-offset", "from-time", "to-time", "depth"),
)
"""The options that decide what is found, in the order in which commands show them."""
_DEFAULTS = ScanOptions(paths=())


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
    for name in _DECIDING:
        field, _ = _DECLARED[name]
        holder = options if field in ScanOptions.__struct_fields__ else options.cluster
        value = getattr(holder, field)
        if value != getattr(_DEFAULTS if holder is options else _DEFAULTS.cluster, field):
            yield from (f"--{name}", _typed(field, value))


def _typed(field: str, value: Any) -> str:  # noqa: ANN401 - a field's value
    """Return what somebody types to give a field this value."""
    if isinstance(value, Enum):
        return str(value.value)
    return rfc3339(value) or str(value) if field.endswith("_ms") else str(value)
