"""Which topic of the target is a copy of which of the source, and the numbers of their partitions."""

import re
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from kaudit.audits.records.places import MOST_PARTITIONS
from kaudit.errors import UsageError
from kaudit.source.layout import INTERNAL_TOPICS, PartitionDirectory

Partitions = Mapping[int, PartitionDirectory]
"""The copy of each partition that is read."""


class Pairing(Struct, frozen=True):
    """Two topics that are compared, and where the numbers of their partitions begin: partition n of either has one number."""

    source: str
    target: str
    sources: Partitions
    targets: Partitions
    partitions: Sequence[int]
    first_number: int

    @property
    def bytes(self) -> int:
        """Bytes to read."""
        return sum(each.bytes for side in (self.sources, self.targets) for each in side.values())

    @property
    def numbers(self) -> Mapping[int, int]:
        """The number of each partition that either topic has."""
        return {partition: self.first_number + index for index, partition in enumerate(self.partitions)}


def parse_maps(texts: Iterable[str]) -> list[tuple[re.Pattern[str], str]]:
    """Parse `--map 'REGEX=NAME'`. Raises UsageError for what is none."""
    found = []
    for text in texts:
        pattern, equals, name = text.rpartition("=")
        try:
            compiled = re.compile(pattern)
        except re.error as error:
            raise UsageError(f"--map {text}: {error}") from error
        if not equals or not pattern or not name:
            raise UsageError(
                f"--map {text}: write a regular expression for the source's topics, =, and the target's name"
            )
        found.append((compiled, name))
    return found


def by_topic(directories: Iterable[PartitionDirectory]) -> dict[str, dict[int, PartitionDirectory]]:
    """Return the topics of a side, of several copies of a partition the one that reaches furthest."""
    found: dict[str, dict[int, PartitionDirectory]] = {}
    for directory in directories:
        if not directory.segments or directory.topic in INTERNAL_TOPICS:
            continue
        copies = found.setdefault(directory.topic, {})
        before = copies.get(directory.partition)
        if before is None or _reach(directory) > _reach(before):
            copies[directory.partition] = directory
    return found


def _reach(directory: PartitionDirectory) -> tuple[int, int]:
    return directory.segments[-1].base_offset, directory.segments[-1].size


def pair_topics(
    source: Mapping[str, Partitions], target: Mapping[str, Partitions], maps: Sequence[tuple[re.Pattern[str], str]]
) -> tuple[list[Pairing], dict[str, str]]:
    """Pair the topics of the source with those of the target; return also, by name, why others have no partner.

    A topic's copy is what --map says; else the one topic called `CLUSTER.topic` that the source does not have itself (MirrorMaker 2's
    DefaultReplicationPolicy); else the topic of its name (IdentityReplicationPolicy, Cluster Linking). Two sides of one topic each are a
    pair whatever their names.
    """
    pairings: list[Pairing] = []
    alone: dict[str, str] = {}
    first = 0
    for topic in sorted(source):
        found = _candidates(topic, source, target, maps)
        if len(found) != 1:
            alone[topic] = (
                f"{len(found)} topics of the target may be its copy ({', '.join(found)}): --map names one"
                if found
                else "the target has no copy of it"
            )
            continue
        partitions = sorted({*source[topic], *target[found[0]]})
        pairings.append(Pairing(topic, found[0], source[topic], target[found[0]], partitions, first))
        first += len(partitions)
    if first > MOST_PARTITIONS:
        raise UsageError(f"{first:,} partitions are more than can be compared at once: choose topics with --topic")
    return pairings, alone


def _candidates(
    topic: str,
    source: Mapping[str, Partitions],
    target: Mapping[str, Partitions],
    maps: Sequence[tuple[re.Pattern[str], str]],
) -> list[str]:
    for pattern, name in maps:
        match = pattern.fullmatch(topic)
        if match is not None:
            renamed = match.expand(name)
            return [renamed] if renamed in target else []
    if len(source) == len(target) == 1:
        return list(target)
    prefixed = [name for name in sorted(target) if name.endswith(f".{topic}") and name not in source]
    return prefixed or ([topic] if topic in target else [])
