"""What a scenario's TOML means, and the one line about a mistake in it: the key, and what was expected there."""

import pytest

from kaudit.simulate.producer.client_profile import client_for
from kaudit.simulate.scenario.reading import parse_scenario
from kaudit.simulate.scenario.tables import ScenarioError

SCENARIO = """
{top}
[cluster]
{cluster}
[[topics]]
name = "orders"
{topic}
[[producers]]
name = "shop"
{producer}
[[faults]]
kind = "kill-broker"
broker = 1
at_ms = 5
{fault}
[network]
{network}
[random]
{random}
"""
TABLES = ("top", "cluster", "topic", "producer", "fault", "network", "random")


@pytest.mark.parametrize(
    ("table", "line", "key", "meant"),
    [
        ("top", "duration_mss = 1", "duration_mss", "duration_ms"),
        ("cluster", "detct_ms = 1", "cluster.detct_ms", "detect_ms"),
        ("cluster", 'config = { "log.segmnt.bytes" = 4096 }', 'cluster.config."log.segmnt.bytes"', "log.segment.bytes"),
        ("topic", "partitons = 1", "topics[0].partitons", "partitions"),
        (
            "topic",
            'config = { "min.insync.replica" = 2 }',
            'topics[0].config."min.insync.replica"',
            "min.insync.replicas",
        ),
        ("producer", "recrds = 1", "producers[0].recrds", "records"),
        ("producer", 'config = { "lingr.ms" = 1 }', "producers[0].config.lingr.ms", "linger.ms"),
        (
            "producer",
            'config = { "transactional.id" = "t" }\ntransaction = { recods = 1 }',
            "producers[0].transaction.recods",
            "records",
        ),
        ("fault", "restart_aftr_ms = 1", "faults[0].restart_aftr_ms", "restart_after_ms"),
        ("network", "dely_ms = 1", "network.dely_ms", "delay_ms"),
        ("random", "killbrokers = 1", "random.killbrokers", "kill_brokers"),
    ],
)
def test_an_unknown_key_is_one_line_with_the_nearest_known_one(table, line, key, meant):
    text = SCENARIO.format(**{name: line if name == table else "" for name in TABLES})
    with pytest.raises(ScenarioError) as refused:
        parse_scenario(text, "test")
    assert str(refused.value).startswith(f"{key}: expected no such key, {meant} is one; known are ")
    assert "\n" not in str(refused.value)


