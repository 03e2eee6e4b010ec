"""KA918: transactions with outputs and without the inputs that others of their producer have (tests/data/exactly-once)."""

import numpy as np
import pytest

from kaudit.audits.transactions.marker_outcomes import Markers
from kaudit.audits.transactions.outputs import TransactionOutputs
from kaudit.audits.transactions.transaction_spans import ENDED_TRANSACTION
from kaudit.model.batch_fields import COMMIT_MARKER
from kaudit.source.layout import PartitionDirectory
from tests.checks.groups.recorded import findings
from tests.checks.groups.scanned import evidence_of


@pytest.mark.parametrize("name", ["outputs-alone-3.9", "outputs-alone-4.1"])
def test_outputs_that_a_restart_wrote_again(name):
    (found,) = findings(name, "KA918")
    evidence = evidence_of(found)
    assert found.severity.value == "error"
    assert (evidence["transactions"], evidence["in_transactions"], evidence["written_again"]) == (1, 5, 10)
    assert evidence["first_transaction"]["transactional_id"] == "alone"
    assert [(each["topic"], each["records"]) for each in evidence["outputs"]] == [("outputs", 10)]


@pytest.mark.parametrize(
    "name",
    [
        "healthy-loop-3.9",
        "healthy-loop-4.1",
        "streams-eos-3.9",
        "streams-eos-4.1",
        "streams-alos-4.1",
        "zombie-level",
        "offsets-after",
    ],
)
def test_silent_where_every_transaction_of_a_loop_has_inputs_or_none_has(name):
    assert findings(name, "KA918") == []


def outputs_of(**places):
    """Markers that commit, by partition: (epoch, time) of producer 7 each."""
    markers = []
    for place, own in places.items():
        rows = np.zeros(len(own), dtype=ENDED_TRANSACTION)
        rows["producer_id"], rows["type"], rows["first_offset"] = 7, COMMIT_MARKER, 0
        rows["producer_epoch"], rows["timestamp"] = [epoch for epoch, _ in own], [time for _, time in own]
        rows["marker_offset"] = range(1, len(own) + 1)
        topic = "__consumer_offsets" if place == "group" else place
        markers.append(Markers(PartitionDirectory(topic, 0, "d", "/d", f"/d/{topic}-0", f"{topic}-0", ()), rows))
    return TransactionOutputs(markers)


SPREAD = [(0, time) for time in range(0, 100_000, 10_000)]


@pytest.mark.parametrize(
    ("group", "out", "alone"),
    [
        ([SPREAD[0], *SPREAD[4:]], SPREAD, [10_000, 20_000, 30_000]),
        ([(1, 0), (4, 30_000)], [(1, 0), (2, 10_000), (3, 20_000), (4, 30_000)], [10_000, 20_000]),
        ([(1, 0), (4, 30_000)], [(2, 10_000), (5, 40_000)], [10_000]),
        (SPREAD, SPREAD, []),
        (SPREAD[:5], SPREAD, []),
        (SPREAD[5:], SPREAD, []),
        ([SPREAD[0], (0, 10_000), (0, 11_000), SPREAD[4]], SPREAD[:5], []),
        ([], SPREAD, []),
    ],
    ids=[
        "one epoch",
        "an epoch each",
        "without outputs",
        "none",
        "later ones",
        "earlier ones",
        "times do not tell",
        "no loop",
    ],
)
def test_between_two_transactions_with_inputs(group, out, alone):
    outputs = outputs_of(group=group, out=out) if group else outputs_of(out=out)
    count, rows = outputs.without_inputs(7, -1)
    assert count == len(group)
    assert outputs.rows["timestamp"][rows].tolist() == alone


def test_what_lies_before_a_gap_in_the_log_of_the_group_is_not_looked_at():
    outputs = outputs_of(group=[SPREAD[0], *SPREAD[4:]], out=SPREAD)
    assert [len(rows) for _, rows in (outputs.without_inputs(7, since) for since in (0, 1, 40_000))] == [3, 0, 0]
