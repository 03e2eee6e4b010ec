"""What a seed draws within a scenario's bounds: every value occurs, and nothing beyond; rates are shares of messages."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from kaudit.broker.errors import KafkaError
from kaudit.simulate.network import Loss, MarkerLoss
from kaudit.simulate.random_faults import ScenarioFaults, draw_faults
from kaudit.simulate.requests import EndTxnRequest, PartitionProduceData, ProduceRequest
from kaudit.simulate.scenario.model import RandomFaults
from kaudit.simulate.scenario.reading import parse_scenario
from tests.simulate.test_producer_parts import batch

SCENARIO = """
[cluster]
brokers = 3
[[topics]]
name = "a"
partitions = 2
[[topics]]
name = "b"
[[producers]]
name = "p"
[[producers]]
name = "q"
{more}
[random]
within_ms = [10, 12]
down_ms = [20, 22]
pause_ms = [30, 32]
resend = [0, 2]
disk_delay_ms = [50, 52]
jump_ms = [-1, 1]
{kind} = [{low}, {high}]
"""
BROKERS, TIMES, PAUSES = {1, 2, 3}, {10, 11, 12}, {30, 31, 32}
PARTITIONS = {"a-0", "a-1", "b-0"}
EXPECTED: dict[str, dict[str, dict[str, set[Any]]]] = {
    "kill_brokers": {"kill-broker": {"broker": BROKERS, "restart_after_ms": {20, 21, 22}}},
    "stop_brokers": {"stop-broker": {"broker": BROKERS, "restart_after_ms": {20, 21, 22}}},
    "pause_brokers": {"pause-broker": {"broker": BROKERS, "for_ms": PAUSES}},
    "kill_producers": {
        "kill-producer": {"producer": {"p", "q"}, "restart_after_ms": {20, 21, 22}, "resend": {0, 1, 2}},
    },
    "delete_records": {"delete-records": {"partition": PARTITIONS}},
    "disconnect_brokers": {"disconnect-brokers": {"brokers": {(1,), (2,), (3,)}, "for_ms": PAUSES}},
    "slow_disks": {"slow-disk": {"broker": BROKERS, "for_ms": PAUSES, "delay_ms": {50, 51, 52}}},
    "jump_clocks": {
        "jump-broker-clock": {"broker": BROKERS, "by_ms": {-1, 0, 1}, "for_ms": PAUSES},
        "jump-producer-clock": {"producer": {"p", "q"}, "by_ms": {-1, 0, 1}, "for_ms": PAUSES},
    },
    "move_leaders": {"move-leader": {"partition": PARTITIONS}},
    "use_producer_ids": {"use-producer-ids": {"broker": BROKERS}},
}  # fmt: skip


def drawn(kind: str, low: int, high: int, more: str = ""):
    scenario = parse_scenario(SCENARIO.format(kind=kind, low=low, high=high, more=more), "random")
    for seed in range(80):
        yield list(draw_faults(scenario, random.Random(seed)))


@pytest.mark.parametrize("kind", EXPECTED)
def test_events_take_every_value_within_their_bounds_and_no_other(kind):
    runs = list(drawn(kind, 1, 3))
    assert {len(faults) for faults in runs} == {1, 2, 3}
    faults = [fault for run in runs for fault in run]
    assert {type(fault).__struct_config__.tag for fault in faults} == set(EXPECTED[kind])
    for tag, fields in EXPECTED[kind].items():
        own = [fault for fault in faults if type(fault).__struct_config__.tag == tag]
        assert {fault.at_ms for fault in own} == TIMES
        for name, values in fields.items():
            assert {getattr(fault, name) for fault in own} == values, name
    assert [len(run) for run in drawn(kind, 2, 2)] == [2] * 80
    assert list(drawn(kind, 0, 0)) == [[]] * 80


def test_the_transaction_log_moves_too_where_there_is_one():
    more = 'config = { "transactional.id" = "t" }\ntransaction = {}'
    partitions = {fault.partition for faults in drawn("move_leaders", 2, 2, more) for fault in faults}
    assert partitions == PARTITIONS | {"__transaction_state-0"}


def test_without_bounds_nothing_happens():
    text = SCENARIO.split("[random]", maxsplit=1)[0].format(more="")
    scenario = parse_scenario(text, "quiet")
    assert list(draw_faults(scenario, random.Random(1))) == []


# -- messages -----------------------------------------------------------------------------------------------------------

PARTS = tuple(PartitionProduceData(("a", number), batch(1), b"", -1, -1, -1, 1, 0, False) for number in (0, 1))
PRODUCE = {acks: ProduceRequest(PARTS, acks, 1, None, 9) for acks in (-1, 0, 1)}
END = EndTxnRequest("t", (1, 0), True, 3, ("a", 0))
MANY = 4000


def faults_of(**rates: Any) -> ScenarioFaults:
    return ScenarioFaults((), RandomFaults(**rates), random.Random(3))


def share(found: Sequence[object]) -> float:
    return sum(each is not None for each in found) / len(found)


@pytest.mark.parametrize(
    ("rate", "of", "produce"),
    [
        ("request_loss", "request", True),
        ("response_loss", "response", True),
        ("transactional_request_loss", "request", False),
        ("transactional_response_loss", "response", False),
    ],
)
def test_messages_are_lost_by_their_rate(rate, of, produce):
    faults = faults_of(**{rate: 0.25, "silent_share": 0.75})
    asked = {
        (kind, one): [getattr(faults, kind)("p", request, 1) for _ in range(MANY)]
        for kind in ("request", "response")
        for one, request in ((True, PRODUCE[-1]), (False, END))
    }
    for (kind, one), found in asked.items():
        expected = 0.25 if (kind, one) == (of, produce) else 0
        assert abs(share(found) - expected) < 0.03
    lost = [loss for loss in asked[of, produce] if loss is not None]
    assert abs(sum(loss.silent for loss in lost) / len(lost) - 0.75) < 0.06
    assert abs(sum(loss.behind for loss in lost) / len(lost) - 0.5) < 0.06
    always = getattr(faults_of(**{rate: 1.0}), of)("p", PRODUCE[1] if produce else END, 1)
    assert always.silent is False


def test_markers_are_lost_by_their_rate():
    found = [faults_of(marker_loss=0).marker("a-0", 1), *(faults_of(marker_loss=1).marker("a-0", 1) for _ in range(2))]
    assert [each is None for each in found] == [True, False, False]
    faults = faults_of(marker_loss=0.25, silent_share=0.75)
    lost = [loss for loss in (faults.marker("a-0", number) for number in range(MANY)) if loss is not None]
    assert abs(len(lost) / MANY - 0.25) < 0.03
    assert abs(sum(loss.response for loss in lost) / len(lost) - 0.5) < 0.06
    assert abs(sum(loss.silent for loss in lost) / len(lost) - 0.75) < 0.06


def test_errors_are_those_a_broker_may_answer_to_such_a_request():
    """What acks=all alone can be answered comes behind the append, of DelayedProduce; acks=0 and 1 wait for nobody."""
    faults = faults_of(error_responses=0.5)
    for acks, request in PRODUCE.items():
        errors = [faults.error("p", request, 1) for _ in range(MANY)]
        assert abs(share(errors) - 0.5) < 0.04
        kinds = {(each.error.name, each.after_append) for each in errors if each is not None}
        before = {("NOT_LEADER_OR_FOLLOWER", False), ("CORRUPT_MESSAGE", False)}
        behind = {
            ("NOT_ENOUGH_REPLICAS", False), ("NOT_LEADER_OR_FOLLOWER", True),
            ("NOT_ENOUGH_REPLICAS_AFTER_APPEND", True), ("REQUEST_TIMED_OUT", True),
        }  # fmt: skip
        assert kinds == (before | behind if acks == -1 else before)
        assert {each.partition for each in errors if each is not None} == {("a", 0), ("a", 1)}
    errors = [faults.error("p", END, 1) for _ in range(MANY)]
    assert {each.error for each in errors if each is not None} == {
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.CONCURRENT_TRANSACTIONS,
    }
    assert {(each.partition, each.after_append) for each in errors if each is not None} == {(None, False)}
    assert faults_of().error("p", END, 1) is None


def test_listed_faults_befall_the_messages_they_name():
    listed = """
