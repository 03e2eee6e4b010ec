"""`diff --fingerprint --by records`: the counts and digests of windows as a document, for a site that cannot see the records.

    {"schema": "kaudit.record-fingerprint/1", "tool": {...}, "inputs": [...], "incomplete": false, "not_audited": [...],
     "identity": "key,value,headers,timestamp", "read_committed": false, "milliseconds": 600000, "topics": [
      {"topic": "orders", "appended_times": 0, "cleaned": false, "within": null,
       "partitions": [{"partition": 0, "windows": [[2833333, 1000, "32 hexadecimal digits"]]}]}]}

A window is numbered by its first millisecond, divided by the width. `within` are [first, last] windows where the others are left out.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from kaudit.diff.records.topics import pair_topics, parse_maps
from kaudit.diff.records.windows import DIGEST, Compared, ReadWindows, compare_windows, counted
from kaudit.model.json_record import JsonRecord, document_head
from kaudit.model.ledger import MOST_RANGES, WindowCounts
from kaudit.model.result import NotAudited

SCHEMA = "kaudit.record-fingerprint/1"
NARROWER = 60
"""Windows of an answer to a fingerprint are so many times narrower, a second at least."""
_LEAST_MS = 1000
_MOST = (1 << 63) - 1
_Window = Annotated[int, Meta(ge=-_MOST, le=_MOST)]
_Count = Annotated[int, Meta(ge=0, le=_MOST)]


class WindowDigest(Struct, frozen=True, array_like=True):
    """A window of a partition: its number, its records, and 128 bits of these."""

    window: _Window
    records: _Count
    digest: Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]


class PartitionWindows(Struct, frozen=True):
    """The windows of a partition, ascending."""

    partition: Annotated[int, Meta(ge=0, le=(1 << 31) - 1)]
    windows: Sequence[WindowDigest]

    def rows(self) -> NDArray[Any]:
        """Return rows of DIGEST."""
        values = [
            (each.window, each.records, int(each.digest[:16], 16), int(each.digest[16:], 16)) for each in self.windows
        ]
        return np.array(values, dtype=DIGEST)


class TopicWindows(Struct, frozen=True):
    """The partitions of a topic; `appended_times` records have the broker's time, `complete`: no window is left out for being one too many."""

    topic: str
    appended_times: _Count
    cleaned: bool
    complete: bool
    within: Annotated[Sequence[tuple[_Window, _Window]], Meta(max_length=MOST_RANGES)] | None
    partitions: Sequence[PartitionWindows]


class RecordFingerprint(Struct, frozen=True):
    """What the logs of a site have, by windows of `milliseconds` and by the identity called so."""

    schema: str
    inputs: Sequence[str]
    incomplete: bool
    not_audited: Sequence[NotAudited]
    identity: str
    read_committed: bool
    milliseconds: Annotated[int, Meta(ge=1, le=1 << 62)]
    topics: Sequence[TopicWindows]


class RecordFingerprintError(Exception):
    """The text is not such a document; the message says what is wrong with it."""


class TopicComparison(JsonRecord, frozen=True):
    """Two topics by their fingerprints; `remarks` say why windows may differ though the records do not."""

    source: str
    target: str
    windows: WindowCounts
    remarks: Sequence[str]


class RecordFingerprintDiff(Struct, frozen=True):
    """All pairs of topics of two sites, whose names are given, and by name why others have no partner."""

    names: tuple[str, str]
    inputs: Sequence[str]
    topics: Sequence[TopicComparison]
    alone: Mapping[str, str]
    not_audited: Sequence[NotAudited]
    incomplete: bool


def topic_windows(
    topic: str, partitions: Mapping[int, ReadWindows], within: Sequence[tuple[int, int]] | None
) -> TopicWindows:
    """Return what was read of a topic; of windows those in `within`."""
    parts = []
    for partition, each in sorted(partitions.items()):
        rows = each.digests if within is None else each.digests[_are_within(each.digests["window"], within)]
        windows = [
            WindowDigest(window, records, f"{high:016x}{low:016x}") for window, records, high, low in rows.tolist()
        ]
        parts.append(PartitionWindows(partition, windows))
    read = [each.read for each in partitions.values()]
    return TopicWindows(
        topic,
        sum(each.counts.appended_times for each in read),
        any(each.cleaned for each in read),
        all(each.complete for each in partitions.values()),
        within,
        parts,
    )


def _are_within(windows: NDArray[np.int64], within: Sequence[tuple[int, int]]) -> NDArray[np.bool_]:
    found = np.zeros(len(windows), dtype=np.bool_)
    for first, last in within:
        found |= (windows >= first) & (windows <= last)
    return found


