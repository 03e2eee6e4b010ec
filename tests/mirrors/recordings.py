"""The recordings of MirrorMaker 2 in tests/data/mirrors, and what consumers read while they were made."""

import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.mirrors.truth import Place

DATA = Path(__file__).parents[1] / "data" / "mirrors"
NAMES = tuple(sorted(path.name.removesuffix(".tar.xz") for path in DATA.glob("*.tar.xz")))
SOURCE, TARGET, PREFIX = "primary", "backup", "primary."


class Read(NamedTuple):
    """What consumers of one isolation level read of a topic on both sides: the number in each record by its place."""

    source: Mapping[Place, int]
    target: Mapping[Place, int]

    def copies(self) -> dict[Place, list[Place]]:
        """Target places by source place of the same record, in the target's order; empty ones too."""
        found: dict[int, list[Place]] = {}
        for place, number in sorted(self.target.items()):
            found.setdefault(number, []).append(place)
        return {place: found.get(number, []) for place, number in self.source.items()}


class Recording:
    """A recording unpacked."""

    def __init__(self, name: str, directory: Path) -> None:
        with tarfile.open(DATA / f"{name}.tar.xz") as archive:
            archive.extractall(directory, filter="data")
        self.source, self.target = directory / SOURCE, directory / TARGET
        self._truth: dict[str, Any] = json.loads((directory / "truth.json").read_text())
        self.topics: list[str] = sorted(self._truth["topics"])

    def read(self, topic: str, isolation: str) -> Read:
        """What consumers read of a topic."""
        sides = self._truth["topics"][topic][isolation]
        return Read(*(_places(sides[side]) for side in (SOURCE, TARGET)))

    def offset_syncs(self, topic: str) -> list[tuple[Place, Place]]:
        """Source and target place of records, as MirrorSourceConnector noted them."""
        return [((part, at), (part, to)) for name, part, at, to in self._truth["offset_syncs"] if name == topic]

    def checkpoints(self, group: str) -> list[tuple[str, int, int, int]]:
        """(topic of the source, partition, source offset, target offset) of a group, as MirrorCheckpointConnector noted them."""
        return [
            (topic.removeprefix(PREFIX), part, at, to)
            for name, topic, part, at, to in self._truth["checkpoints"]
            if name == group
        ]

    def committed(self, side: str, group: str) -> list[tuple[str, int, int]]:
        """(topic, partition, offset) of a group on one side."""
        return [(topic, part, at) for topic, part, at in self._truth["groups"][side][group]]


def _places(by_partition: Mapping[str, list[tuple[int, int]]]) -> dict[Place, int]:
    return {(int(part), offset): number for part, rows in by_partition.items() for offset, number in rows}
