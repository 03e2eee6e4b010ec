"""Epoch bumps after which batches stand in the log again: the shipped scenario, a real fail-over, and logs made by hand."""

from dataclasses import replace
from pathlib import Path

import pytest

from kaudit.audits.repeats.restarts import MAX_BUMPS
from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.model.severity import Confidence, Severity
from kaudit.scanning.options import Depth, ScanOptions
from kaudit.simulate.output.log_directory import write_run
from kaudit.simulate.output.truth import Truth
from kaudit.simulate.scenario.reading import shipped
from kaudit.simulate.simulation import Simulation
from tests.logs import TRANSACTIONAL, Batch, Log, data

PID = 4000


def result(path: Path, depth: Depth = Depth.CRC):
    return scan(ScanOptions([str(path)], jobs=1, depth=depth), SilentProgress())


def repeated(path: Path, depth: Depth = Depth.CRC):
    return [finding for finding in result(path, depth).findings if finding.code in {"KA701", "KA704"}]


def sent(log: Log, *payloads: bytes, **more: object) -> list[Batch]:
    return [
        log.append(replace(data(PID, 0, sequence, payload=payload), **more))  # type: ignore[arg-type]
        for sequence, payload in enumerate(payloads)
    ]


def again(log: Log, batches: list[Batch], *, epoch: int = 1, keep_time: bool = True) -> None:
    for sequence, batch in enumerate(batches):
        log.append(replace(batch, epoch=epoch, sequence=sequence), keep_time=keep_time)


def written(tmp_path: Path, log: Log, **more: object) -> Path:
    return log.write(tmp_path / "orders-0", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("depth", list(Depth))
def test_six_in_flight_are_found_to_the_record(tmp_path, depth):
    scenario = shipped("six-in-flight")
    truth = Truth(Simulation(scenario, scenario.seed).run())
    write_run(tmp_path / "run", truth.simulation, truth)
    (found,) = repeated(tmp_path / "run", depth)
    assert (found.code, found.severity, found.confidence) == ("KA704", Severity.ERROR, Confidence.CERTAIN)
    assert found.impact.records_duplicated == truth.summary()["duplicate_copies"] == 6
    copied, repetition = found.evidence["copied"], found.evidence["again"]
    assert (copied["first_offset"], copied["last_offset"], copied["last_sequence"]) == (0, 5, 5)
    assert (repetition["first_offset"], repetition["last_offset"], repetition["producer_epoch"]) == (6, 11, 1)


def test_a_real_bump_after_which_nothing_is_repeated_is_silent(evidence):
    assert repeated(evidence.capture("failover-acks1") / "B3-recovered" / "b1") == []


def test_two_batches_suffice_wherever_segments_and_others_lie_between(tmp_path):
    log = Log()
    batches = sent(log, b"a", b"b", b"c")
    for number in range(300):
        log.append(Batch(payload=b"other %d" % number))
    again(log, [*batches[1:], data(PID, 1, 2, payload=b"d")])
    (found,) = repeated(written(tmp_path, log, segment_starts=(2, 100, 304)))
    assert (found.offset, found.last_offset, found.severity) == (303, 304, Severity.ERROR)
    assert (found.evidence["copied"]["first_offset"], found.evidence["copied"]["last_offset"]) == (1, 2)


@pytest.mark.parametrize(
    ("payloads", "resent", "keep_time", "severity"),
    [
        ((b"a", b"b", b"c"), slice(2, None), True, Severity.WARNING),  # one record alone
        ((b"a", b"b", b"c"), slice(1, None), False, Severity.WARNING),  # other times
        ((b"a", b"b", b"c", b"d"), slice(1, 3), True, Severity.WARNING),  # not the last ones
        ((b"a", b"b", b"c"), slice(2, None), False, None),
        ((b"a", b"a", b"a", b"a"), slice(2, None), False, None),  # what is common around is no evidence
        ((b"a", b"b", b"a", b"b"), slice(2, None), False, None),
    ],
)
def test_what_proves_less_is_a_warning_or_nothing(tmp_path, payloads, resent, keep_time, severity):
    log = Log()
    batches = sent(log, *payloads)
    new = replace(data(PID, 1, 9), payload=b"new", timestamp=log.clock + 1)
    again(log, [*batches[resent], new], keep_time=keep_time)
    found = repeated(written(tmp_path, log))
    assert [finding.severity for finding in found] == ([] if severity is None else [severity])


def test_the_longest_repetition_is_taken_though_a_shorter_one_comes_later(tmp_path):
    log = Log()
    first = sent(log, b"a", b"b")
    log.append(data(PID, 0, 2, payload=b"a"))
    again(log, [*first, replace(data(PID, 1, 9), payload=b"new", timestamp=log.clock + 1)])
    (found,) = repeated(written(tmp_path, log))
    assert (found.offset, found.last_offset, found.severity) == (3, 4, Severity.WARNING)  # not up to the end
    assert (found.evidence["copied"]["first_offset"], found.evidence["copied"]["last_offset"]) == (0, 1)


def test_equal_records_in_one_millisecond_on_both_sides_are_silent(tmp_path):
    log = Log()
    batch = replace(data(PID, 0, 0, payload=b"ping"), timestamp=log.clock)
    for sequence in range(6):
        log.append(replace(batch, sequence=sequence), keep_time=True)
    again(log, [batch] * 4)
    assert repeated(written(tmp_path, log)) == []


def test_a_transaction_written_again_is_no_repetition(tmp_path):
    log = Log()
    batches = sent(log, b"a", b"b", b"c", attributes=TRANSACTIONAL)
    again(log, batches)
    assert repeated(written(tmp_path, log)) == []


def test_bumps_that_are_not_looked_into_are_counted(tmp_path):
    log = Log()
    for epoch in range(MAX_BUMPS + 4):
        log.append(data(PID, epoch, 0, payload=b"%d" % epoch))
    found = result(written(tmp_path, log))
    assert "3 more epoch bumps were not searched for repeated records (KA704)" in {
        note.reason for note in found.not_audited
    }
