"""Epochs on disk, batch by batch: Kafka's ProducerAppendInfo.checkProducerEpoch and checkCoordinatorEpoch, KIP-360, KIP-890."""

from typing import Any

import pytest

from kaudit.model.impact import Impact
from tests.checks.stories import (
    Later,
    Missing,
    abort,
    commit,
    findings,
    log_of,
    plain,
    position,
    shown,
    transactional,
)

DAY_MS = 24 * 3600 * 1000
CODES = ("KA2", "KA3", "KA80")
OLD = {"broker_version": "3.9.0"}

STORIES: dict[str, tuple[list[Any], dict[str, Any], list[tuple[Any, ...]]]] = {
    # (batches, options, findings: code, severity, confidence, first and last offset, producer id and epoch, class)
    "a batch of an older epoch": (
        [plain(0, 2, epoch=3), plain(2, 2, epoch=2), plain(2, 2, epoch=3)],
        OLD,
        [("KA201", "error", "certain", 2, 3, 1, 2, "stale-batch")],
    ),
    "an older epoch changes nothing that is known": (
        [plain(0, 2, epoch=3), plain(0, 2, epoch=2), plain(2, 1, epoch=2), plain(2, 2, epoch=3)],
        OLD,
        [
            ("KA201", "error", "certain", 2, 3, 1, 2, "stale-batch"),
            ("KA201", "error", "certain", 4, 4, 1, 2, "stale-batch"),
        ],
    ),
    "a marker of an older epoch": (
        [transactional(0, 2, epoch=3), commit(epoch=2), plain(2, epoch=3)],
        OLD,
        [("KA201", "error", "certain", 2, 2, 1, 2, "stale-marker")],
    ),
    "a marker of an older epoch, where brokers fail on it": (
        [transactional(0, 2, epoch=3), commit(epoch=2)],
        {"broker_version": "2.4.0"},
        [
            ("KA201", "error", "certain", 2, 2, 1, 2, "stale-marker"),
            ("KA803", "error", "certain", 2, 2, 1, 2, "KA201"),
        ],
    ),
    "a new epoch that does not begin at 0": (
        [plain(0, 2), plain(4, 2, epoch=1), plain(6, epoch=1)],
        OLD,
        [("KA202", "error", "certain", 2, 3, 1, 1, "bump-nonzero")],
    ),
    "a new epoch that begins at 1": (
        [plain(0, 2), plain(1, 2, epoch=1)],
        OLD,
        [("KA202", "error", "certain", 2, 3, 1, 1, "bump-nonzero")],
    ),
    "missing offsets explain the first sequences of a new epoch": (
        [plain(0, 2), Missing(4), plain(4, 2, epoch=1)],
        {**OLD, "compacted": True},
        [],
    ),
    "too few of them do not": (
        [plain(0, 2), Missing(3), plain(4, 2, epoch=1)],
        {**OLD, "compacted": True},
        [("KA202", "error", "certain", 5, 6, 1, 1, "bump-nonzero")],
    ),
    "a client that raises its own epoch": (
        [plain(0, 2), plain(0, 2, epoch=1, payload=b"y")],
        OLD,
        [("KA203", "note", "likely", 2, 3, 1, 1, "client-bump")],
    ),
    "a new instance of a transactional producer": (
        [transactional(0, 2), commit(), transactional(0, 2, epoch=1), commit(epoch=1)],
        OLD,
        [("KA203", "note", "likely", 3, 4, 1, 1, "restart")],
    ),
    "an abort that raised the epoch, and no more": (
        [transactional(0, 2), abort(epoch=1)],
        OLD,
        [("KA203", "note", "likely", 2, 2, 1, 1, "timeout-abort")],
    ),
    "an abort of its own epoch raised nothing": ([transactional(0, 2), abort()], OLD, []),
    "a commit that raised the epoch is transaction version 2": ([transactional(0, 2), commit(epoch=1)], OLD, []),
    "a commit that raised it by two is not": (
        [transactional(0, 2), commit(epoch=2), transactional(0, 2, epoch=3), commit(epoch=3)],
        OLD,
        [("KA203", "note", "likely", 3, 4, 1, 3, "restart")],
    ),
    "transaction version 2 raises the epoch with each transaction": (
        [
            transactional(0, 2),
            commit(epoch=1),
            transactional(0, 2, epoch=1),
            commit(epoch=2),
            transactional(0, 1, epoch=2),
            abort(epoch=3),
        ],
        {"broker_version": "4.2.0"},
        [],
    ),
    "brokers of 4 raise the epoch with each transaction: restarts cannot be recognised": (
        [transactional(0, 2), commit(), transactional(0, 2, epoch=1), commit(epoch=1)],
        {"broker_version": "4.2.0"},
        [],
    ),
    "where the release may be older, a restart is reported": (
        [transactional(0, 2), commit(), transactional(0, 2, epoch=1), commit(epoch=1)],
        {},
        [("KA203", "note", "likely", 3, 4, 1, 1, "restart")],
    ),
    "epoch 31999": ([plain(0, epoch=31999)], OLD, []),
    "epoch 32000, which a client may exhaust": (
        [plain(0, epoch=32000), plain(1, epoch=32000)],
        OLD,
        [("KA204", "warning", "certain", 0, 0, 1, 32000, "nearly-exhausted")],
    ),
    "epoch 32000 of a transactional producer": (
        [transactional(0, epoch=32000), commit(epoch=32000)],
        OLD,
        [("KA204", "note", "certain", 0, 0, 1, 32000, "nearly-exhausted")],
    ),
    "coordinator epochs that rise or stay": (
        [
            transactional(0),
            commit(coordinator_epoch=5),
            transactional(1),
            commit(coordinator_epoch=5),
            transactional(2),
            commit(coordinator_epoch=6),
        ],
        OLD,
        [],
    ),
    "a coordinator epoch that falls": (
        [
            transactional(0),
            commit(coordinator_epoch=5),
            transactional(1),
            commit(coordinator_epoch=4),
            transactional(2),
            commit(coordinator_epoch=5),
        ],
        OLD,
        [("KA205", "warning", "likely", 3, 3, 1, 0, "coordinator-epoch-regression")],
    ),
    "a batch outside its transaction, once for each": (
        [transactional(0), plain(1), plain(2), commit(), transactional(3), plain(4), commit()],
        OLD,
        [
            ("KA303", "error", "certain", 1, 1, 1, 0, None),
            ("KA803", "error", "certain", 1, 1, 1, 0, "KA303"),
            ("KA303", "error", "certain", 5, 5, 1, 0, None),
            ("KA803", "error", "certain", 5, 5, 1, 0, "KA303"),
        ],
    ),
    "the first batch after a marker of the next epoch is of that epoch": (
        [transactional(0, 2), abort(epoch=1), transactional(0, 2, epoch=1), commit(epoch=1)],
        OLD,
        [],
    ),
    "many batches in order after a fault, and another fault": (
        [plain(0, epoch=3), plain(0, epoch=2), *[plain(number, epoch=3) for number in range(1, 15)], plain(0, epoch=2)],
        OLD,
        [
            ("KA201", "error", "certain", 1, 1, 1, 2, "stale-batch"),
            ("KA201", "error", "certain", 16, 16, 1, 2, "stale-batch"),
        ],
    ),
    "an hour less than the shortest expiry of 24": ([plain(0), Later(23 * 3_600_000), plain(1)], OLD, []),
}


