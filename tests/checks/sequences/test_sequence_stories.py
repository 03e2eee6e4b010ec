"""Sequences on disk that a leader would have refused, batch by batch, and what each shows.

The rules are those of Kafka's ProducerAppendInfo and ProducerStateEntry: the next sequence follows the last, one of the last
five batches is a duplicate, an epoch begins at 0, and nothing else is appended.
"""

from typing import Any

import pytest

from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.model.impact import Impact
from kaudit.scanning.options import ScanOptions
from tests.checks.stories import Again, Later, Missing, commit, findings, log_of, plain, position, shown, transactional
from tests.logs import WRAP, Batch

SIX = [plain(2 * index, 2) for index in range(6)]
"""Sequences 0..11 in six batches: a broker remembers those that begin with 2."""
OVER_THE_WRAP = [plain(WRAP - 8 + 2 * index, 2) for index in range(6)]
"""The last eight sequences and the first four in six batches."""
TWENTY_OVER_THE_WRAP = [plain(WRAP - 10 + index) for index in range(20)]
"""The last ten sequences and the first ten, a batch each: a broker remembers 5..9."""
LOST, REPEATED = "lost", "repeated"


def impact(kind: str | None, number: int, at_most: int | None = None) -> Impact:
    if kind is None:
        return Impact()
    at_most = number if at_most is None else at_most
    if kind == REPEATED:
        return Impact(records_duplicated=number, records_duplicated_at_most=at_most)
    return Impact(records_lost_at_least=number, records_lost_at_most=at_most)


