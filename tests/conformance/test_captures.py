"""What each capture's own account says must come out of `scan`, and nothing else at error or warning level.

The expectations are taken from the descriptions of the captures (tests/data/captures/*.md) and their truth*.json, not off our output.
"""

import json
from collections import Counter
from pathlib import Path

import pytest

from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.model.result import ScanResult
from kaudit.model.severity import Severity
from kaudit.scanning.options import ScanOptions
from tests.conformance import captures_page

# capture, directory in it, findings at error or warning level as (code, topic, partition, offset), why
EXPECTED: tuple[tuple[str, str, set[tuple[str, str, int, int | None]], str], ...] = (
    ("clients-mix", "logdirs/b1", set(), "every producer id 0..n-1 without a gap, no duplicates, no errors"),
    ("cross-session", "logdirs/b1", set(), "sequences per id are perfect; duplicates are across ids"),
    ("cross-session", "logdirs-live/b1", set(), "the same, broker running"),
    ("failover-acks1", "A1-right-after-kill/b1", set(), "one replica alone shows no loss; divergence is for diff"),
    ("failover-acks1", "A1-right-after-kill/b2", set(), "as b1"),
    ("failover-acks1", "A2-new-leader-old-one-down/b1", set(), "as A1"),
    ("failover-acks1", "A2-new-leader-old-one-down/b2", set(), "as A1"),
    ("failover-acks1", "B2-unclean-leader-old-one-down/b1", set(), "as A1"),
    (
        "failover-acks1",
        "B2-unclean-leader-old-one-down/b2",
        {("KA206", "all-idem-unclean", 0, 6053)},
        "a client's epoch bump at a change of leader is the only trace of the loss",
    ),
    ("failover-acks1", "B3-recovered/b1", {("KA206", "all-idem-unclean", 0, 6053)}, "as B2"),
    ("failover-acks1", "B3-recovered/b3", {("KA206", "all-idem-unclean", 0, 6053)}, "as B2"),
    ("legacy-formats", "logdirs/b0", set(), "no defects; nothing checkable by producer id before magic 2"),
    ("retention-compaction-2.8.2", "logdirs/b0", set(), "holes explained by compaction, heads by retention"),
    ("retention-compaction-2.8.2", "logdirs-mid/b0", set(), "before most cleaning"),
    ("retention-compaction-2.8.2", "logdirs-live/b0", set(), "deleted segments still lying around"),
    (
        "retry-dup",
        "logdirs/b1",
        set(),
        "duplicates without idempotence have no sequences to show them: bytes do, as many as truth.json counts",
    ),
    ("txn-mix-2.8.2", "logdirs/b0", set(), "t-dead is open within its timeout: a note"),
    ("txn-mix-2.8.2", "logdirs-live/b0", set(), "t-dead and t-live are open within their timeouts: notes"),
    ("txn-mix-2.8.2", "logdirs-killed/b0", set(), "as live"),
    ("unknown-pid-2.0.1", "logdirs/b0", set(), "sequence 0 again with the same id and epoch: healthy on 2.0"),
    ("zk-pid-blocks", "logdirs/b0", set(), "nothing wrong in the logs"),
    ("zk-pid-blocks", "logdirs/b1", set(), "nothing wrong in the logs"),
    ("torn-writes", "kill9-before-restart/b1", set(), "the page cache survives kill -9: no torn batch"),
    ("torn-writes", "kill9-after-recovery/b1", set(), "recovered"),
    ("torn-writes", "preallocate-before-restart/b2", set(), "a zero tail of a preallocated segment: a note"),
    ("torn-writes", "preallocate-after-recovery/b2", set(), "the tail was cut"),
    ("torn-writes", "preallocate-clean-stop/b2", set(), "the tail was cut"),
    ("torn-writes", "enospc/tmpfs-dir", {("KA002", "full3", 0, None)}, "a real half-written batch at 716352"),
    ("torn-writes", "enospc/b3-other-dir", set(), "the other disk had room"),
    ("torn-writes", "future-delete/b1-dir0", set(), "moves in progress elsewhere"),
    ("torn-writes", "future-delete-killed/b1-dir0", set(), "moves in progress elsewhere"),
)

SENT_AGAIN_BY_RESTARTS = {
    "KA701": "for the records that truth.json has under two producer ids",
    "KA208": "for the restarts of the application",
}
RETRIES = {
    ("retry-dup", "logdirs/b1"): {
        "KA702": "for the copies truth.json counts",
        "KA703": "where retries changed the order",
    },
    ("cross-session", "logdirs/b1"): SENT_AGAIN_BY_RESTARTS,
    ("cross-session", "logdirs-live/b1"): SENT_AGAIN_BY_RESTARTS,
}
"""Where records were sent again: many warnings, held against truth.json one by one in
tests/audits/repeats/test_non_idempotent_repeats.py."""


