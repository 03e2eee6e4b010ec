"""The producers' histories that a page shows: brought to it one partition replica at a time, in a share of its room each."""

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from kaudit.model.finding import Finding
from kaudit.model.result import PartitionSummary, ScanResult
from kaudit.reading.shuffle_codec import unpack
from kaudit.report.html.partition_columns import Key, PageWriter, PartitionPage
from kaudit.report.render_options import RenderOptions

_DESCRIPTION = 1_500
"""Bytes that the JSON beside a partition's packed columns takes: its fields, and names of files."""


class Histories(Struct, frozen=True):
    """Of the partition replicas: what the page shows of their histories, and their high watermarks where known."""

    pages: Mapping[Key, PartitionPage] = field(default_factory=dict)
    high_watermarks: Mapping[Key, int] = field(default_factory=dict)


def histories_of(result: ScanResult, options: RenderOptions, shown: Collection[Key], most_bytes: int) -> Histories:
    """Read the recorded histories; those of the partitions `shown` take at most `most_bytes` in the page together."""
    rooms = _rooms([entry for entry in result.partitions if key_of(entry) in shown], most_bytes)
    pages: dict[Key, PartitionPage] = {}
    marks: dict[Key, int] = {}
    for name, recorded in options.recorded.items():
        named = {key_of(entry): _named(key_of(entry), name) for entry in recorded.result.partitions}
        writer = PageWriter(
            room={own: rooms[key] for own, key in named.items() if key in rooms},
            producer_ids=options.producer_ids,
            names=recorded.transactional_ids(options.producer_ids),
        )
        for _, piece in recorded.write_histories(writer, _own(result.findings, named)):
            page: PartitionPage = unpack(piece)
            pages[_named((page.topic, page.partition, page.replica), name)] = page
        marks |= {_named(key, name): offset for key, offset in recorded.high_watermarks().items()}
    return Histories(pages, marks)


def key_of(partition: PartitionSummary) -> Key:
    """Return which partition replica it is."""
    return partition.topic, partition.partition, partition.replica


def _named(key: Key, name: str | None) -> Key:
    """Return the key with the replica's name in the report, where it was recorded by itself."""
    return key if name is None else (*key[:2], name)


def _own(findings: Sequence[Finding], named: Mapping[Key, Key]) -> list[Finding]:
    """Return the findings with their replicas named as where they were recorded."""
    recorded_as = {key: own for own, key in named.items()}
    own: list[Finding] = []
    for finding in findings:
        if finding.topic is None or finding.partition is None or finding.replica is None:
            continue
        key = recorded_as.get((finding.topic, finding.partition, finding.replica))
        if key is not None:
            own.append(finding if key[2] == finding.replica else replace(finding, replica=key[2]))
    return own


def _rooms(partitions: Sequence[PartitionSummary], most_bytes: int) -> dict[Key, int]:
    """Share out the bytes by how many runs and producer ids there are."""
    left = max(most_bytes - _DESCRIPTION * len(partitions), 0)
    weights = {key_of(entry): entry.runs + entry.producers + 50 for entry in partitions}
    total = sum(weights.values())
    return {key: left * weight // total for key, weight in weights.items()}
