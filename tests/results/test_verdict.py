"""The verdict's three lines: what was lost or written twice, what is blocked, what to do first and what not to do before."""

import pytest
from msgspec.structs import replace

from kaudit.model.impact import Act, Caution, Impact
from kaudit.model.result import OUTSIDE_TIME, NotAudited, PartitionBounds, UnlistedFindings
from kaudit.model.severity import Severity, Status
from kaudit.policy.comparison import Scope
from kaudit.policy.policy import Policy
from kaudit.results.selection import Selection
from kaudit.results.verdict import made_verdict, verdict_of
from tests.scan_results import MORNING, incomplete, old_duplicate, scan_result


def found(*impacts, **changes):
    """Findings that cost this, each in a partition of its own."""
    return [
        old_duplicate(**{"partition": number, "impact": impact, "next": (), **changes})
        for number, impact in enumerate(impacts)
    ]


def lost(least, most):
    return Impact(records_lost_at_least=least, records_lost_at_most=most)


def doubled(least, most):
    return Impact(records_duplicated=least, records_duplicated_at_most=most)


def failed(written, written_at_most, missing):
    return Impact(
        records_failed_but_written=written,
        records_failed_but_written_at_most=written_at_most,
        records_failed_not_written=missing,
    )


def lines(*findings, **changes):
    return list(made_verdict(scan_result(*findings, **changes)).lines)


COSTS = {
    "exact": ([lost(5, 5)], "5 records lost in orders-0 (1 error)"),
    "bounds": ([lost(3, 9), lost(0, 1)], "at least 3, at most 10 records lost in orders-0 and orders-1 (2 errors)"),
    "most": ([lost(None, 7)], "at most 7 records lost in orders-0 (1 error)"),
    "many": ([lost(1, 1)] * 4, "4 records lost in 4 partitions (4 errors)"),
    # an upper bound is not dropped because another partition has none
    "one-unknown": (
        [lost(1, 200), lost(1, 200), lost(1, 160), lost(0, 100), lost(0, None)],
        "at least 3, at most 660 records lost in 4 partitions, unknown in 1 (5 errors)",
    ),
    "least-above-most": ([lost(0, 2), lost(5, None)], "at least 5, at most 7 records lost in 1 partition, unknown in 1 (2 errors)"),
    "exact-and-unknown": ([lost(2, 2), lost(0, None)], "at least 2 records lost in 1 partition, unknown in 1 (2 errors)"),
    "no-upper": ([lost(4, None)], "at least 4 records lost in orders-0 (no upper bound) (1 error)"),
    "unknown": ([lost(0, None)], "records may be lost in orders-0: how many is not known (1 error)"),
    "twice": ([doubled(30, 30)], "30 records written twice in orders-0 (1 error)"),
    "twice-at-least": ([doubled(7, None)], "at least 7 records written twice in orders-0 (no upper bound) (1 error)"),
    "twice-at-most": ([doubled(0, 4)], "at most 4 records written twice in orders-0 (1 error)"),
    "both": ([lost(1, 1), doubled(1, 1)], "1 record lost in orders-0; 1 record written twice in orders-1 (2 errors)"),
    "consumers": (
        [lost(2, 2), Impact(records_delivered_again_at_most=5), Impact(records_delivered_again_at_most=1, records_skipped_at_most=1)],
        "2 records lost in orders-0; at most 6 records delivered to consumers again; at most 1 record skipped by consumers (3 errors)",
    ),
    "failed": (
        [failed(588, 2310, 2352), failed(0, 1, 0)],
        "at least 588, at most 2,311 records of failed sends are in the log, at least 2,352 are not (2 errors)",
    ),
    "failed-written": ([failed(1, 1, 0)], "1 record of failed sends is in the log (1 error)"),
    "failed-lost": ([failed(0, 0, 1)], "at least 1 record of failed sends is not in the log (1 error)"),
    "nothing": ([lost(0, 0), Impact()], "no record is known to be lost or written twice (2 errors)"),
}  # fmt: skip


