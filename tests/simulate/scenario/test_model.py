"""Every field of a scenario: what it is where the scenario leaves it out, and the bounds of numbers, which are refused by their key."""

import copy
import re
from typing import Any

import pytest
from msgspec.structs import asdict

from kaudit.simulate.clock import BASE_TIMESTAMP
from kaudit.simulate.scenario.reading import scenario_of
from kaudit.simulate.scenario.tables import ScenarioError

DAY = 24 * 60 * 60 * 1000
RECORDS = 100_000_000
BASE: dict[str, Any] = {
    "cluster": {"brokers": 9},
    "topics": [{"name": "orders"}],
    "producers": [
        {
            "name": "shop",
            "config": {"transactional.id": "t", "delivery.timeout.ms": 2**31 - 1},
            "transaction": {},
        },
        {"name": "plain", "config": {"enable.idempotence": False}},
    ],
    "faults": [
        {"kind": "kill-broker", "broker": 1, "at_ms": 5},
        {"kind": "pause-broker", "broker": 1, "at_ms": 5, "for_ms": 1},
        {"kind": "use-producer-ids", "broker": 1, "at_ms": 5},
        {"kind": "slow-disk", "broker": 1, "at_ms": 5, "for_ms": 1},
        {"kind": "jump-broker-clock", "broker": 1, "at_ms": 5, "by_ms": 1},
        {"kind": "jump-producer-clock", "at_ms": 5, "by_ms": 1},
        {"kind": "kill-producer", "at_ms": 5},
        {"kind": "delete-records", "at_ms": 5},
        {"kind": "lose-request", "request": 1},
        {"kind": "lose-marker"},
    ],
    "network": {},
    "random": {},
}
BOUNDS = {
    "seed": (0, 2**63 - 1),
    "duration_ms": (1, 30 * DAY),
    "cluster.brokers": (1, 9),
    "cluster.detect_ms": (1, DAY),
    "topics[0].replication_factor": (1, 9),
    "topics[0].partitions": (1, 1000),
    "producers[0].records": (1, RECORDS),
    "producers[0].first_sequence": (0, 2**31 - 1),
    "producers[0].start_ms": (0, DAY),
    "producers[0].every_ms": (0, DAY),
    "producers[0].burst": (1, RECORDS),
    "producers[0].record_bytes": (1, 2**20),
    "producers[0].initializations": (1, 32_766),
    "producers[0].sessions": (1, 100_000),
    "producers[0].transaction.records": (1, RECORDS),
    "producers[0].transaction.pause_ms": (0, DAY),
    "producers[0].config.transaction.timeout.ms": (1, DAY),
    "producers[0].config.batch.size": (100, 2**24),
    "producers[0].config.linger.ms": (0, DAY),
    "producers[0].config.retry.backoff.ms": (0, DAY),
    "producers[0].config.retry.backoff.max.ms": (0, DAY),
    "producers[0].config.request.timeout.ms": (1, DAY),
    "producers[0].config.max.request.size": (100, 2**30),
    "producers[0].config.reconnect.backoff.ms": (0, DAY),
    "producers[1].config.max.in.flight.requests.per.connection": (1, 100),
    "producers[1].config.retries": (0, 2**31 - 1),
    "faults[0].at_ms": (0, DAY),
    "faults[0].broker": (1, 9),
    "faults[0].restart_after_ms": (0, DAY),
    "faults[1].for_ms": (1, DAY),
    "faults[2].count": (1, 100_000),
    "faults[3].delay_ms": (1, DAY),
    "faults[4].by_ms": (-30 * DAY, 30 * DAY),
    "faults[5].by_ms": (-30 * DAY, 30 * DAY),
    "faults[5].for_ms": (1, DAY),
    "faults[6].resend": (0, RECORDS),
    "faults[7].before_offset": (-1, 2**62),
    "faults[8].request": (1, RECORDS),
    "faults[8].times": (1, RECORDS),
    "faults[9].marker": (1, RECORDS),
    "network.delay_ms": (0, 60_000),
    "random.kill_brokers": (0, 100),
    "random.within_ms": (0, DAY),
    "random.resend": (0, RECORDS),
    "random.disk_delay_ms": (1, DAY),
    "random.jump_ms": (-30 * DAY, 30 * DAY),
}
PATH = re.compile(r"(?:config|transaction)\.|(\w+)\[(\d)\]\.|(cluster|network|random)\.")