def run(path: Path, **options: object) -> ScanResult:
    return scan(ScanOptions([str(path)], **options), SilentProgress())  # type: ignore[arg-type]


def grave(result: ScanResult) -> set[tuple[str, str | None, int | None, int | None]]:
    return {
        (found.code, found.topic, found.partition, found.offset)
        for found in result.findings
        if found.severity > Severity.NOTE
    }


@pytest.mark.parametrize(
    ("capture", "directory", "expected"),
    [(capture, directory, expected) for capture, directory, expected, _ in EXPECTED],
    ids=[f"{capture}/{directory}" for capture, directory, _, _ in EXPECTED],
)
def test_a_capture_yields_what_its_account_says(evidence, capture, directory, expected):
    sent_again = set(RETRIES.get((capture, directory), ()))
    found = grave(run(evidence.capture(capture) / directory))
    assert {entry for entry in found if entry[0] not in sent_again} == expected
    assert {code for code, *_ in found if code in sent_again} == sent_again


def test_clients_that_sent_again_wrote_as_many_copies_as_the_account_counts(evidence):
    capture = evidence.capture("retry-dup")
    truth = json.loads((capture / "truth.json").read_text())
    copies = [found for found in run(capture / "logdirs/b1").findings if found.code == "KA702"]
    counted = sum(entry["duplicate_records"] for topic, entry in truth.items() if not topic.startswith("_"))
    assert sum(found.impact.records_duplicated or 0 for found in copies) == counted > 0


def test_the_page_of_captures_says_what_is_checked_here():
    assert captures_page.PAGE.read_text(encoding="utf-8") == captures_page.page(EXPECTED, RETRIES)


def test_every_capture_is_in_the_table():
    names = {
        path.name.removesuffix(".tar.xz") for path in (Path(__file__).parents[1] / "data/captures").glob("*.tar.xz")
    }
    assert {capture for capture, *_ in EXPECTED} == names


def test_the_half_written_batch_is_at_its_byte(evidence):
    result = run(evidence.capture("torn-writes") / "enospc/tmpfs-dir")
    (torn,) = [found for found in result.findings if found.code == "KA002"]
    assert (torn.position, torn.evidence["bytes"], torn.severity) == (716352, 33216, Severity.WARNING)


def test_the_preallocated_tail_is_a_note_after_the_last_offset(evidence):
    result = run(evidence.capture("torn-writes") / "preallocate-before-restart/b2")
    (zeros,) = [found for found in result.findings if found.code == "KA004"]
    assert (zeros.severity, zeros.evidence["bytes"]) == (Severity.NOTE, 80667)
    (partition,) = [entry for entry in result.partitions if entry.topic == "prealloc"]
    assert partition.log_end_offset == 760


def test_open_transactions_are_exactly_those_of_the_account(evidence):
    result = run(evidence.capture("txn-mix-2.8.2") / "logdirs/b0")
    opened = {
        (found.topic, found.partition, found.offset, found.evidence["records"], found.evidence["transactional_id"])
        for found in result.findings
        if found.code == "KA302"
    }
    assert opened == {("tx-open", 0, 0, 6, "t-dead"), ("tx-a", 1, 155, 3, "t-dead")}
    stable = {(entry.topic, entry.partition): entry.last_stable_offset for entry in result.partitions}
    assert (stable["tx-open", 0], stable["tx-a", 1]) == (0, 155)


def test_consumers_stopped_where_open_transactions_say(evidence):
    capture = evidence.capture("txn-mix-2.8.2")
    views = json.loads((capture / "acks.json").read_text())["read_committed_view_at_live"]
    result = run(capture / "logdirs-live/b0")
    ends = {f"{entry.topic}-{entry.partition}": entry.log_end_offset for entry in result.partitions}
    stable = {name: view["watermarks"][1] for name, view in views.items()}
    costs = {
        f"{entry.topic}-{entry.partition}": (entry.impact.last_stable_offset, entry.impact.offsets_invisible)
        for entry in result.findings
        if entry.impact.last_stable_offset is not None
    }
    assert {name: cost for name, cost in costs.items() if name in views} == {
        name: (offset, ends[name] - offset) for name, offset in stable.items() if offset < ends[name]
    }
    assert costs["tx-a-1"] == (155, 3)


def test_while_the_broker_ran_the_other_client_was_open_too(evidence):
    result = run(evidence.capture("txn-mix-2.8.2") / "logdirs-live/b0")
    names = Counter(found.evidence["transactional_id"] for found in result.findings if found.code == "KA302")
    assert names == {"t-dead": 2, "t-live": 1}


def test_a_dead_clients_transaction_hangs_once_its_time_is_over_without_other_evidence(evidence):
    path = evidence.capture("txn-mix-2.8.2") / "logdirs/b0/tx-open-0"
    now = max(int(str(found.evidence["now_timestamp"])) for found in run(path).findings if found.code == "KA302")
    result = run(path, now_ms=now + 21 * 60_000)
    assert grave(result) == {("KA301", "tx-open", 0, 0)}
    (hanging,) = [found for found in result.findings if found.code == "KA301"]
    assert hanging.confidence.value == "likely"
    assert any("--start-offset 0" in command for command in hanging.next)
    assert any("--coordinator-epoch" in command for command in hanging.next)