STORIES: dict[str, tuple[list[Any], dict[str, Any], list[tuple[Any, ...]]]] = {
    # (batches, options, findings: code, severity, confidence, first and last offset, class, evidence, impact)
    "the oldest of the five batches a broker remembers, again": (
        [*SIX, Again(1), plain(12)],
        {},
        [("KA101", "error", "certain", 12, 13, "exact", {"original_offset": 2}, (REPEATED, 2))],
    ),
    "the batch before those five, again": (
        [*SIX, Again(0), plain(12)],
        {},
        [("KA102", "error", "certain", 12, 13, "behind-window", {"window_first_sequence": 2}, (REPEATED, 2))],
    ),
    "a batch of which only the last sequence is remembered": (
        [*SIX, plain(1, 2), plain(12)],
        {},
        [("KA103", "error", "certain", 12, 13, "inside", {}, (REPEATED, 2))],
    ),
    "the first batch again while it is remembered is no restart": (
        [*SIX[:5], Again(0), plain(10)],
        {},
        [("KA101", "error", "certain", 10, 11, "exact", {"original_offset": 0}, (REPEATED, 2))],
    ),
    "the newest of two batches with these sequences is the original": (
        [plain(0, 2), plain(0, 2, payload=b"y"), plain(0, 2, payload=b"z")],
        {"broker_version": "3.9.0"},
        [
            ("KA105", "warning", "likely", 2, 3, "restart", {}, None),
            ("KA105", "warning", "likely", 4, 5, "restart", {}, None),
        ],
    ),
    "the same sequences with other bytes": (
        [plain(0, 2), plain(2, 2), plain(2, 2, payload=b"y"), plain(4)],
        {},
        [("KA101", "warning", "likely", 4, 5, "same-sequences", {"original_offset": 2}, (REPEATED, 0, 2))],
    ),
    "a batch that begins inside the last one and ends beyond it": (
        [plain(0, 5), plain(3, 5), plain(8, 2)],
        {},
        [("KA103", "error", "certain", 5, 9, "overlap", {}, (REPEATED, 2))],
    ),
    "one sequence beyond": (
        [plain(0, 5), plain(4, 2), plain(6)],
        {},
        [("KA103", "error", "certain", 5, 6, "overlap", {}, (REPEATED, 1))],
    ),
    "none beyond": (
        [plain(0, 5), plain(3, 2), plain(5)],
        {},
        [("KA103", "error", "certain", 5, 6, "inside", {}, (REPEATED, 2))],
    ),
    "a batch wholly inside the last one": (
        [plain(0, 10), plain(3, 3), plain(10)],
        {},
        [("KA103", "error", "certain", 10, 12, "inside", {}, (REPEATED, 3))],
    ),
    "two sequences missing": (
        [plain(0, 5), plain(7, 2), plain(9)],
        {},
        [
            (
                "KA104",
                "error",
                "certain",
                5,
                6,
                "gap",
                {"expected_sequence": 5, "missing_sequences": 2, "missing_offsets": 0},
                (LOST, 2),
            )
        ],
    ),
    "one sequence missing": (
        [plain(0, 5), plain(6, 2)],
        {},
        [
            (
                "KA104",
                "error",
                "certain",
                5,
                6,
                "gap",
                {"expected_sequence": 5, "missing_sequences": 1, "missing_offsets": 0},
                (LOST, 1),
            )
        ],
    ),
    "sequences missing where the leader moved: a client may have skipped them": (
        [plain(0, 5), plain(7, 2, leader_epoch=1)],
        {},
        [("KA104", "warning", "possible", 5, 6, "gap", {"missing_sequences": 2}, (LOST, 0, 2))],
    ),
    "sequences missing in a compacted log: the removed ones were not lost": (
        [plain(0, 5), Missing(1), plain(7, 2)],
        {"compacted": True},
        [("KA104", "error", "certain", 5, 5, "gap", {"missing_sequences": 2, "missing_offsets": 1}, (LOST, 1, 2))],
    ),
    "the gap lies at the missing offsets, from the first hole to the last": (
        [Missing(3), plain(0, 5), Missing(1), plain(0, who=2), Missing(2), plain(10, 2), Missing(4), plain(1, who=2)],
        {"compacted": True},
        [
            (
                "KA104",
                "error",
                "certain",
                8,
                11,
                "gap",
                {"missing_sequences": 5, "missing_offsets": 3},
                (LOST, 2, 5),
            )
        ],
    ),
    "as many offsets missing as sequences explain them": (
        [plain(0, 5), Missing(2), plain(7, 2)],
        {"compacted": True},
        [],
    ),
    "sequences missing across the wrap": (
        [plain(WRAP - 2, 1), plain(1, 3), plain(4)],
        {},
        [
            (
                "KA104",
                "error",
                "certain",
                1,
                3,
                "gap",
                {"expected_sequence": WRAP - 1, "missing_sequences": 2, "missing_offsets": 0},
                (LOST, 2),
            )
        ],
    ),
    "sequences that wrap": ([plain(WRAP - 3, 2), plain(WRAP - 1, 3), plain(2)], {}, []),
    # windows whose older batches have higher sequences than the newest
    "a batch from before the wrap, again while it is remembered": (
        [*OVER_THE_WRAP, Again(1), plain(4)],
        {},
        [
            ("KA101", "error", "certain", 12, 13, "exact", {"original_offset": 2}, (REPEATED, 2)),
        ],
    ),
    "the batch that follows the wrap, again": (
        [*OVER_THE_WRAP, Again(4), plain(4)],
        {},
        [
            ("KA101", "error", "certain", 12, 13, "exact", {"original_offset": 8}, (REPEATED, 2)),
        ],
    ),
    "a batch behind a window that holds the wrap": (
        [*OVER_THE_WRAP, Again(0), plain(4)],
        {},
        [
            ("KA102", "error", "certain", 12, 13, "behind-window", {"window_first_sequence": WRAP - 6}, (REPEATED, 2)),
        ],
    ),
    "part of a batch in a window that holds the wrap": (
        [*OVER_THE_WRAP, plain(WRAP - 1, 2), plain(4)],
        {},
        [("KA103", "error", "certain", 12, 13, "inside", {}, (REPEATED, 2))],
    ),
    "the batch at 0 after the wrap, again when it is no longer remembered": (
        [*TWENTY_OVER_THE_WRAP, Again(10), plain(10)],
        {"broker_version": "3.9.0"},
        [("KA102", "error", "certain", 20, 20, "behind-window", {"window_first_sequence": 5}, (REPEATED, 1))],
    ),
    "the six newest batches again, from the one at 0 after the wrap on": (
        [*TWENTY_OVER_THE_WRAP[:16], *[Again(10 + index) for index in range(6)], plain(6)],
        {"broker_version": "3.9.0"},
        [
            ("KA102", "error", "certain", 16, 16, "behind-window", {"window_first_sequence": 1}, (REPEATED, 1)),
            *[
                (
                    "KA101",
                    "error",
                    "certain",
                    17 + index,
                    17 + index,
                    "exact",
                    {"original_offset": 11 + index},
                    (REPEATED, 1),
                )
                for index in range(5)
            ],
        ],
    ),
    "0 with other records after the wrap": (
        [*TWENTY_OVER_THE_WRAP, plain(0, payload=b"y"), plain(1)],
        {"broker_version": "3.9.0"},
        [("KA105", "warning", "likely", 20, 20, "restart", {}, None)],
    ),
    "from before the wrap to beyond the newest sequence": (
        [*OVER_THE_WRAP, plain(WRAP - 2, 8), plain(6)],
        {},
        [("KA103", "error", "certain", 12, 19, "overlap", {}, (REPEATED, 6))],
    ),
    "2^30 - 1 sequences ahead are missing": (
        [plain(0), plain(2**30)],
        {},
        [("KA104", "error", "certain", 1, 1, "gap", {"missing_sequences": 2**30 - 1}, (LOST, 2**30 - 1))],
    ),
    "2^30 ahead are a step back": (
        [plain(0), plain(2**30 + 1)],
        {},
        [("KA102", "error", "certain", 1, 1, "behind-window", {"window_first_sequence": 0}, (REPEATED, 1))],
    ),
    "0 again with other records, before 2.4": (
        [plain(0, 5), plain(0, 5, payload=b"y"), plain(5)],
        {"broker_version": "2.3.1"},
        [("KA105", "note", "likely", 5, 9, "restart", {"count": 1}, None)],
    ),
    "0 again with other records, from 2.4 on": (
        [plain(0, 5), plain(0, 5, payload=b"y"), plain(5)],
        {"broker_version": "2.4.0"},
        [("KA105", "warning", "likely", 5, 9, "restart", {}, None)],
    ),
    "0 again, and offsets missing for all sequences up to the wrap": (
        [plain(WRAP - 3, 2), Missing(1), plain(0, 3), plain(3)],
        {"compacted": True},
        [],
    ),
    "0 again, and too few offsets missing": (
        [plain(WRAP - 4, 2), Missing(1), plain(0, 3)],
        {"compacted": True, "broker_version": "3.9.0"},
        [("KA105", "warning", "likely", 3, 5, "restart", {}, None)],
    ),
    "the epoch's first batch from behind the window is old, not a restart": (
        [plain(0, 5), *[plain(5 + index) for index in range(5)], Again(0)],
        {},
        [("KA102", "error", "certain", 10, 14, "behind-window", {"window_first_sequence": 5}, (REPEATED, 5))],
    ),
    "what came before a restart is not remembered": (
        [plain(0, 5), plain(0, 2, payload=b"y"), plain(2, 2), plain(5)],
        {"broker_version": "3.9.0"},
        [
            ("KA105", "warning", "likely", 5, 6, "restart", {}, None),
            ("KA104", "error", "certain", 9, 9, "gap", {"expected_sequence": 4, "missing_sequences": 1}, (LOST, 1)),
        ],
    ),
    "a first sequence that is not 0, before 2.5": (
        [plain(0, who=2), plain(5, 2)],
        {"broker_version": "2.4.1"},
        [
            (
                "KA106",
                "warning",
                "possible",
                1,
                2,
                "unknown-start",
                {"missing_sequences": 5, "missing_offsets": 0},
                None,
            )
        ],
    ),
    "a first sequence that is not 0, from 2.5 on": (
        [plain(0, who=2), plain(5, 2)],
        {"broker_version": "2.5.0"},
        [("KA106", "note", "possible", 1, 2, "unknown-start", {"missing_sequences": 5, "count": 1}, None)],
    ),
    "a first sequence of 1": (
        [plain(0, who=2), plain(1, 2)],
        {"broker_version": "2.4.1"},
        [("KA106", "warning", "possible", 1, 2, "unknown-start", {"missing_sequences": 1}, None)],
    ),
    "a first batch of which only one offset is missing for each sequence": (
        [plain(0, who=2), Missing(5), plain(5, 2)],
        {"broker_version": "2.4.1", "compacted": True},
        [],
    ),
    "a producer known by a marker alone": (
        [commit(), plain(5, 2)],
        {"broker_version": "3.9.0"},
        [
            (
                "KA106",
                "warning",
                "possible",
                1,
                2,
                "after-marker",
                {"missing_sequences": 5, "missing_offsets": 0},
                None,
            )
        ],
    ),
    "a producer known by a marker alone begins at 0": ([commit(), plain(0, 2)], {"broker_version": "3.9.0"}, []),
    "a producer known by a marker alone, then a hole of its sequences": (
        [plain(0, who=9), commit(), Missing(5), plain(5, 2)],
        {"broker_version": "3.9.0", "compacted": True},
        [],
    ),
    "a producer known by a marker alone, then a hole that is too small": (
        [plain(0, who=9), commit(), Missing(4), plain(5, 2)],
        {"broker_version": "3.9.0", "compacted": True},
        [("KA106", "warning", "possible", 6, 7, "after-marker", {"missing_offsets": 4}, None)],
    ),
    "a producer known by a marker alone, with the hole before it": (
        [plain(0, who=9), Missing(5), commit(), plain(5, 2)],
        {"broker_version": "3.9.0", "compacted": True},
        [],
    ),
    "a client that counts batches": (
        [plain(index, 3) for index in range(4)],
        {},
        [("KA107", "error", "certain", 3, 5, "overlap", {"count": 3, "first_offset": 3, "last_offset": 11}, None)],
    ),
    "a client that skips one sequence": (
        [plain(4 * index, 3) for index in range(4)],
        {},
        [("KA107", "error", "certain", 3, 5, "gap", {"count": 3, "first_offset": 3, "last_offset": 11}, None)],
    ),
    "two such steps are no pattern": (
        [plain(4 * index, 3) for index in range(3)],
        {},
        [
            ("KA104", "error", "certain", 3, 5, "gap", {"missing_sequences": 1}, (LOST, 1)),
            ("KA104", "error", "certain", 6, 8, "gap", {"missing_sequences": 1}, (LOST, 1)),
        ],
    ),
    "a batch that comes late is not lost, and not a repeat": (
        [plain(0, 5), plain(7, 2), plain(5, 2), plain(9)],
        {},
        [
            ("KA104", "error", "certain", 5, 6, "gap", {"missing_sequences": 2}, (LOST, 0)),
            ("KA103", "error", "certain", 7, 8, "inside", {}, (REPEATED, 0)),
        ],
    ),
}


