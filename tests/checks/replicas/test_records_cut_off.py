"""Records that a new leader began without, by what brokers log and the partition's own log."""

import pytest

from kaudit.checks.epochs.epoch_bumps import bump_at_leader_change
from kaudit.checks.replicas.records_cut_off import records_cut_off
from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.model.severity import Severity
from kaudit.scanning.options import ScanOptions
from tests.checks.broker_state.lines import line
from tests.checks.findings import cautions_of
from tests.logs import Log, data


def leads(broker, epoch, offset, second):
    return line(
        f"[Broker id={broker}] Leader orders-0 with topic id Some(jlEy6dZfT9628LcQjmLQfg) starts at leader epoch {epoch} from offset "
        f"{offset} with partition epoch 3, high watermark 7, ISR [2,3], adding replicas [] and removing replicas [].",
        second,
    )


def follows(broker, end, second):
    return line(
        f"[Broker id={broker}] Follower orders-0 starts at leader epoch 1 from offset {end} with partition epoch 3 and high watermark 5. "
        "Current leader is 2.",
        second,
    )


def cuts(offset, second):
    return line(f"[UnifiedLog partition=orders-0, dir=/data] Truncating to offset {offset}", second)


def log(*after):
    """Ten records under the old leader, these batches under the new one."""
    own = Log()
    own.append(data(7, 0, 0, 10, leader_epoch=0))
    for batch in after:
        own.append(batch)
    return own


def found_in(tmp_path, lines, own=None):
    paths = []
    for broker, texts in lines.items():
        path = tmp_path / f"server-b{broker}.log"
        path.write_text("\n".join(texts) + "\n")
        paths.append(str(path))
    partitions = [] if own is None else [str(own.write(tmp_path / "orders-0"))]
    return scan(ScanOptions(partitions, server_logs=paths), SilentProgress()).findings


LOST = {1: [leads(1, 0, 0, 0), follows(1, 30, 60), cuts(10, 61)], 2: [leads(2, 1, 10, 20)]}
KEPT = {1: [leads(1, 0, 0, 0), follows(1, 10, 60)], 2: [leads(2, 1, 10, 20)]}
BUMPED = data(7, 1, 0, 5, leader_epoch=1)


@pytest.mark.parametrize(
    ("own", "severity", "message"),
    [
        pytest.param(log(data(7, 0, 10, 5, leader_epoch=1)), Severity.NOTE, "nothing is lost", id="idempotent"),
        pytest.param(log(data(-1, -1, -1, 5, leader_epoch=1)), Severity.ERROR, "at least 15 and at most 20 records lost", id="others"),
        pytest.param(log(data(-1, -1, -1, 50, leader_epoch=1)), Severity.WARNING, "at most 20 records lost", id="all-again"),
        pytest.param(log(BUMPED), Severity.ERROR, "at least 15 and at most 20 records lost", id="bumped"),
        pytest.param(None, Severity.WARNING, "at most 20 records lost", id="lines-alone"),
    ],
)  # fmt: skip
def test_a_loss_is_one_finding(tmp_path, own, severity, message):
    (finding,) = found_in(tmp_path, LOST, own)
    assert (finding.code, finding.severity, finding.offset, finding.last_offset) == ("KA612", severity, 10, 29)
    assert finding.message.startswith("broker 1 cut off offsets 10..29 (20 offsets), which the leader of epoch 1 began")
    assert message in finding.message
    assert [event.line for event in finding.evidence.log_events] == [1, 2, 3]


def test_a_log_directory_that_was_lost_is_told_as_that(tmp_path):
    snapshot = line(
        "[ProducerStateManager partition=orders-0] Wrote producer snapshot at offset 30 with 1 producer ids in 4 ms.", 1
    )
    down = line("[BrokerServer id=1] shut down completed", 2)
    made = line("Created log for partition orders-0 in /data/orders-0 with properties {}", 3)
    own = Log()
    own.append(data(-1, -1, -1, 7, leader_epoch=2))
    lines = {1: [leads(1, 0, 0, 0), snapshot, down, made, leads(1, 2, 0, 9)]}
    (finding,) = found_in(tmp_path, lines, own)
    assert (finding.code, finding.offset, finding.last_offset, finding.severity) == ("KA612", 0, 29, Severity.ERROR)
    assert finding.message.startswith(
        "broker 1 came back without offsets 0..29 (30 offsets), which the leader of epoch 2 began"
    )


