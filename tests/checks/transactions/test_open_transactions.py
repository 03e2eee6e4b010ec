"""Transactions without an end: what their coordinator says, how long they are idle, and what they hold back."""

from dataclasses import replace

import pytest

from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.model.coordinator import (
    CoordinatorEntry,
    CoordinatorView,
    TopicPartitions,
    TransactionStanding,
    TransactionStatus,
    TransactionValue,
)
from kaudit.model.impact import Impact
from kaudit.scanning.options import ScanOptions
from tests.checks.findings import cost_of
from tests.checks.stories import abort, commit, findings, log_of, plain, position, transactional
from tests.checks.transactions.coordinator_log import (
    COMPLETE_COMMIT,
    ONGOING,
    PREPARE_COMMIT,
    state,
    write_states,
)
from tests.logs import BASE_TIMESTAMP

MINUTE = 60_000
LATE = 20 * MINUTE
"""transaction.max.timeout.ms (15 minutes) and what brokers add before they call a transaction late (KAFKA-13221)."""


def audited(root, states, log, after_ms, **options):
    """Findings about transactions in partition a-0 beside these states, some time after the first possible batch."""
    write_states(root, states)
    log.write(root / "a-0")
    found = scan(ScanOptions([str(root)], now_ms=BASE_TIMESTAMP + after_ms, **options), SilentProgress()).findings
    return [finding for finding in found if finding.code.startswith("KA30")]


def briefly(found):
    return [
        (each.code, each.severity.value, each.confidence.value, each.offset, each.producer_id, each.producer_epoch)
        for each in found
    ]


TWO = log_of(transactional(0, who=7), transactional(0, 2, who=8))
TIMEOUTS = [
    state("slow", ONGOING, [("a", 0)], producer_id=7, timeout_ms=15 * MINUTE),
    state("fast", ONGOING, [("a", 0)], producer_id=8, timeout_ms=2 * MINUTE),
]


@pytest.mark.parametrize(("after_ms", "severities"), [
    (2 * MINUTE, ["note", "note"]),
    (2 * MINUTE + 1, ["note", "warning"]),
    (15 * MINUTE, ["note", "warning"]),
    (15 * MINUTE + 1, ["warning", "warning"]),
])  # fmt: skip
def test_each_has_its_own_timeout(after_ms, severities, tmp_path):
    found = audited(tmp_path, TIMEOUTS, TWO, after_ms)
    assert [(each.code, each.producer_id) for each in found] == [("KA302", 7), ("KA302", 8)]
    assert [each.severity.value for each in found] == severities
    assert [("beyond" in each.message) for each in found] == [severity == "warning" for severity in severities]


def test_how_an_overdue_transaction_is_put(tmp_path):
    slow, fast = audited(tmp_path, TIMEOUTS, TWO, 5 * MINUTE)
    assert slow.message == (
        "the transaction of producer 7 that starts at offset 0 is ongoing within its timeout "
        "(transactional id 'slow', 1 record, idle for 5 min)"
    )
    assert fast.message == (
        "the transaction of producer 8 that starts at offset 1 is ongoing beyond its timeout of 2 min "
        "(transactional id 'fast', 2 records, idle for 5 min)"
    )
    assert (slow.evidence["transactional_id"], fast.evidence["transactional_id"]) == ("slow", "fast")


def test_the_oldest_one_holds_the_last_stable_offset(tmp_path):
    log = log_of(plain(0, who=9), transactional(0, who=7), transactional(0, 2, who=8), plain(1, who=9))
    first, second = findings(log, tmp_path, "KA302")
    assert cost_of(first) == Impact(
        last_stable_offset=1, offsets_invisible=4, invisible_since_timestamp=BASE_TIMESTAMP + 2
    )
    assert cost_of(second) == Impact()
    assert "broker" not in first.evidence
    assert "already stays at 1" in str(second.evidence["broker"])
    assert "of producer 7 " in str(second.evidence["broker"])
    assert [each.evidence["offsets_held_back"] for each in (first, second)] == [4, 3]
    assert [each.evidence["records"] for each in (first, second)] == [1, 2]


def test_what_is_outside_an_older_transaction_hides_nothing_more(tmp_path):
    log = log_of(transactional(0, who=7), transactional(0, 2, who=8), plain(2, who=8), plain(1, who=7))
    outside = findings(log, tmp_path, "KA303")
    assert [(each.producer_id, each.impact.offsets_invisible) for each in outside] == [(8, None), (7, 5)]


TWELVE = [transactional(number, 2 if number == 3 else 1) for number in (0, 1, 2, 3, *range(5, 13))]