@pytest.mark.parametrize("chunk_bytes", [None, 61])  # no more than one batch begins in 61 bytes
@pytest.mark.parametrize("story", STORIES)
def test_what_is_reported(story, chunk_bytes, tmp_path):
    parts, options, expected = STORIES[story]
    log = log_of(*parts)
    # a first batch in the middle of its sequences stands for a log whose beginning is gone
    found = [
        finding
        for finding in findings(log, tmp_path, "KA10", chunk_bytes=chunk_bytes, **options)
        if finding.code != "KA106" or finding.offset != log.batches[0].base_offset
    ]
    seen = [
        (each.code, each.severity.value, each.confidence.value, each.offset, each.last_offset, each.evidence["class"])
        for each in found
    ]
    assert seen == [row[:6] for row in expected]
    for finding, (*_, evidence, cost) in zip(found, expected, strict=True):
        assert {key: finding.evidence[key] for key in evidence} == evidence
        assert finding.impact == impact(*(cost or (None, 0)))
        offending: Any = finding.evidence["offending"]
        assert offending == shown(log, offending["offset"])
        assert finding.position == position(log, offending["offset"])


@pytest.mark.parametrize("chunk_bytes", [None, 61])
def test_the_batches_around_a_fault_are_shown(chunk_bytes, tmp_path):
    log = log_of(plain(0, 2), plain(0, who=2), plain(2, 2), plain(7, 2), plain(1, who=2), plain(9, 3), plain(12))
    (found,) = findings(log, tmp_path, "KA10", chunk_bytes=chunk_bytes)
    following = shown(log, 8)
    del following["is_transactional"]
    assert found.evidence["previous"] == shown(log, 3)
    assert found.evidence["offending"] == shown(log, 5)
    assert found.evidence["next"] == following
    assert found.evidence["remembered"] == {
        "producer_epoch": 0,
        "last_sequence": 3,
        "window": [
            {"offset": 0, "base_sequence": 0, "last_sequence": 1},
            {"offset": 3, "base_sequence": 2, "last_sequence": 3},
        ],
        "coordinator_epoch": None,
        "current_txn_start_offset": None,
    }


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([plain(0, 5), plain(7)], "sequences 5..6 of producer 1 missing before offset 5 (2 records)"),
        ([plain(0, 5), plain(6)], "sequence 5 of producer 1 missing before offset 5 (1 record)"),
        (
            [plain(index, 3) for index in range(4)],
            "producer 1 advances its sequence by 1 per batch, whatever its number of records, 3 times in a row",
        ),
        (
            [plain(first, count) for first, count in ((0, 3), (5, 1), (8, 2), (12, 1))],
            "producer 1 advances its sequence by 2 more than the number of records, 3 times in a row",
        ),
        (
            [plain(first, count) for first, count in ((0, 3), (2, 4), (5, 2), (6, 5))],
            "producer 1 advances its sequence by 1 less than the number of records, 3 times in a row",
        ),
    ],
)
def test_how_a_wrong_step_is_put(parts, message, tmp_path):
    assert [found.message for found in findings(log_of(*parts), tmp_path, "KA10")] == [message]