@pytest.mark.parametrize(("impacts", "text"), COSTS.values(), ids=COSTS)
def test_what_was_lost_or_written_twice(impacts, text):
    assert lines(*found(*impacts)) == [text]


def test_replicas_of_a_partition_lost_it_once():
    one = old_duplicate(impact=lost(3, 5), next=())
    assert made_verdict(scan_result(one, replace(one, replica="2"))).records_lost == PartitionBounds(3, 5, 1)


def test_replicas_have_the_same_records_of_failed_sends():
    one = old_duplicate(impact=failed(3, 5, 2), next=())
    (line,) = lines(one, replace(one, replica="2"))
    assert line == "at least 3, at most 5 records of failed sends are in the log, at least 2 are not (2 errors)"


def test_notes_and_accepted_findings_cost_nothing():
    note, known = found(lost(5, 5), lost(6, 6))
    known = replace(known, status=Status.KNOWN)
    result = scan_result(replace(note, severity=Severity.NOTE), known)
    assert lines(*result.findings)[0].startswith("no errors, no warnings in ")
    assert made_verdict(result).severity is None
    assert lines(known)[0].startswith("no new findings in ")


BLOCKED = "read_committed consumers cannot see 29 offsets in orders-0 since 2023-11-14 22:13:20 UTC"
HELD = Impact(offsets_invisible=29, last_stable_offset=17, invisible_since_timestamp=MORNING)


def test_a_pinned_last_stable_offset_is_told_at_any_severity():
    (finding,) = found(HELD)
    assert lines(finding)[1:] == [f"{BLOCKED}: the last stable offset stays at 17"]
    (note,) = found(HELD, severity=Severity.NOTE)
    assert lines(note)[0].startswith("no errors, no warnings; not checked: ")
    assert lines(note)[1:] == [f"{BLOCKED}: within the transaction's timeout"]
    verdict = made_verdict(scan_result(note))
    assert [(each.topic, each.partition, each.offsets_invisible) for each in verdict.blocked] == [("orders", 0, 29)]


def test_whose_the_open_transactions_are_and_who_went_on():
    """reports/flink-40626-lingering: two ids of one subtask are open, the job goes on with another."""
    older = {
        "coordinator": "ongoing",
        "transactional_id": "orders-sink-1-1",
        "siblings": {"transactional_ids": ["orders-sink-0-*"], "count": 1, "committed_timestamp": MORNING + 9},
        "aborted_at_timestamp": MORNING + 900_000,
    }
    newer = older | {"transactional_id": "orders-sink-1-0", "aborted_at_timestamp": MORNING + 902_000}
    (first,) = found(HELD, severity=Severity.NOTE, evidence=older)
    (second,) = found(Impact(), severity=Severity.NOTE, evidence=newer, offset=22)
    # three rows of a terminal hold no more; verdict.blocked and the findings have the rest
    assert lines(first, second)[1] == f"{BLOCKED}: within the transaction's timeout"
    late = [replace(each, severity=Severity.WARNING) for each in (first, second)]
    assert lines(*late)[1] == f"{BLOCKED}: 2 open transactions, transactional ids orders-sink-1-*"
    (blocked,) = made_verdict(scan_result(first, second)).blocked
    assert (blocked.open_transactions, list(blocked.siblings)) == (2, ["orders-sink-0-*"])
    assert blocked.aborted_at_timestamp == MORNING + 900_000
    caution = Caution(Act.ABORT, "the transaction of producer 6 epoch 0", "that destroys 5 records")
    (kept,) = found(replace(HELD, cautions=(caution,)), severity=Severity.NOTE, evidence=older)
    assert lines(kept)[-1] == "do not abort the transaction of producer 6 epoch 0: that destroys 5 records"
    (one,) = found(HELD, evidence={"coordinator": "ongoing", "transactional_id": "shop"})
    assert lines(one)[1].endswith("stays at 17, transactional id shop")