@pytest.mark.parametrize("chunk_bytes", [None, 61, 150])
@pytest.mark.parametrize(
    ("parts", "records"),
    [
        ([plain(0, 3), transactional(3, 2)], 2),
        ([transactional(0, 2), transactional(2, 3)], 5),
        ([transactional(0, 2), plain(0, 4, who=2), transactional(2, 3)], 5),
        ([transactional(0, 2), commit(), transactional(2), transactional(3)], 2),
        (TWELVE, 13),
        ([plain(0), plain(0), *TWELVE[1:]], 12),  # a duplicate first: the producer is looked at batch by batch
        ([plain(0), *TWELVE[1:], *[plain(number) for number in range(13, 28)]], 12),
        ([transactional(0), commit(), plain(1), transactional(2)], 1),
    ],
)
def test_how_many_records_are_in_it(parts, records, chunk_bytes, tmp_path):
    log = log_of(*parts)
    found = [each for each in findings(log, tmp_path, "KA302", chunk_bytes=chunk_bytes) if each.producer_id == 1]
    assert [each.evidence["records"] for each in found] == [records]
    first = next(b for b in reversed(log.batches) if b.control) if any(b.control for b in log.batches) else None
    begun = [b for b in log.batches if b.attributes & 0x10 and (first is None or b.base_offset > first.base_offset)]
    assert (found[0].offset, found[0].position) == (begun[0].base_offset, position(log, begun[0].base_offset))


@pytest.mark.parametrize(("idle_ms", "expected"), [
    (LATE, [("KA301", "error", "likely", 0, 7, 0)]),
    (LATE - 1, [("KA302", "warning", "certain", 0, 7, 0)]),
])  # fmt: skip
def test_without_its_coordinator_one_hangs_when_it_is_late(idle_ms, expected, tmp_path):
    found = findings(log_of(transactional(0, who=7)), tmp_path, "KA30", now_ms=BASE_TIMESTAMP + 1 + idle_ms)
    assert briefly(found) == expected
    assert "idle for 20 min" in found[0].message


def test_idle_is_since_the_newest_batch(tmp_path):
    log = log_of(transactional(0, who=7))
    log.clock += LATE
    log.append(transactional(1, who=7))
    (found,) = findings(log, tmp_path, "KA30", now_ms=BASE_TIMESTAMP + LATE + 2)
    assert (found.code, found.evidence["records"]) == ("KA302", 2)
    assert found.evidence["first_timestamp"] == BASE_TIMESTAMP + 1
    assert found.evidence["last_timestamp"] == BASE_TIMESTAMP + LATE + 2


@pytest.mark.parametrize("chunk_bytes", [None, 61])
def test_a_write_behind_the_end_of_its_transaction_may_be_late(chunk_bytes, tmp_path):
    log = log_of(transactional(0), commit(coordinator_epoch=3), transactional(1, 2))
    hangs, late = findings(log, tmp_path, "KA30", now_ms=BASE_TIMESTAMP + 3 + LATE, chunk_bytes=chunk_bytes)
    assert briefly([hangs, late]) == [
        ("KA301", "error", "likely", 2, 1, 0),
        ("KA304", "warning", "possible", 2, 1, 0),
    ]
    for each in (hangs, late):
        assert (each.evidence["coordinator_epoch"], each.evidence["previous_marker_offset"]) == (3, 1)
    assert hangs.explanations[0].speaks_for == (
        "the marker at offset 1 ended this producer's transaction in the same epoch",
    )
    assert late.explanations[0].speaks_for == ()


def test_a_late_write_is_older_than_the_marker(tmp_path):
    log = log_of(transactional(0))
    log.clock += 10
    log.append(commit())
    log.clock -= 5
    log.append(transactional(1))
    _, late = findings(log, tmp_path, "KA30", now_ms=BASE_TIMESTAMP + LATE + 100)
    assert late.explanations[0].speaks_for == ("its timestamp is older than the marker's",)


@pytest.mark.parametrize("chunk_bytes", [None, 61])
@pytest.mark.parametrize("end", [commit(epoch=1), abort(epoch=1)])
def test_a_write_of_an_epoch_that_had_no_marker_is_not_late(end, chunk_bytes, tmp_path):
    """The marker was of the epoch before: a new instance may write, and its transaction hangs for its own reasons."""
    log = log_of(transactional(0), end, transactional(0, epoch=1))
    found = findings(log, tmp_path, "KA30", now_ms=BASE_TIMESTAMP + 3 + LATE, chunk_bytes=chunk_bytes)
    assert [each.code for each in found] == ["KA301"]


@pytest.mark.parametrize(("version", "forms"), [
    ("2.8.2", ["--producer-id 1 --producer-epoch 0 --coordinator-epoch 3"]),
    ("3.0.0", ["--start-offset 2"]),
    ("auto", ["--start-offset 2", "--producer-id 1 --producer-epoch 0 --coordinator-epoch 3"]),
])  # fmt: skip
def test_how_to_abort_it(version, forms, tmp_path):
    """From 3.0 on brokers describe their producers (KIP-664), so that the first offset is enough."""
    log = log_of(transactional(0), commit(coordinator_epoch=3), transactional(1, 2))
    hangs, _ = findings(log, tmp_path, "KA30", now_ms=BASE_TIMESTAMP + 3 + LATE, broker_version=version)
    aborts = [command for command in hangs.next if " abort " in command]
    assert [command.split("--partition 0 ")[1] for command in aborts] == forms


