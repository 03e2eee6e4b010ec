"""What kind of client a producer id looks like, and which kinds open the most of them."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kaudit.listings.partition_join import Joined
from kaudit.model.coordinator import name_pattern

BRIEF_MS = 60_000
"""A producer that lived no longer was opened for one piece of work."""
_ONCE, _BRIEF, _LASTING = 0, 1, 2
_LIVES = ("one batch and gone", "gone within a minute", "lasting")
_TOP = 10
_TOPICS_NAMED = 5


def pattern_of(joined: Joined, number: int, transactional_id: str | None) -> str:
    """Return the pattern of one id: its transactional id's, else how long it lived."""
    if transactional_id is not None:
        return name_pattern(transactional_id)
    return _LIVES[int(_lives(joined, np.array([number]))[0])]


class Creator(Struct, frozen=True):
    """Producer ids that one kind of client opened. `producer_id` is the least of them, whose topics stand for all.

    `key` is what kinds differ in: the pattern of transactional ids, or of others the life span and the number of the set of
    topics.
    """

    key: tuple[str, int]
    is_named: bool
    producers: int
    batches: int
    producer_id: int
    topics: Sequence[str]
    topic_count: int

    def with_more(self, other: "Creator") -> "Creator":
        """Return both together, which are of one kind."""
        least = min(self, other, key=lambda creator: creator.producer_id)
        return replace(least, producers=self.producers + other.producers, batches=self.batches + other.batches)

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        return {
            "pattern": self.key[0],
            "transactional_id": self.is_named,
            "topics": list(self.topics),
            "topic_count": self.topic_count,
            "producers": self.producers,
            "batches_per_producer": round(self.batches / self.producers, 2),
        }


def creators(joined: Joined, chosen: NDArray[np.int64], names: Mapping[int, str]) -> list[Creator]:
    """Group the chosen ids by the pattern of their transactional id, or by topics and life span."""
    if not len(chosen):
        return []
    chosen = np.sort(chosen)
    keys = np.zeros(len(chosen), dtype=[("topics", np.int64), ("life", np.int8), ("named", np.int32)])
    keys["topics"] = joined.topics[chosen]
    keys["life"] = _lives(joined, chosen)
    patterns: dict[str, int] = {}
    ids = joined.ids[chosen]
    for producer_id, name in names.items():
        at = int(np.searchsorted(ids, producer_id))
        if at < len(ids) and int(ids[at]) == producer_id:
            keys["named"][at] = patterns.setdefault(name_pattern(name), len(patterns) + 1)
    named = keys["named"] > 0
    keys["topics"][named] = 0
    keys["life"][named] = 0
    kinds, first, inverse, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    batches = np.zeros(len(kinds), dtype=np.int64)
    np.add.at(batches, inverse.ravel(), joined.batches[chosen])
    by_number = {number: pattern for pattern, number in patterns.items()}
    found: list[Creator] = []
    for kind, (topic_set, life, number) in enumerate(kinds.tolist()):
        least = int(chosen[first[kind]])
        topics = joined.topics_of(least)
        found.append(
            Creator(
                (by_number[number] if number else _LIVES[life], topic_set),
                bool(number),
                int(counts[kind]),
                int(batches[kind]),
                int(joined.ids[least]),
                topics[:_TOPICS_NAMED],
                len(topics),
            )
        )
    return found


def top_creators(found: Iterable[Creator]) -> list[Creator]:
    """Return the ten kinds that opened the most ids, those of equal kind taken together."""
    kinds: dict[tuple[bool, tuple[str, int]], Creator] = {}
    for creator in found:
        key = creator.is_named, creator.key
        kinds[key] = kinds[key].with_more(creator) if key in kinds else creator
    return sorted(kinds.values(), key=lambda creator: (-creator.producers, creator.producer_id))[:_TOP]


def _lives(joined: Joined, chosen: NDArray[np.int64]) -> NDArray[np.int8]:
    span = joined.last_timestamp[chosen] - joined.first_timestamp[chosen]
    lives = np.where(span <= BRIEF_MS, _BRIEF, _LASTING)
    return np.where(joined.batches[chosen] <= 1, _ONCE, lives).astype(np.int8)
