"""What becomes of a line that says a broker started: a restart of the leader, of a follower, or nothing that can be placed."""

from types import SimpleNamespace
from typing import Any

import pytest

from kaudit.audits.log_events.placement import Certainty
from kaudit.replay.reconstruction.account import Account
from kaudit.replay.reconstruction.partition_lines import PartitionLines

EVENT: Any = SimpleNamespace(path="logs/b1/server.log")
STOPPED = SimpleNamespace(timestamp_ms=60)


def at(timestamp):
    return None if timestamp is None else SimpleNamespace(timestamp_ms=timestamp)


def restarted(
    leader: str | None = "own",
    *,
    lives: bool = True,
    stopped: Any = None,
    last: int | None = 50,
    up: int | None = 90,
    placed_at: int | None = 80,
    certainty: Certainty = Certainty.ORDER,
    elections_logged: bool = True,
    broker_id: int | None = 1,
) -> tuple[list[dict[str, Any]], int, str | None]:
    """The lines, how many restarts could not be placed, and the leader then. The broker's clock is 1000 ms behind the batches'."""
    before, run = SimpleNamespace(stopped=stopped, last=at(last)), SimpleNamespace(up=at(up))
    log = SimpleNamespace(
        restart=lambda _: (before, run) if lives else None,
        broker_id=broker_id,
        batch_time=lambda one: one.timestamp_ms + 1000,
    )
    other = SimpleNamespace()
    lines: Any = SimpleNamespace(
        _of_path={EVENT.path: log}, _account=Account(), _elections_logged=elections_logged,
        _leader={"own": log, "other": other, None: None}[leader], _noted=lambda line, event: iter([line]),
    )  # fmt: skip
    placement: Any = SimpleNamespace(event=EVENT, certainty=certainty, at_ms=placed_at)
    found: Any = list(PartitionLines._restarted(lines, placement))
    names = {id(log): "own", id(other): "other", id(None): None}
    return found, lines._account.unplaced_restarts, names[id(lines._leader)]


LINE = {"op": "restart", "clean": False, "at": 1050, "started_at": 1090}


@pytest.mark.parametrize(("given", "line"), [
    ({}, LINE),
    ({"stopped": STOPPED}, {**LINE, "clean": True}),
    ({"up": None}, {**LINE, "started_at": 80}),  # where the line that says so stands among the batches
    ({"last": None}, {"op": "restart", "clean": False}),
    ({"certainty": Certainty.OFFSET, "placed_at": None}, {"op": "restart", "clean": False}),
])  # fmt: skip
def test_the_leader_starts_again(given, line):
    assert restarted(**given) == ([line], 0, "own")


@pytest.mark.parametrize(("given", "line"), [
    ({}, {"op": "follower_restart", "clean": False, "replica": 1}),
    ({"stopped": STOPPED}, {"op": "follower_restart", "clean": True, "replica": 1}),
    ({"broker_id": 0}, {"op": "follower_restart", "clean": False, "replica": 0}),
    ({"broker_id": None}, {"op": "follower_restart", "clean": False}),
    ({"elections_logged": False}, {"op": "follower_restart", "clean": False, "replica": 1}),
])  # fmt: skip
def test_a_follower_starts_again(given, line):
    assert restarted("other", **given) == ([line], 0, "other")


def test_a_restart_that_cannot_be_held_against_the_batches_is_counted():
    assert restarted(placed_at=None) == ([], 1, "own")
    assert restarted("other", placed_at=None) == ([], 1, "other")


def test_where_elections_are_not_logged_another_may_lead_behind_the_leaders_restart():
    assert restarted(elections_logged=False) == ([], 1, None)
    assert restarted(None) == ([], 0, None)


def test_the_first_life_of_a_broker_is_no_restart():
    assert restarted(lives=False, placed_at=None) == ([], 0, "own")
