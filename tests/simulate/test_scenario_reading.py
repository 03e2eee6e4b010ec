"""A key that no table of a scenario has is reported with the one it may stand for."""

import pytest

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
