"""KA207: a client that raises its epoch again and again; the bounds hold, and single rises are silent."""

from datetime import UTC, datetime

import pytest

import kaudit
from kaudit.model.severity import Severity
from kaudit.simulate.output.log_directory import write_run
from kaudit.simulate.output.truth import Truth
from kaudit.simulate.scenario.reading import shipped
from kaudit.simulate.simulation import Simulation
from tests.checks.epochs.distress import CODES, distress
from tests.distress_sample import client_lines, deliveries


def test_rises_are_counted_with_the_epochs_that_left_nothing(tmp_path):
    (finding,) = distress(tmp_path, "orders", deliveries())
    evidence = finding.evidence
    assert (finding.code, finding.severity, finding.producer_id) == ("KA207", Severity.WARNING, 7)
    assert (finding.offset, finding.last_offset) == (6, 37)
    assert (evidence["first_epoch"], evidence["last_epoch"], evidence["rises"]) == (0, 8, 6)
    assert (evidence["epochs_here"], evidence["epochs_without_batch"]) == (7, 2)
    # all since the first rise, and the three batches that may have been in flight then
    assert evidence["records"] == 42
    assert evidence["per_minute"] == pytest.approx(8 * 60 / 20, abs=0.1)
    assert "the application may have received an error for up to 42 records that are here" in finding.message
    assert "not_written" not in evidence


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        ({"since": -3}, 1),  # the last rise
        ({"until": 3}, 1),  # the first
        ({"since": -1}, 0),
        ({"until": 2}, 0),
    ],
    ids=["since", "until", "after", "before"],
)
def test_a_series_is_told_where_part_of_it_lies_in_the_time_asked_for(tmp_path, window, expected):
    log = deliveries()
    ((name, place),) = window.items()
    at = datetime.fromtimestamp(log.batches[place].timestamp / 1000, UTC)
    assert len(distress(tmp_path, "orders", log, **{name: at})) == expected


def test_the_clients_log_says_which_are_here_and_which_are_not(tmp_path):
    (finding,) = distress(tmp_path, "orders", deliveries(), client_lines())
    evidence = finding.evidence
    assert (finding.severity, evidence["written_though_failed"], evidence["not_written"]) == (Severity.ERROR, 12, 12)
    assert evidence["failed"][0] == {"producer_epoch": 0, "first_sequence": 4, "last_sequence": 7, "written": 2}
    assert [sends["producer_epoch"] for sends in evidence["failed"]] == [0, 1, 3, 4, 5, 7]
    assert "its log gives up, in epoch 0: sequences 4..5 are here, sequences 6..7 are not" in str(finding.explanations)


def test_three_are_enough_where_they_are_close_together(tmp_path):
    (finding,) = distress(tmp_path, "orders", deliveries(3, 59_000))
    assert (finding.code, finding.evidence["rises"]) == ("KA207", 3)


def test_an_acknowledgement_of_an_older_epoch_proves_nothing(tmp_path):
    late = client_lines().replace("is 3, next", "is 9, next", 1).replace("is 3, next", "is 5, next", 1)
    (finding,) = distress(tmp_path, "orders", deliveries(), late)
    assert (finding.evidence["written_though_failed"], finding.evidence["not_written"]) == (8, 12)
    assert (finding.impact.records_failed_but_written, finding.impact.records_failed_not_written) == (8, 12)


GAVE_UP = "[Producer clientId=shop-1] No inflight batches remaining for orders-0, last ack'd sequence for partition is {}, next sequence is {}. Going to bump epoch and reset sequence numbers."
MOVED = "Resetting sequence number of batch with current sequence {} for partition orders-0 to {} (org.apache.kafka.clients.producer.internals.ProducerBatch)"


def with_lines(epoch, without, after, *texts):
    """The client's lines without those of an epoch that it gave up, and with others after it is assigned `after`."""
    lines = client_lines().splitlines()
    assigned = {int(line.split("with epoch ")[1].split()[0]): line for line in lines if "set to 7" in line}
    if without:
        del lines[lines.index(assigned[epoch]) + 1]
    stamp = assigned[after].split("[Producer")[0]
    place = lines.index(assigned[after]) + 1
    lines[place:place] = [stamp + text for text in texts]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("lines", "written", "not_written"),
    [
        # epoch 0 has 0..5 here, 10 and what follows went on: 6..9 are nowhere, 2 more than 6..7
        (with_lines(0, True, 1, MOVED.format(10, 0), MOVED.format(12, 2)), 10, 14),
        # of epoch 1 4..5, which are here, went on as 0..1 of epoch 2: there 2..3 are nowhere, 0..1 are not
        (with_lines(1, True, 2, MOVED.format(4, 0), MOVED.format(6, 2), GAVE_UP.format(-1, 4)), 10, 12),
        # the last batch may be as long as all that follows
        (with_lines(1, True, 2, MOVED.format(4, 0), GAVE_UP.format(-1, 4)), 10, 10),
        # a line that was cut, and a batch of another partition
        (with_lines(0, False, 1, "Resetting sequence number of batch with current sequence ", MOVED.format(50, 0).replace("orders", "bills")), 12, 12),
    ],
    ids=["moved", "here-before", "length-unknown", "damaged"],
)  # fmt: skip
def test_batches_that_went_on_under_new_sequences_are_not_lost(tmp_path, lines, written, not_written):
    (finding,) = distress(tmp_path, "orders", deliveries(), lines)
    assert (finding.evidence["written_though_failed"], finding.evidence["not_written"]) == (written, not_written)


def test_of_another_client_nothing_is_known(tmp_path):
    (finding,) = distress(tmp_path, "orders", deliveries(), client_lines().replace("set to 7", "set to 8"))
    assert "not_written" not in finding.evidence


def test_the_bounds_hold_in_a_run_whose_truth_is_known(tmp_path):
    scenario = shipped("deliveries-time-out")
    simulation = Simulation(scenario, scenario.seed, 0).run()
    truth = Truth(simulation)
    write_run(tmp_path / "run", simulation, truth)
    (finding,) = [each for each in kaudit.scan([tmp_path / "run"]).findings if each.code in CODES]
    summary = truth.summary()
    assert summary["written_but_not_acknowledged"] == 30
    assert finding.code == "KA207"
    assert finding.evidence["rises"] == 6
    assert finding.evidence.records == 116
