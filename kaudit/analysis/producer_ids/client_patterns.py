"""What kind of client a producer id looks like, and which kinds open the most of them."""

import re
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from kaudit.analysis.producer_ids.partition_join import Joined

BRIEF_MS = 60_000
"""A producer that lived no longer was opened for one piece of work."""
_ONCE, _BRIEF, _LASTING = 0, 1, 2
_LIVES = ("one batch and gone", "gone within a minute", "lasting")
_TOP = 10
_TOPICS_NAMED = 5
_DIGITS = re.compile(r"\d+")
_HEXADECIMAL = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def name_pattern(transactional_id: str) -> str:
    """Return the id with what counts up or is random left out: `payments-12-7` and `payments-3-1` are `payments-#-#`."""
    return _DIGITS.sub("#", _HEXADECIMAL.sub("#", transactional_id))


def pattern_of(joined: Joined, number: int, transactional_id: str | None) -> str:
    """Return the pattern of one id: its transactional id's, else how long it lived."""
    if transactional_id is not None:
        return name_pattern(transactional_id)
    return _LIVES[int(_lives(joined, np.array([number]))[0])]


def top_creators(joined: Joined, chosen: NDArray[np.int64], names: Mapping[int, str]) -> list[dict[str, object]]:
    """Group the chosen ids by transactional id pattern, or by topics and life span; the largest groups first."""
    if not len(chosen):
        return []
    keys = np.zeros(len(chosen), dtype=[("topics", np.int64), ("life", np.int8), ("named", np.int32)])
    keys["topics"] = joined.topics[chosen]
    keys["life"] = _lives(joined, chosen)
    patterns: dict[str, int] = {}
    _name(joined, chosen, names, keys, patterns)
    named = keys["named"] > 0
    keys["topics"][named] = 0
    keys["life"][named] = 0
    kinds, first, inverse, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    batches = np.bincount(inverse.ravel(), weights=joined.batches[chosen], minlength=len(kinds))
    by_number = {number: pattern for pattern, number in patterns.items()}
    creators: list[dict[str, object]] = []
    for kind in np.argsort(-counts, kind="stable")[:_TOP].tolist():
        topics = joined.topics_of(int(chosen[first[kind]]))
        number = int(kinds["named"][kind])
        creators.append(
            {
                "pattern": by_number[number] if number else _LIVES[int(kinds["life"][kind])],
                "transactional_id": bool(number),
                "topics": topics[:_TOPICS_NAMED],
                "topic_count": len(topics),
                "producers": int(counts[kind]),
                "batches_per_producer": round(float(batches[kind]) / int(counts[kind]), 2),
            }
        )
    return creators


def _name(
    joined: Joined,
    chosen: NDArray[np.int64],
    names: Mapping[int, str],
    keys: NDArray[np.void],
    patterns: dict[str, int],
) -> None:
    order = np.argsort(joined.ids[chosen], kind="stable")
    ids = joined.ids[chosen][order]
    for producer_id, name in names.items():
        at = int(np.searchsorted(ids, producer_id))
        if at < len(ids) and int(ids[at]) == producer_id:
            keys["named"][order[at]] = patterns.setdefault(name_pattern(name), len(patterns) + 1)


def _lives(joined: Joined, chosen: NDArray[np.int64]) -> NDArray[np.int8]:
    span = joined.last_timestamp[chosen] - joined.first_timestamp[chosen]
    lives = np.where(span <= BRIEF_MS, _BRIEF, _LASTING)
    return np.where(joined.batches[chosen] <= 1, _ONCE, lives).astype(np.int8)