def test_blocked_partitions_together_since_the_first():
    later = replace(HELD, offsets_invisible=1, invisible_since_timestamp=MORNING + 1000)
    both = found(HELD, later, evidence={"transactional_id": "bill-1"})
    text = "read_committed consumers cannot see 30 offsets in orders-0 and orders-1 since 2023-11-14 22:13:20 UTC"
    assert lines(*both)[1] == f"{text}: transactional id bill-1"
    unknown = replace(HELD, offsets_invisible=None, invisible_since_timestamp=-1)
    assert lines(*found(unknown))[1] == (
        "read_committed consumers cannot see what follows in orders-0: the last stable offset stays at 17"
    )


def caution(act, target="b1"):
    return Caution(act, target, "it alone holds offsets 814..932")


ADVICE = {
    "command": (Impact(), {"next": ("kaudit explain KA102",)}, ["first: kaudit explain KA102"]),
    "save": (
        Impact(cautions=(caution(Act.RESTART), caution(Act.DELETE), caution(Act.ELECT, "b2"))),
        {},
        ["first copy b1 to another place; before that do not restart its broker or delete it or let b2 become leader: it alone holds offsets 814..932"],
    ),
    "recovery": (
        Impact(bytes_truncated=512),
        {"replica": "b1"},
        ["first copy replica b1 to another place; before that do not restart its broker: recovery cuts off 512 bytes of orders-0"],
    ),
    "abort": (
        Impact(cautions=(caution(Act.ABORT, "the transaction of producer 6 epoch 0"),)),
        {"next": ("# CAREFUL: destroys 5 records", "kafka-transactions.sh abort --topic orders", "kaudit timeline x")},
        ["do not abort the transaction of producer 6 epoch 0: it alone holds offsets 814..932"],
    ),
    "forbidden-alone": (
        Impact(cautions=(caution(Act.ELECT, "b2"),)),
        {},
        ["do not let b2 become leader: it alone holds offsets 814..932"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("impact", "changes", "text"), ADVICE.values(), ids=ADVICE)
def test_what_to_do_first_and_what_not_before(impact, changes, text):
    assert lines(*found(impact, **changes))[1:] == text


def test_a_healthy_log_in_one_line():
    assert lines() == ["no findings in 2 segments, 1 partition, 1.2 MB; not checked: orders-3"]


def test_it_says_what_it_leaves_out():
    assert lines(not_audited=[NotAudited("a", "why"), NotAudited("b", "denied", unreadable=True)]) == [
        "no findings in 2 segments, 1 partition, 1.2 MB; could not be read: b; not checked: a"
    ]
    outside = [NotAudited(OUTSIDE_TIME, "5 findings are outside of this time and left out; and more")]
    assert lines(not_audited=outside)[0].endswith("1.2 MB; 5 findings are outside of this time and left out")
    (line,) = made_verdict(incomplete()).lines
    assert line.endswith("incomplete: the absence of findings proves nothing")
    assert lines(left_out=2)[0].split("; ")[1] == "2 findings left out by --select and --ignore"
    one = old_duplicate(next=(), impact=lost(1, 1))
    unlisted = UnlistedFindings("KA102", Severity.WARNING, "orders", {1, 2})
    counted = scan_result(one, unlisted=[unlisted])
    counted = replace(counted, summary=replace(counted.summary, omitted=2))
    assert made_verdict(counted).lines == [
        "1 record lost in orders-3 (1 error, 2 warnings); without 2 findings that are not listed"
    ]


def test_decisions_are_made_before_it():
    result = Policy().apply(scan_result(*found(lost(5, 5))), Scope(Selection().includes))
    assert result.verdict is not None
    assert verdict_of(replace(result, findings=())) is result.verdict