def test_what_others_still_hold_must_not_be_cut_off_before_it_is_saved(tmp_path):
    snapshot = line(
        "[ProducerStateManager partition=orders-0] Wrote producer snapshot at offset 30 with 1 producer ids in 4 ms.", 1
    )
    down = line("[BrokerServer id=1] shut down completed", 2)
    made = line("Created log for partition orders-0 in /data/orders-0 with properties {}", 3)
    own = Log()
    own.append(data(-1, -1, -1, 7, leader_epoch=2))
    lines = {1: [leads(1, 0, 0, 0), snapshot, down, made, leads(1, 2, 0, 9)], 2: [follows(2, 30, 0)]}
    (finding,) = found_in(tmp_path, lines, own)
    ((act, target),) = cautions_of(finding)
    assert (finding.code, act, target) == ("KA612", "restart", "any other replica of orders-0")
    # once they have cut it off there is nothing to save
    lines[2].append(cuts(0, 20))
    (finding,) = found_in(tmp_path, lines, own)
    assert (finding.code, cautions_of(finding)) == ("KA612", [])


def test_a_restart_that_cuts_nothing_off_is_silent(tmp_path):
    assert not found_in(tmp_path, KEPT, log(data(7, 0, 10, 5, leader_epoch=1)))


def test_a_raised_epoch_is_no_loss_where_the_old_leader_had_no_more(tmp_path):
    codes = {finding.code for finding in found_in(tmp_path, KEPT, log(BUMPED))}
    assert codes == {"KA203"}
    (tmp_path / "alone").mkdir()
    codes = {finding.code for finding in found_in(tmp_path / "alone", {}, log(BUMPED))}
    assert codes == {bump_at_leader_change.code}


def test_a_raised_epoch_is_no_loss_where_the_partition_has_one_replica(tmp_path):
    made = line("Created log for partition orders-0 in /data/orders-0 with properties {}", 0)
    loaded = line("[Partition orders-0 broker=1] Log loaded for partition orders-0 with initial high watermark 0", 0)
    codes = {finding.code for finding in found_in(tmp_path, {1: [made, loaded]}, log(BUMPED))}
    assert codes == {"KA203"}
    (tmp_path / "two").mkdir()
    codes = {
        finding.code for finding in found_in(tmp_path / "two", {1: [made], 2: [made, follows(2, 10, 60)]}, log(BUMPED))
    }
    assert codes == {bump_at_leader_change.code}


def test_it_is_told_once_of_several_copies(tmp_path):
    own = log(data(-1, -1, -1, 50, leader_epoch=1))
    for name in ("b1", "b2"):
        own.write(tmp_path / name / "orders-0")
    paths = [str(tmp_path / name) for name in ("b1", "b2")]
    texts = tmp_path / "server.log"
    texts.write_text("\n".join(LOST[1]) + "\n")
    result = scan(ScanOptions(paths, server_logs=[str(texts)]), SilentProgress())
    assert [finding.code for finding in result.findings] == [records_cut_off.code]


@pytest.mark.parametrize(
    ("lines", "mark", "codes"),
    [
        pytest.param(LOST, 30, {"KA612"}, id="written-before-the-truncation"),
        pytest.param(LOST, 31, {"KA505", "KA612"}, id="of-more-than-was-cut-off"),
        pytest.param(KEPT, 30, {"KA505"}, id="nothing-was-cut-off"),
    ],
)
def test_a_high_watermark_of_before_the_truncation_is_no_loss_of_its_own(tmp_path, lines, mark, codes):
    """Offsets 10..29 were cut off, and the log has grown to 15 since: its checkpoint is written every five seconds."""
    (tmp_path / "replication-offset-checkpoint").write_text(f"0\n1\norders 0 {mark}\n")
    found = found_in(tmp_path, lines, log(BUMPED))
    assert {each.code for each in found} & {"KA505", "KA612"} == codes