def write_record_fingerprint(fingerprint: RecordFingerprint) -> Iterator[str]:
    """Yield the document piece by piece."""
    head: dict[str, object] = {
        **document_head(SCHEMA),
        "inputs": list(fingerprint.inputs),
    }
    head["incomplete"] = fingerprint.incomplete
    head["not_audited"] = [each.to_dict() for each in fingerprint.not_audited]
    head |= {name: getattr(fingerprint, name) for name in ("identity", "read_committed", "milliseconds")}
    yield json.dumps(head, indent=2)[:-2] + ',\n  "topics": ['
    for number, topic in enumerate(fingerprint.topics):
        yield ("\n    " if not number else ",\n    ") + msgspec.json.encode(topic).decode()
    yield "\n  ]\n}\n"


def read_record_fingerprint(text: str) -> RecordFingerprint:
    """Read the document.

    Raises:
        RecordFingerprintError: it is another document, or a damaged one.

    """
    try:
        document = msgspec.json.decode(text, type=RecordFingerprint)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise RecordFingerprintError(
            f"not a fingerprint of records, which 'kaudit diff --fingerprint --by records DIR' writes: {error}"
        ) from None
    if document.schema != SCHEMA:
        raise RecordFingerprintError(f"a {document.schema} document, not {SCHEMA}")
    names = [(topic.topic, each.partition) for topic in document.topics for each in topic.partitions]
    if len(set(names)) < len(names) or len({topic.topic for topic in document.topics}) < len(document.topics):
        raise RecordFingerprintError("damaged: a partition is there twice")
    for topic in document.topics:
        for each in topic.partitions:
            windows = [one.window for one in each.windows]
            if windows != sorted(set(windows)):
                raise RecordFingerprintError(f"damaged: the windows of {topic.topic}-{each.partition} do not ascend")
    return document


def compare_record_fingerprints(
    names: tuple[str, str], sites: tuple[RecordFingerprint, RecordFingerprint], maps: Iterable[str]
) -> RecordFingerprintDiff:
    """Compare the topics of a source and a target that were made by the same identity and windows."""
    source, target = ({topic.topic: topic for topic in site.topics} for site in sites)
    pairs, alone = _paired(source, target, maps)
    found = [
        TopicComparison(
            one,
            other,
            counted(_compared(source[one], target[other]), sites[0].milliseconds, ""),
            _remarks(source[one], target[other]),
        )
        for one, other in pairs
    ]
    inputs = [*sites[0].inputs, *sites[1].inputs]
    missing = [*sites[0].not_audited, *sites[1].not_audited]
    return RecordFingerprintDiff(names, inputs, found, alone, missing, any(each.unreadable for each in missing))


def _paired(
    source: Mapping[str, TopicWindows], target: Mapping[str, TopicWindows], maps: Iterable[str]
) -> tuple[list[tuple[str, str]], dict[str, str]]:
    sides: list[Any] = [
        {name: {each.partition: each for each in one.partitions} for name, one in side.items()}
        for side in (source, target)
    ]
    pairings, alone = pair_topics(sides[0], sides[1], parse_maps(maps))
    return [(each.source, each.target) for each in pairings], alone


def _compared(source: TopicWindows, target: TopicWindows) -> Compared:
    within = [side.within for side in (source, target) if side.within is not None]
    rows = []
    for side in (source, target):
        found = {each.partition: each.rows() for each in side.partitions}
        for each in within:
            found = {number: own[_are_within(own["window"], each)] for number, own in found.items()}
        rows.append(found)
    return compare_windows(rows[0], rows[1])


def _remarks(source: TopicWindows, target: TopicWindows) -> list[str]:
    sides = source, target
    texts = (
        (
            any(side.appended_times for side in sides),
            "brokers have set timestamps: compare by --identity on one machine",
        ),
        (
            any(side.cleaned for side in sides),
            "a log cleaner has been there, and removes records at its own time on each side",
        ),
        (not all(side.complete for side in sides), "has more windows than are counted: give wider --windows"),
    )
    return [text for holds, text in texts if holds]


def narrower(
    own: RecordFingerprint, other: RecordFingerprint, maps: Iterable[str], *, own_is_source: bool
) -> tuple[int, dict[str, list[tuple[int, int]]]]:
    """Return the width of the windows that an answer has, and within which of these, by topic of `own`."""
    width = max(own.milliseconds // NARROWER, min(own.milliseconds, _LEAST_MS))
    sites = (own, other) if own_is_source else (other, own)
    found = compare_record_fingerprints(("", ""), sites, maps)
    return width, {
        (each.source if own_is_source else each.target): [
            # of records without a timestamp the window before the first stays one
            (-1, -1) if one.start is None else (one.start // width, (one.start + own.milliseconds - 1) // width)
            for one in each.windows.differences
        ]
        for each in found.topics
    }