[[faults]]
kind = "lose-request"
producer = "q"
request = 3
times = 2
silent = true
[[faults]]
kind = "lose-response"
api = "EndTxn"
request = 1
behind = false
[[faults]]
kind = "error-response"
request = 2
error = "CORRUPT_MESSAGE"
partition = "a-1"
after_append = true
[[faults]]
kind = "lose-marker"
partition = "b-0"
marker = 4
times = 2
response = true
"""
    text = SCENARIO.split("[random]", maxsplit=1)[0].format(more="") + listed
    faults = ScenarioFaults(parse_scenario(text, "listed").faults, None, random.Random(1))
    produce = PRODUCE[-1]
    found = {
        (client, number): faults.request(client, produce, number) for client in ("p", "q") for number in range(1, 7)
    }
    assert {key: loss for key, loss in found.items() if loss} == dict.fromkeys((("q", 3), ("q", 4)), Loss(True, True))
    assert faults.request("q", END, 3) is None
    assert [faults.response("p", END, number) for number in (1, 2)] == [Loss(False, False), None]
    assert faults.response("p", produce, 1) is None
    error = faults.error("p", produce, 2)
    assert error is not None
    assert (error.error, error.partition, error.after_append) == (KafkaError.CORRUPT_MESSAGE, ("a", 1), True)
    assert [faults.error("p", produce, 1), faults.error("q", produce, 2), faults.error("p", END, 2)] == [None] * 3
    marked = {(name, number): faults.marker(name, number) for name in PARTITIONS for number in range(1, 8)}
    assert {key: loss for key, loss in marked.items() if loss} == dict.fromkeys(
        (("b-0", 4), ("b-0", 5)), MarkerLoss(True, False)
    )
