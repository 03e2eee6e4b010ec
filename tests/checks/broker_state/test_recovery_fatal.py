"""Logs that a broker cannot load."""

import random

import pytest

from kaudit.broker.producer_state.append_result import Origin, Outcome
from kaudit.broker.producer_state.producer_append_info import add_batch, append_end_txn_marker, validate_end_txn_marker
from kaudit.broker.producer_state.producer_state_entry import UNKNOWN, DataBatch, MarkerBatch
from kaudit.broker.releases.profile import profile_for
from kaudit.checks.broker_state.recovery_fatal import recovery_fatal
from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.scanning.options import ScanOptions
from tests.checks.findings import findings_of
from tests.crafted_sample import snapshot
from tests.logs import Log, data, marker


def test_plain_data_in_a_transaction_stops_every_version(tmp_path):
    log = Log()
    log.append(data(1, 0, 0, transactional=True))
    log.append(data(1, 0, 1))
    for version in ("auto", "2.0.1", "4.3.1"):
        assert findings_of(recovery_fatal, tmp_path, log, broker_version=version) == [("error", 1, 1)]


@pytest.mark.parametrize(("version", "severity"), [("2.4.0", "error"), ("2.4.1", None), ("auto", "note")])
@pytest.mark.parametrize("stale", [marker(1, 0, coordinator_epoch=7), marker(1, 1, coordinator_epoch=5)])
def test_stale_markers_stop_brokers_up_to_2_4_0(tmp_path, version, severity, stale):
    log = Log()
    log.append(data(1, 1, 0, transactional=True))
    log.append(marker(1, 1, coordinator_epoch=7))
    log.append(stale)
    expected = [] if severity is None else [(severity, 1, 2)]
    assert findings_of(recovery_fatal, tmp_path, log, broker_version=version) == expected


@pytest.mark.parametrize(("version", "severity"), [("2.0.0", "error"), ("2.0.1", None), ("auto", "note")])
def test_emptied_markers_stop_brokers_up_to_2_0_0(tmp_path, version, severity):
    log = Log()
    log.append(data(1, 0, 0, transactional=True))
    log.append(marker(1, 0, kept=0))
    log.append(marker(1, 0, kept=0))
    expected = [] if severity is None else [(severity, 1, 1)]
    assert findings_of(recovery_fatal, tmp_path, log, broker_version=version) == expected


@pytest.mark.parametrize(
    ("epochs", "stale", "fails"),
    [
        # recorded: 2.3.0 loads it, the batch of epoch 1 was adopted before the marker
        ((1, 2, 1), marker(1, 1), False),
        ((1, 2), marker(1, 1), True),
        ((1, 2, 1), marker(1, 0), True),
        ((1, 2, 1, 2), marker(1, 1), True),
    ],
)
def test_a_marker_is_held_against_the_state_a_broker_rebuilds(tmp_path, epochs, stale, fails):
    log = Log()
    for epoch in epochs:
        log.append(data(1, epoch, 0, transactional=True))
    log.append(stale)
    expected = [("error", 1, len(epochs))] if fails else []
    assert findings_of(recovery_fatal, tmp_path, log, broker_version="2.3.0") == expected


@pytest.mark.parametrize(
    ("coordinator_epochs", "fatal"),
    # the first marker below the one before it stops a broker; one that is not, though below the highest, does not
    [((7, 5, 6), [1]), ((7, 5, 5, 4), [1, 3]), ((5, 7, 7), [])],
)
def test_a_coordinator_epoch_is_held_against_the_marker_before(tmp_path, coordinator_epochs, fatal):
    log = Log()
    for epoch in coordinator_epochs:
        log.append(marker(1, 1, coordinator_epoch=epoch))
    expected = [("error", 1, offset) for offset in fatal]
    assert findings_of(recovery_fatal, tmp_path, log, broker_version="2.4.0") == expected


@pytest.mark.parametrize(
    ("offset", "content", "named"),
    [
        (1, snapshot([]), False),
        (2, snapshot([]), True),
        (3, snapshot([]), True),
        (4, snapshot([]), False),  # a broker deletes a snapshot beyond the log's end before it loads one
        (3, b"", False),  # and a corrupt one
    ],
)
def test_a_log_that_a_snapshot_lets_brokers_load_is_not_called_unloadable(tmp_path, offset, content, named):
    log = Log()
    log.append(data(1, 0, 0, transactional=True))
    log.append(data(1, 0, 1))
    log.append(data(2, 0, 0))
    directory = log.write(tmp_path / "orders-0")
    (directory / f"{offset:020d}.snapshot").write_bytes(content)
    (directory / f"{3:020d}.timeindex").write_bytes(b"")  # its name lies between those of snapshots
    result = scan(ScanOptions([str(directory)]), SilentProgress())
    without = f" without {offset:020d}.snapshot" if named else ""
    assert [found.message for found in result.findings if found.code == "KA803"] == [
        f"no broker can load this log{without}: the batch of producer 1 at offset 1 stops them (KA303)"
    ]


@pytest.mark.parametrize("seed", range(20))
def test_fatal_are_the_markers_that_a_broker_refuses_where_it_loads_a_log(seed, tmp_path):
    """As `kaudit replay` has the rules, which recorded brokers confirm: state by state, the marker taken over all the same."""
    rng, profile = random.Random(seed), profile_for("2.3.0")
    log, state, fatal = Log(), UNKNOWN, set()
    for _ in range(60):
        epoch, coordinator_epoch = rng.choice((3, 3, 3, 4, 2)), rng.choice((7, 7, 7, 8, 6))
        if rng.random() < 0.5:
            placed = log.append(marker(1, epoch, coordinator_epoch=coordinator_epoch))
            end = MarkerBatch(1, epoch, coordinator_epoch, placed.base_offset, placed.timestamp, commit=True)
            if validate_end_txn_marker(state, end, profile, Origin.REPLICATION)[1].outcome is Outcome.REJECTED:
                fatal.add(("error", 1, placed.base_offset))
            state = append_end_txn_marker(state, end, profile)
        else:
            placed = log.append(data(1, epoch, 0, transactional=True))
            at = placed.base_offset
            state = add_batch(
                state, DataBatch(1, epoch, 0, 0, at, at, placed.timestamp, is_transactional=True), profile
            )
    assert len(fatal) > 5
    assert set(findings_of(recovery_fatal, tmp_path, log, broker_version="2.3.0")) == fatal
