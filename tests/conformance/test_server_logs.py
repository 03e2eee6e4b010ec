"""Server logs of live brokers: every line about a refused batch belongs to an attempt, and attempts made of them replay."""

from pathlib import Path

import pytest

from kaudit.broker.releases.version import Version
from tests.conformance.server_logs import by_release, recordings, table, write_table

PAGE = Path(__file__).parents[2] / "docs" / "log-messages.md"


@pytest.fixture(scope="module")
def releases():
    return by_release()


def test_at_least_eight_releases_are_recorded_with_and_without_zookeeper_and_with_fail_over(releases):
    assert len(releases) >= 8
    assert min(map(Version.parse, releases)) < Version.parse("1.0.0")
    assert max(map(Version.parse, releases)) > Version.parse("4.0.0")
    assert {version for version, name in recordings() if name == "failover"} == {"2.8.2", "3.9.2"}


def test_every_refusal_by_producer_state_that_the_partition_made_has_a_line(releases):
    for version, each in releases.items():
        for one in each:
            for error in ("OUT_OF_ORDER_SEQUENCE_NUMBER", "UNKNOWN_PRODUCER_ID"):
                assert one.logged[error] == one.refused[error], (version, error)


def test_at_least_99_of_100_lines_about_refused_batches_are_matched_with_their_values(releases):
    every = [one for each in releases.values() for one in each]
    assert sum(one.lines for one in every) > 1_000
    assert sum(one.matched for one in every) >= 0.99 * sum(one.lines for one in every)


def test_at_least_99_of_100_refusals_are_replayed_with_their_error(releases):
    every = [one for each in releases.values() for one in each]
    there = sum(one.by_state - one.lost for one in every)
    assert sum(one.remade for one in every) >= 0.99 * there


def test_every_accepted_batch_is_appended_in_replay_where_it_was(releases):
    for version, each in releases.items():
        assert [one.appended for one in each] == [one.accepted for one in each], version


def test_the_clock_of_every_broker_is_the_recorders_own_in_the_zone_it_was_recorded_in(releases):
    zones = {"2.4.1": -210, "3.5.2": 330}
    for version, each in releases.items():
        for clock in (clock for one in each for clock in one.clocks):
            if clock is None:  # the broker of a fail-over that leads nothing
                assert version in {"2.8.2", "3.9.2"}
                continue
            east = zones.get(version, 0)
            assert clock.zone_minutes == east
            assert clock.lower_ms <= -east * 60_000 <= clock.upper_ms
            assert abs(clock.skew_ms) <= 50
            assert sum(clock.agreeing.values()) >= 0.8 * sum(clock.anchors.values())
    wide = [
        clock
        for each in releases.values()
        for one in each
        for clock in one.clocks
        if clock and clock.upper_ms - clock.lower_ms > 1_000
    ]
    assert all(sum(clock.anchors.values()) < 20 for clock in wide)


def test_the_tables_are_as_generated(releases, tmp_path, monkeypatch):
    monkeypatch.setattr("tests.conformance.server_logs.by_release", lambda: releases)
    copy = tmp_path / PAGE.name
    copy.write_text(PAGE.read_text())
    write_table(copy)
    assert copy.read_text() == PAGE.read_text(), "run: python -m tests.conformance.server_logs docs/log-messages.md"
    assert any("| 0.11.0.3 |" in line for line in table())