FAULT = '[[faults]]\nkind = "{kind}"\nat_ms = 5\n{more}\n'
MISTAKES = {
    "no topic": ("[[topics]]", "[[others]]", "topics: expected at least one table, [[topics]], not"),
    "no producer": ("[[producers]]", "[[others]]", "producers: expected at least one table, [[producers]], not"),
    "a name": ("[cluster]", 'name = "x"\n[cluster]', "name: expected no such key: a scenario has the name of its file"),
    "names twice": ("[[producers]]", '[[topics]]\nname = "orders"\n[[producers]]', "topics[1].name: expected a name of its"),
    "too many replicas": ("partitions = 2", "replication_factor = 4", "topics[0].replication_factor: expected at most"),
    "the broker's time": (
        "partitions = 2", 'config = { "message.timestamp.type" = "LogAppendTime" }', "topics[0].config: expected CreateTime",
    ),
    "a setting too low": ("partitions = 2", 'config = { "segment.bytes" = 1023 }', "an integer from 1024 on, not 1023"),
    "a setting that is no number": ("partitions = 2", 'config = { "segment.bytes" = "x" }', "an integer from 1024 on"),
    "a list": ("partitions = 2", 'config = { "segment.bytes" = [1] }', "a number, a string, true or false, not"),
    "dots": ('name = "orders"', 'name = ".."', "topics[0].name: expected letters, digits"),
    "no transaction": ('name = "shop"', 'name = "shop"\ntransaction = {}', "producers[0].transaction: expected a table"),
    "initializations": ('name = "shop"', 'name = "shop"\ninitializations = 2', "producers[0].initializations: expected a"),
    "an unknown error": (
        'name = "shop"', 'name = "shop"\n[[faults]]\nkind = "error-response"\nrequest = 1\nerror = "NO_SUCH"', "faults[0].error: expected one of",
    ),
    "a time without zone": ("[cluster]", "starts_at = 2026-01-31T08:00:00\n[cluster]", "starts_at: expected a date with"),
}  # fmt: skip
TEXT = """
[cluster]
brokers = 3
[[topics]]
name = "orders"
partitions = 2
[[producers]]
name = "shop"
"""


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_by_its_key(mistake):
    old, new, expected = MISTAKES[mistake]
    with pytest.raises(ScenarioError) as refused:
        parse_scenario(TEXT.replace(old, new), "test")
    assert expected in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "more", "expected"),
    [
        ("kill-broker", "", "faults[0].broker: expected a broker from 1 to 3, or leader_of"),
        ("kill-broker", 'broker = 1\nleader_of = "orders-0"', "faults[0].broker: expected a broker from 1 to 3, or"),
        ("kill-broker", "broker = 4", "faults[0].broker: expected a broker from 1 to 3, or leader_of"),
        ("kill-broker", 'leader_of = "orders-2"', "faults[0].leader_of: expected a partition of the scenario's topics"),
        ("move-leader", "broker = 4", "faults[0].broker: expected a broker from 1 to 3"),
        ("move-leader", 'partition = "__transaction_state-0"', "faults[0].partition: expected a partition"),
        ("disconnect-brokers", "brokers = [1, 4]\nfor_ms = 5", "faults[0].brokers: expected a broker from 1 to 3"),
        ("delete-records", 'partition = "other-0"', "faults[0].partition: expected a partition"),
        ("pause-producer", 'producer = "x"\nfor_ms = 5', "faults[0].producer: expected one of shop"),
    ],
)
def test_a_fault_is_of_a_broker_a_partition_and_a_producer_that_are_there(kind, more, expected):
    with pytest.raises(ScenarioError) as refused:
        parse_scenario(TEXT + FAULT.format(kind=kind, more=more), "test")
    assert str(refused.value).startswith(expected)


def test_what_a_scenario_leaves_out():
    """The first producer and the first partition of the first topic; the release's own defaults."""
    more = "".join(
        FAULT.format(kind=kind, more=fields)
        for kind, fields in (
            ("kill-producer", ""), ("delete-records", ""), ("move-leader", "broker = 3"), ("kill-broker", "broker = 3"),
            ("kill-broker", 'leader_of = "orders-1"'), ("disconnect-brokers", "brokers = [3]\nfor_ms = 1"),
        )
    )  # fmt: skip
    text = f"starts_at = 2024-01-02T03:04:05.678Z\n{TEXT}{more}[network]\ndelay_ms = 7\n[random]\nkill_brokers = 2"
    scenario = parse_scenario(text, "left-out")
    assert (scenario.name, scenario.title, scenario.starts_at) == ("left-out", "left-out", 1_704_164_645_678)
    assert (scenario.network.delay_ms, scenario.topics[0].replication_factor) == ((7, 7), 3)
    assert scenario.random_faults is not None
    assert (scenario.random_faults.kill_brokers, scenario.random_faults.request_loss) == ((2, 2), 0)
    killed, deleted, moved, *_ = scenario.faults
    assert [getattr(killed, "producer", ""), getattr(deleted, "partition", ""), getattr(moved, "partition", "")] == [
        "shop", "orders-0", "orders-0",
    ]  # fmt: skip
    (producer,) = scenario.producers
    assert (producer.topic, producer.application, producer.client) == ("orders", "shop", client_for("current").name)
    moves = FAULT.format(kind="move-leader", more='partition = "__transaction_state-0"')
    transactional = 'config = { "transactional.id" = "t" }\ntransaction = {}\n'
    assert parse_scenario(TEXT + transactional + moves, "test").is_transactional
