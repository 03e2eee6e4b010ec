"""Public reports of transactions that were left open, and the window of a scan: what still holds is in every window."""

from pathlib import Path

import pytest

import kaudit
from tests.audits.coordinator.test_transaction_state_reader import later
from tests.checks.stories import commit, log_of, plain, transactional
from tests.checks.transactions.coordinator_log import COMPLETE_COMMIT, ONGOING, PREPARE_COMMIT, state, write_states
from tests.logs import BASE_TIMESTAMP

RECORDED = Path(__file__).parents[2] / "data/flink-pooled-ids"
OLD, NEW = (
    "coordinator-txn-6787a3f2-d5b6-4bde-9ef9-0c3bc7cbb1d8-0",
    "coordinator-txn-7787a3f2-d5b6-4bde-9ef9-0c3bc7cbb1d8-0",
)
OFFSETS = ("__consumer_offsets", 3)


def scanned(root, states, log, partition, **options):
    write_states(root, states)
    log.write(root / partition)
    return kaudit.scan(str(root), now=options.pop("now", "2023-11-14T23:20:00Z"), **options)


def only(result, code):
    (found,) = [each for each in result.findings if each.code == code]
    return found


def test_a_stale_coordinator_of_the_iceberg_sink(tmp_path):
    """apache/iceberg#18038: each coordinator has a transactional id of its own, so that none fences the one before."""
    states = [
        state(OLD, ONGOING, [("control", 0), OFFSETS], producer_id=7),
        *(later(state(NEW, status, [("control", 0)], producer_id=8), 5000) for status in (ONGOING, PREPARE_COMMIT)),
    ]
    log = log_of(transactional(0, who=7), transactional(0, who=8), commit(who=8))
    found = only(scanned(tmp_path, states, log, "control-0"), "KA302")
    owner, siblings = found.evidence.owner, found.evidence.siblings
    assert owner is not None
    assert siblings is not None
    assert (owner.program, owner.application) == ("Iceberg Kafka Connect sink", "coordinator")
    assert list(siblings.transactional_ids) == [NEW]
    assert found.evidence.commit_acknowledged == "no"


def test_a_restored_producer_of_an_older_flink(tmp_path):
    """streamnative/kop#1333: open for 42551680 ms with a timeout of 10 s; the state has producerId=25004, epoch=586."""
    name = "Source: Custom Source -> Sink: Unnamed-7df19f87deec5680128845fd9a6ca18d-1"
    states = [state(name, ONGOING, [("out", 0)], producer_id=25004, epoch=586, timeout_ms=10_000)]
    log = log_of(transactional(0, 2, who=25004, epoch=586))
    found = only(scanned(tmp_path, states, log, "out-0"), "KA302")
    assert found.evidence.in_checkpoint == "possible"
    assert (
        "producer id 25004, epoch 586, as in the checkpoint's KafkaTransactionState" in found.evidence.remarks["commit"]
    )
    assert any(f"forceTerminateTransaction --transactionalId '{name}'" in command for command in found.next)


def test_a_checkpoint_before_the_epoch_ran_out(tmp_path):
    """apache/flink-connector-kafka#321 (FLINK-40689): committed as (42, 32766), the coordinator goes on as producer id 43."""
    states = [
        state("orders-7-0", ONGOING, [("out", 0)], producer_id=42, epoch=32766),
        later(state("orders-7-0", PREPARE_COMMIT, [("out", 0)], producer_id=42, epoch=32767), 4000),
        later(state("orders-7-0", COMPLETE_COMMIT, producer_id=43, epoch=0), 4001),
    ]
    log = log_of(transactional(0, 2, who=42, epoch=32766))
    found = only(scanned(tmp_path, states, log, "out-0"), "KA301")
    assert found.evidence.transactional_id == "orders-7-0"
    assert found.evidence.commit_acknowledged == "decided"
    assert "whose commit was decided: copy them first" in found.next[1]


def test_a_job_of_flink_that_was_scaled_down():
    """apache/flink-connector-kafka#314 (FLINK-40626), recorded on 4.1.0: what is true stands in its README.md."""
    result = kaudit.scan(str(RECORDED))
    assert result.verdict is not None
    (blocked,) = result.verdict.blocked
    assert (blocked.offsets_invisible, blocked.last_stable_offset, blocked.open_transactions) == (29, 17, 2)
    older, newer = [found for found in result.findings if found.code == "KA302"]
    for found, holds, producer in ((older, "likely", (6, 0)), (newer, "possible", (4, 2))):
        owner, siblings = found.evidence.owner, found.evidence.siblings
        assert owner is not None
        assert siblings is not None
        assert (owner.program, owner.application, owner.role) == ("Flink KafkaSink", "orders-sink", "subtask 1")
        assert owner.naming == "pooled"
        assert list(siblings.transactional_ids) == ["orders-sink-0-*"]
        assert found.evidence.in_checkpoint == holds
        assert (found.producer_id, found.producer_epoch, found.evidence.records) == (*producer, 5)
        assert found.evidence.aborted_at_timestamp is not None
        assert found.evidence.last_timestamp is not None
        assert abs(found.evidence.aborted_at_timestamp - found.evidence.last_timestamp - 15 * 60_000) < 5000


@pytest.mark.parametrize(
    ("window", "listed", "outside"),
    [
        ({}, True, 0),
        ({"since": "2023-11-14T23:00:00Z"}, True, 1),
        ({"since": "2023-11-14T23:00:00Z", "until": "2023-11-14T23:10:00Z"}, True, 1),
        ({"until": "2023-11-14T22:00:00Z"}, False, 2),
    ],
    ids=["all", "since", "after it began", "before it began"],
)
def test_what_still_hangs_is_in_every_window_that_ends_after_it_began(window, listed, outside, tmp_path):
    log = log_of(plain(0, who=9), plain(0, 2, who=9), transactional(0, who=7))
    assert BASE_TIMESTAMP == 1_700_000_000_000
    result = scanned(tmp_path, [state("other", ONGOING, producer_id=1)], log, "a-0", **window)
    assert [each.code for each in result.findings if each.code == "KA301"] == ["KA301"] * listed
    notes = [note.reason for note in result.not_audited if note.path == "--since, --until"]
    assert notes == ([] if not outside else [notes[0]])
    said = "1 finding is" if outside == 1 else f"{outside} findings are"
    assert all(note.startswith(f"{said} outside of this time and left out") for note in notes)