def with_value(path, value):
    """The document with a value at a path such as `faults[0].broker`."""
    document = copy.deepcopy(BASE)
    table, rest = document, path
    while found := PATH.match(rest):
        name, number = (found[1], int(found[2])) if found[1] else (found[0][:-1], None)
        if number is None and name not in table:
            break  # `transaction.timeout.ms` is one key
        table, rest = (table[name] if number is None else table[name][number]), rest[found.end() :]
    table[rest] = value
    return document


@pytest.mark.parametrize("path", BOUNDS)
def test_a_number_is_taken_up_to_its_bounds_and_not_beyond(path):
    least, most = BOUNDS[path]
    for value in (least, most):
        assert scenario_of(with_value(path, value), "t").name == "t"
    for value in (least - 1, most + 1):
        with pytest.raises(ScenarioError) as refused:
            scenario_of(with_value(path, value), "t")
        assert refused.value.key.replace('"', "").startswith(path), value


RATES = [
    "request_loss", "response_loss", "silent_share", "error_responses", "transactional_request_loss",
    "transactional_response_loss", "marker_loss",
]  # fmt: skip


@pytest.mark.parametrize("name", RATES)
def test_a_rate_is_a_share_of_all(name):
    for value in (0, 0.0, 1, 1.0):
        found = scenario_of(with_value(f"random.{name}", value), "t").random_faults
        assert getattr(found, name) == value
    for value in (-0.001, 1.001):
        with pytest.raises(ScenarioError) as refused:
            scenario_of(with_value(f"random.{name}", value), "t")
        assert refused.value.key == f"random.{name}"


def left_out(value):
    """The fields of a struct that has those without a default only."""
    return {name: found for name, found in asdict(value).items() if name not in {"name", "config", "client", "topic"}}


def test_what_a_scenario_is_that_leaves_everything_out():
    scenario = scenario_of({"topics": [{"name": "orders"}], "producers": [{"name": "shop"}]}, "t")
    fields = asdict(scenario)
    cluster, (topic,), (producer,) = fields.pop("cluster"), fields.pop("topics"), fields.pop("producers")
    network = fields.pop("network")
    assert fields == {
        "name": "t",
        "title": "t",
        "story": "-",
        "seed": 0,
        "starts_at": BASE_TIMESTAMP,
        "duration_ms": 3_600_000,
        "faults": (),
        "random_faults": None,
        "stop_at_end": True,
    }
    assert asdict(cluster) == {"version": "4.2.0", "brokers": 1, "detect_ms": 1000, "config": {}}
    assert asdict(topic) == {"name": "orders", "replication_factor": 1, "partitions": 1, "config": {}}
    assert asdict(network) == {"delay_ms": (1, 3)}
    assert left_out(producer) == {
        "refuse_invalid_config": True,
        "application": "shop",
        "records": 10,
        "first_sequence": 0,
        "start_ms": 0,
        "every_ms": 10,
        "burst": 1,
        "record_bytes": 24,
        "transaction": None,
        "initializations": 1,
        "sessions": 1,
    }


def test_what_a_producers_configuration_is_that_leaves_everything_out():
    """What does not depend on the client. Source: ProducerConfig."""
    config = scenario_of(BASE | {"faults": []}, "t").producers[0].config
    assert config.batch_size == 16_384
    assert config.request_timeout_ms == 30_000
    assert config.max_request_size == 1_048_576
    assert config.reconnect_backoff_ms == 50
    assert config.transaction_timeout_ms == 60_000
    transaction = scenario_of(BASE | {"faults": []}, "t").producers[0].transaction
    assert transaction is not None
    assert asdict(transaction) == {"records": 5, "outcomes": ("commit",), "pause_ms": 0}


