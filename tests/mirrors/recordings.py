"""The recordings of MirrorMaker 2 in tests/data/mirrors, and what consumers read while they were made."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kaudit.diff.records.group_offsets import GroupOffset
from tests.mirrors.truth import Place
from tests.unpacked import unpacked

DATA = Path(os.environ.get("KAUDIT_MIRRORS", Path(__file__).parents[1] / "data" / "mirrors"))
"""The variable names recordings that were made anew: `.ci/full mirror`."""
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

    def __init__(self, name: str) -> None:
        directory = unpacked(DATA / f"{name}.tar.xz")
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

    def checkpoints(self, topic: str) -> list[tuple[str, int, int, int]]:
        """(name, partition, source offset, target offset) of what MirrorCheckpointConnector noted; `name` is that in `committed`."""
        return [
            (str(number), part, at, to)
            for number, (_, name, part, at, to) in enumerate(self._truth["checkpoints"])
            if name == PREFIX + topic
        ]

    def committed(self) -> list[GroupOffset]:
        """The source offset of every checkpoint, as of a group of its own."""
        return [
            GroupOffset(str(number), topic.removeprefix(PREFIX), part, at)
            for number, (_, topic, part, at, _) in enumerate(self._truth["checkpoints"])
        ]


def _places(by_partition: Mapping[str, list[tuple[int, int]]]) -> dict[Place, int]:
    return {(int(part), offset): number for part, rows in by_partition.items() for offset, number in rows}