@pytest.mark.parametrize("chunk_bytes", [None, 61])  # no more than one batch begins in 61 bytes
@pytest.mark.parametrize("story", STORIES)
def test_what_is_reported(story, chunk_bytes, tmp_path):
    parts, options, expected = STORIES[story]
    log = log_of(*parts)
    found = findings(log, tmp_path, *CODES, chunk_bytes=chunk_bytes, **options)
    seen = [
        (
            each.code,
            each.severity.value,
            each.confidence.value,
            each.offset,
            each.last_offset,
            each.producer_id,
            each.producer_epoch,
            each.evidence.get("class"),
        )
        for each in found
    ]
    assert seen == expected
    for finding in found:
        at_the_end = finding.evidence.get("class") == "timeout-abort"
        assert finding.offset is not None
        assert finding.position == (None if at_the_end else position(log, finding.offset))
        offending: Any = finding.evidence.get("offending")
        if offending is not None and "base_sequence" in offending:
            assert offending == shown(log, finding.offset)
        elif offending is not None:
            assert (offending["offset"], offending["position"]) == (finding.offset, finding.position)


def test_what_a_new_epoch_lost_is_at_most_the_sequences_before_it(tmp_path):
    (found,) = findings(log_of(plain(0, 2), plain(4, 2, epoch=1)), tmp_path, "KA202")
    assert found.impact == Impact(records_lost_at_least=0, records_lost_at_most=4)
    assert (found.evidence["missing_sequences"], found.evidence["missing_offsets"]) == (4, 0)


def test_how_many_epochs_are_left(tmp_path):
    (found,) = findings(log_of(plain(0, epoch=32700)), tmp_path, "KA204")
    assert found.message == "producer 1 is at epoch 32700, 67 below the maximum"


def test_a_raised_epoch_says_from_where_to_where(tmp_path):
    (bumped,) = findings(log_of(plain(0, epoch=4), plain(0, epoch=7, payload=b"y")), tmp_path / "a", "KA203", **OLD)
    assert bumped.message.startswith("the epoch of producer 1 rose from 4 to 7 at offset 1: ")
    assert [command.split()[1] for command in bumped.next] == ["scan", "timeline"]
    (aborted,) = findings(log_of(transactional(0, epoch=4), abort(epoch=5)), tmp_path / "b", "KA203", **OLD)
    assert aborted.message.startswith("the epoch of producer 1 rose to 5 at offset 1: ")
    assert (aborted.file, aborted.segment, set(aborted.absent)) == (None, None, {"file", "segment", "position"})
    assert [command.split()[1] for command in aborted.next] == ["timeline"]


@pytest.mark.parametrize(("silence_ms", "noted"), [(DAY_MS - 1, []), (DAY_MS, [("KA801", "note", 1)])])
def test_a_producer_that_goes_on_after_a_day(silence_ms, noted, tmp_path):
    """It was forgotten if the batch came a whole day after the one before (KIP-854); its sequences say nothing of it."""
    log = log_of(plain(0), Later(silence_ms - 1), plain(1))
    found = findings(log, tmp_path, "KA801", **OLD)
    assert [(each.code, each.severity.value, each.offset) for each in found] == noted


def test_a_new_epoch_after_a_day_does_not_go_on(tmp_path):
    """Its first sequence is the next one of the old epoch by chance: a forgotten epoch begins at any sequence."""
    found = findings(log_of(plain(0), Later(DAY_MS), plain(1, epoch=1)), tmp_path, "KA2", "KA8", **OLD)
    assert [(each.code, each.severity.value, each.evidence["class"]) for each in found] == [
        ("KA202", "error", "bump-nonzero"),
        ("KA801", "warning", "forgotten"),
    ]