@pytest.mark.parametrize(
    ("version", "silence_ms", "severity"),
    [
        ("2.5.0", 7 * 24 * 3_600_000, "note"),
        ("2.5.0", 7 * 24 * 3_600_000 - 1, "warning"),
        ("3.9.0", 24 * 3_600_000, "note"),
        ("3.9.0", 24 * 3_600_000 - 1, "warning"),
    ],
)
def test_a_producer_known_by_a_marker_is_forgotten_in_time(version, silence_ms, severity, tmp_path):
    """producer.id.expiration.ms is a day from 3.4 on (KIP-854), transactional.id.expiration.ms (7 days) before."""
    log = log_of(commit(), Later(silence_ms - 1), commit(who=9), plain(5))
    found = findings(log, tmp_path / "a", "KA10", broker_version=version)
    assert [(each.code, each.severity.value) for each in found] == [("KA106", severity)]
    dated_ahead = log_of(commit(), Later(silence_ms - 1), plain(5), commit(who=9))
    found = findings(dated_ahead, tmp_path / "b", "KA10", broker_version=version)
    assert [(each.code, each.severity.value) for each in found] == [("KA106", "warning")]


def runs_of(batches: list[Batch]) -> int:
    """How many runs there are: batches of one producer, epoch and kind, each in sequence with the one before, none ended.

    A batch at sequence 0 begins one, after the highest sequence too.
    """
    runs, latest = 0, dict[int, tuple[Any, int, int]]()
    for batch in batches:
        who = batch.producer_id
        if batch.control is not None:
            latest.pop(who, None)
            continue
        key = batch.epoch, batch.attributes & 0x10
        known = latest.get(who)
        goes_on = known is not None and known[:2] == (key, batch.sequence) and batch.timestamp - known[2] < 3_600_000
        goes_on &= batch.sequence > 0
        runs += not goes_on
        latest[who] = key, (batch.sequence + batch.count) % WRAP, batch.timestamp
    return runs


MORE_RUNS: dict[str, list[Any]] = {
    "one batch after another": [plain(0), plain(1), plain(0, who=2), plain(2)],
    "a marker between": [transactional(0), commit(), transactional(1), commit()],
    "another kind": [plain(0), transactional(1), transactional(2), plain(3)],
    "another epoch": [plain(0), plain(1, epoch=1), plain(2, epoch=1)],
    "an hour less a millisecond": [plain(0), Later(3_599_998), plain(1)],
    "an hour": [plain(0), Later(3_599_999), plain(1)],
}


@pytest.mark.parametrize("chunk_bytes", [None, 61, 200])
@pytest.mark.parametrize("story", [*STORIES, *MORE_RUNS])
def test_runs_are_counted_alike_wherever_the_log_is_cut(story, chunk_bytes, tmp_path):
    log = log_of(*(STORIES[story][0] if story in STORIES else MORE_RUNS[story]))
    directory = log.write(tmp_path / "orders-0")
    result = scan(ScanOptions([str(directory)], chunk_bytes=chunk_bytes), SilentProgress())
    assert result.summary.runs == runs_of(log.batches)