def test_with_its_coordinator_one_hangs_for_certain(tmp_path):
    states = [state("t", ONGOING, [("a", 0)]), state("t", PREPARE_COMMIT, [("a", 0)]), state("t", COMPLETE_COMMIT)]
    log = log_of(transactional(0, who=7), commit(who=7), transactional(1, 2, who=7))
    found = audited(tmp_path, states, log, MINUTE)
    assert briefly(found) == [("KA301", "error", "certain", 2, 7, 0), ("KA304", "error", "certain", 2, 7, 0)]
    assert found[0].message.endswith("will never end: __transaction_state has 't' at CompleteCommit, epoch 0")


def test_a_decided_one_waits_for_its_marker(tmp_path):
    states = [state("t", ONGOING, [("a", 0)]), state("t", PREPARE_COMMIT, [("a", 0)])]
    (found,) = audited(tmp_path, states, log_of(transactional(0, who=7)), LATE * 9)
    assert (found.code, found.severity.value) == ("KA302", "warning")
    assert "decided by its coordinator, but its marker is not in this log yet" in found.message


def test_one_that_was_decided_as_the_log_was_copied_is_healthy(tmp_path):
    """The newest time that a broker wrote is that of the decision: the marker was on its way."""
    write_states(tmp_path, [state("t", ONGOING, [("a", 0)]), state("t", PREPARE_COMMIT, [("a", 0)])])
    log_of(transactional(0, who=7)).write(tmp_path / "a-0")
    (found,) = scan(ScanOptions([str(tmp_path)]), SilentProgress()).findings
    assert (found.code, found.severity.value, found.evidence["clock"]) == ("KA302", "note", "brokers")
    assert [each.innocent for each in found.explanations] == [True]


def view(status, *, epoch=4, listed=True, complete=True):
    partitions = (TopicPartitions("a", (0, 2)),) if listed else (TopicPartitions("a", (1,)), TopicPartitions("b", (0,)))
    value = TransactionValue(
        version=0,
        producer_id=7,
        producer_epoch=epoch,
        timeout_ms=MINUTE,
        status=status,
        status_id=status.value,
        partitions=partitions,
        last_update_timestamp=0,
        start_timestamp=0,
    )
    return CoordinatorView({7: CoordinatorEntry("t", value, 12)}, present=True, complete=complete)


S, V = TransactionStatus, TransactionStanding


@pytest.mark.parametrize(
    ("status", "epoch", "listed", "standing"),
    [
        (S.ONGOING, 4, True, V.ONGOING),
        (S.ONGOING, 4, False, V.NOT_ONGOING),
        (S.ONGOING, 5, True, V.NOT_ONGOING),
        (S.ONGOING, 3, True, V.NOT_ONGOING),
        (S.EMPTY, 4, True, V.NOT_ONGOING),
        (S.COMPLETE_COMMIT, 4, True, V.NOT_ONGOING),
        (S.PREPARE_COMMIT, 4, True, V.DECIDED),
        (S.PREPARE_ABORT, 4, True, V.DECIDED),
        (S.PREPARE_ABORT, 5, True, V.DECIDED),  # a timeout, and transaction version 2, raise the epoch first
        (S.PREPARE_ABORT, 6, True, V.NOT_ONGOING),
        (S.PREPARE_ABORT, 3, True, V.NOT_ONGOING),
        (S.PREPARE_COMMIT, 4, False, V.NOT_ONGOING),
    ],
)
def test_what_the_coordinator_will_do_with_a_transaction_of_epoch_4(status, epoch, listed, standing):
    """TransactionsCommand find-hanging (KIP-664): its epoch, and whether its transaction has the partition."""
    verdict = view(status, epoch=epoch, listed=listed).standing(7, 4, "a", 0)
    assert verdict.standing is standing
    assert ("does not include a-0" in verdict.reason) == (status is S.ONGOING and epoch == 4 and not listed)


def test_who_the_coordinator_does_not_know():
    known = view(S.ONGOING)
    assert known.standing(8, 0, "a", 0).standing is V.NOT_ONGOING
    assert view(S.ONGOING, complete=False).standing(8, 0, "a", 0).standing is V.UNKNOWN
    assert CoordinatorView().standing(8, 0, "a", 0).standing is V.UNKNOWN
    assert (known.transactional_id(7), known.transactional_id(8)) == ("t", None)
    assert known.standing(7, 4, "a", 2).standing is V.ONGOING
    assert known.standing(7, 4, "b", 0).standing is V.NOT_ONGOING


@pytest.mark.parametrize("chunk_bytes", [None, 61])
def test_other_control_records_end_no_transaction(chunk_bytes, tmp_path):
    """ControlRecordType: only ABORT and COMMIT are end markers; brokers of later versions may write other types."""
    log = log_of(transactional(0), replace(commit(), control=(7, 0)), transactional(1), commit(), transactional(2))
    found = findings(log, tmp_path, "KA302", chunk_bytes=chunk_bytes)
    assert [(each.offset, each.evidence["records"]) for each in found] == [(4, 1)]
    open_log = log_of(transactional(0), replace(commit(), control=(7, 0)), transactional(1))
    found = findings(open_log, tmp_path / "open", "KA302", chunk_bytes=chunk_bytes)
    assert [(each.offset, each.evidence["records"]) for each in found] == [(0, 2)]