def test_fencing_is_reported_as_notes(evidence):
    result = run(evidence.capture("txn-mix-2.8.2") / "logdirs/b0")
    assert {found.severity for found in result.findings if found.code == "KA203"} == {Severity.NOTE}


def test_2_0_clients_start_again_at_zero_below_the_log_start(evidence):
    result = run(evidence.capture("unknown-pid-2.0.1") / "logdirs/b0", broker_version="2.0.1")
    assert grave(result) == set()
    starts = {entry.topic: entry.log_start_offset for entry in result.partitions}
    assert {topic: start for topic, start in starts.items() if topic.startswith("del-")} == {
        "del-old": 24,
        "del-new": 24,
        "del-rdk": 24,
    }


def test_without_the_checkpoint_the_restart_is_still_no_error(evidence):
    path = evidence.capture("unknown-pid-2.0.1") / "logdirs/b0/del-old-0"
    result = run(path, log_start_offset=0)
    assert {found.code for found in result.findings} == {"KA105"}
    assert {found.severity for found in result.findings} == {Severity.NOTE}


@pytest.mark.parametrize(
    ("capture", "directory"),
    [
        ("clients-mix", "logdirs/b1"),
        ("cross-session", "logdirs/b1"),
        ("retention-compaction-2.8.2", "logdirs/b0"),
        ("retry-dup", "logdirs/b1"),
        ("torn-writes", "kill9-before-restart/b1"),
        ("txn-mix-2.8.2", "logdirs/b0"),
        ("zk-pid-blocks", "logdirs/b0"),
    ],
)
def test_batches_and_records_are_those_kafka_dump_log_counted(evidence, capture, directory):
    root = evidence.capture(capture)
    counted: Counter[tuple[str, str]] = Counter()
    for name, entry in json.loads((root / "counts.json").read_text()).items():
        if name.startswith(f"{directory}/") and not entry.get("tool_failed"):
            partition = name.removeprefix(f"{directory}/").split("/")[0]
            counted[partition, "batches"] += entry["batches"]
            counted[partition, "records"] += entry["count_sum"]
    seen: Counter[tuple[str, str]] = Counter()
    for entry in run(root / directory).partitions:
        seen[f"{entry.topic}-{entry.partition}", "batches"] += entry.batches
        seen[f"{entry.topic}-{entry.partition}", "records"] += entry.records
    assert seen == counted


ORACLE_MAIN = {
    "1.1.1": {"KA301": 3, "KA304": 1, "KA204": 1, "KA202": 1, "KA104": 1, "KA101": 1, "KA801": 2},
    "2.0.1": {"KA301": 3, "KA304": 1, "KA204": 1, "KA202": 1, "KA104": 1, "KA101": 1, "KA801": 2},
    "2.8.2": {"KA301": 3, "KA304": 1, "KA204": 1, "KA202": 1, "KA104": 1, "KA101": 4},
    "3.9.1": {"KA204": 1, "KA202": 1, "KA104": 1, "KA101": 4, "KA401": 4},
    "4.2.0": {"KA204": 1, "KA202": 1, "KA104": 1, "KA101": 4, "KA401": 4},
}
"""Derived from the scenarios: 3 transactions no coordinator knows (s29b, s29c, s29d; refused from 3.6 on), the late
write of s29d, epoch 32766 (s38), the injected epoch gap, gap and duplicate (s49, s50), and from 2.5 on re-sends with
other bytes after lost state (s37, s37b, s59). Where the metadata log has the blocks: ids 900001 to 900003 and 2^63 - 1
(s34b), which no broker allocated. Up to 2.0 the same s37 and s37b start again at 0 ten days of record time later: forgotten,
and seen to be."""


@pytest.mark.parametrize("version", ORACLE_MAIN)
def test_log_directories_of_the_oracle(evidence, version):
    result = run(evidence.oracle(version, "logdir") / "main")
    assert Counter(found.code for found in result.findings if found.severity > Severity.NOTE) == ORACLE_MAIN[version]


def test_replicas_after_failover_show_the_lost_tails_after_which_a_client_bumped(evidence):
    result = run(evidence.oracle("3.9.1", "logdir-failover") / "failover")
    # in these the new leader lacked what lay from offset 4 on (lost_from_offset), and then the producer's epoch 1 came
    lost = {("KA206", f"u{number}2-bump", 0, 4) for number in (1, 2, 3)}
    # the scenarios' producer ids are made up: no block of the metadata log has them
    assert grave(result) == {("KA401", "f01-dups", 0, 0), ("KA401", "f07-mixed", 0, 3)} | lost