def test_what_random_faults_are_that_leave_everything_out():
    found = scenario_of(BASE, "t").random_faults
    assert found is not None
    assert asdict(found) == {
        **dict.fromkeys(RATES, 0),
        **dict.fromkeys(
            [
                "kill_brokers", "stop_brokers", "pause_brokers", "kill_producers", "resend", "delete_records",
                "disconnect_brokers", "slow_disks", "jump_clocks", "move_leaders", "use_producer_ids",
            ],
            (0, 0),
        ),
        "within_ms": (0, 1000),
        "down_ms": (500, 3000),
        "pause_ms": (100, 3000),
        "disk_delay_ms": (50, 1000),
        "jump_ms": (-60_000, 60_000),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("table", "fields"),
    [
        (
            {"kind": "lose-request", "request": 3},
            {"producer": "shop", "api": "Produce", "times": 1, "request": 3, "silent": False, "behind": True},
        ),
        (
            {"kind": "lose-response", "request": 3},
            {"producer": "shop", "api": "Produce", "times": 1, "request": 3, "silent": False, "behind": True},
        ),
        (
            {"kind": "error-response", "request": 3, "error": "NOT_COORDINATOR"},
            {
                "producer": "shop", "api": "Produce", "times": 1, "request": 3, "error": "NOT_COORDINATOR",
                "partition": None, "after_append": False,
            },
        ),
        (
            {"kind": "lose-marker"},
            {"partition": "orders-0", "marker": 1, "times": 1, "response": False, "silent": False},
        ),
        (
            {"kind": "stop-broker", "broker": 1, "at_ms": 7},
            {"at_ms": 7, "broker": 1, "leader_of": None, "restart_after_ms": None, "without_snapshots": False},
        ),
        (
            {"kind": "start-broker", "leader_of": "orders-0", "at_ms": 7},
            {"at_ms": 7, "broker": None, "leader_of": "orders-0", "without_snapshots": False},
        ),
        (
            {"kind": "use-producer-ids", "broker": 1, "at_ms": 7},
            {"at_ms": 7, "broker": 1, "leader_of": None, "count": 1000},
        ),
        (
            {"kind": "slow-disk", "broker": 1, "at_ms": 7, "for_ms": 9},
            {"at_ms": 7, "broker": 1, "leader_of": None, "for_ms": 9, "delay_ms": 500},
        ),
        (
            {"kind": "jump-broker-clock", "broker": 1, "at_ms": 7, "by_ms": -9},
            {"at_ms": 7, "broker": 1, "leader_of": None, "by_ms": -9, "for_ms": None},
        ),
        (
            {"kind": "jump-producer-clock", "at_ms": 7, "by_ms": -9},
            {"at_ms": 7, "by_ms": -9, "producer": "shop", "for_ms": None},
        ),
        ({"kind": "move-leader", "at_ms": 7}, {"at_ms": 7, "partition": "orders-0", "broker": None}),
        (
            {"kind": "kill-producer", "at_ms": 7},
            {"at_ms": 7, "producer": "shop", "restart_after_ms": None, "resend": 0},
        ),
        ({"kind": "pause-producer", "at_ms": 7, "for_ms": 9}, {"at_ms": 7, "for_ms": 9, "producer": "shop"}),
        ({"kind": "delete-records", "at_ms": 7}, {"at_ms": 7, "partition": "orders-0", "before_offset": -1}),
    ],
)  # fmt: skip
def test_what_a_fault_is_that_leaves_out_what_it_may(table, fields):
    (found,) = scenario_of(BASE | {"faults": [table]}, "t").faults
    assert asdict(found) == fields
