"""Findings of lines of logs, which lie in no partition directory, in every format."""

import json
from xml.etree import ElementTree as ET

import pytest

from tests.checks.broker_state.lines import initialized, line, out_of_order, sender

FORMATS = (
    *("table", "concise", "json", "jsonl", "sarif", "sarif-github"),
    *("junit", "github", "gitlab", "markdown", "html", "chrome-trace"),
)
SERVER = [
    out_of_order(158, 155),
    initialized("app", 8, 0),
    line(
        "[TransactionCoordinator id=1] Completed rollback of ongoing transaction for transactionalId app due to timeout",
        9,
        logger="kafka.coordinator.transaction.TransactionCoordinator",
    ),
]
LISTENER = (
    "2024-05-25 13:14:18.891 ERROR 1 --- [ad | producer-1] o.s.k.support.LoggingProducerListener    : Exception thrown when sending "
    "a message with key='null' and payload='x' to topic spring-topic:\n"
    "org.apache.kafka.common.errors.ProducerFencedException: There is a newer producer with the same transactionalId which fences "
    "the current one."
)
CLIENT = [
    sender("Expiring 3 record(s) for t-0:120005 ms has passed since batch creation", 9, "ERROR"),
    LISTENER,
]


@pytest.fixture
def logs(tmp_path):
    for name, lines in (("server.log", SERVER), ("client.log", CLIENT)):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    return [str(tmp_path / "server.log"), str(tmp_path / "client.log")]


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_shows_them(kaudit, logs, name):
    outcome = kaudit("scan", *logs, "--output-format", name, "--reproducible")
    assert outcome.code == 1, outcome.err
    if name != "chrome-trace":
        assert "KA810" in outcome.out
        assert "merchants" in outcome.out
    assert "-None" not in outcome.out
    if name in {"json", "sarif", "sarif-github", "gitlab", "chrome-trace"}:
        json.loads(outcome.out)
    if name == "junit":
        assert ET.fromstring(outcome.out).tag == "testsuites"


def test_the_text_says_where_and_what_to_fetch(kaudit, logs):
    text = kaudit("scan", *logs).out
    assert "  --> merchants-0 @ offset 1641969, producer 29003\n" in text
    assert "  --> spring-topic\n" in text
    assert "  = to be certain: copy the directory merchants-0 of broker 2" in text


def test_a_saved_scan_tells_the_same(kaudit, logs, tmp_path):
    saved = tmp_path / "saved.json"
    kaudit("scan", *logs, "--output-format", f"json:{saved}", "--reproducible")
    document = json.loads(saved.read_text())
    found = [(one["code"], one["topic"], one["incident"]) for one in document["findings"]]
    assert [code for code, *_ in found] == ["KA813", "KA810", "KA812", "KA814"]
    assert kaudit("report", str(saved)).out.count("to be certain") == 4
