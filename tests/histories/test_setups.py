"""The producers that a finding may come from, by what it says of its own."""

from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from kaudit.histories.setups import _MOST_RECORDS, _has_such_a_producer, _producers
from kaudit.model.evidence import StoredEvidence
from kaudit.model.finding import Finding
from kaudit.model.severity import Confidence, Severity

FINDING = Finding("KA104", "", Severity.ERROR, Confidence.CERTAIN, "", topic="t", partition=0)
FLIGHT = "max.in.flight.requests.per.connection"
COMMON = {"linger.ms": 0, "batch.size": 100}
IDEMPOTENT = {**COMMON, "enable.idempotence": True, "acks": "all"}
TRANSACTIONAL = {**COMMON, "transactional.id": "id", "transaction.timeout.ms": 1000, "request.timeout.ms": 300}


def producer(config, every_ms=20, **more):
    return {"name": "producer", "records": 8, "every_ms": every_ms, "config": config, **more}


def test_an_idempotent_producer_may_have_one_request_too_many_in_flight():
    """Five is the most that a broker remembers (ProducerStateEntry.NUM_BATCHES_TO_RETAIN), so six is one too many."""
    assert list(_producers(replace(FINDING, producer_id=0))) == [
        producer(IDEMPOTENT),
        producer(IDEMPOTENT, 2),
        producer({**IDEMPOTENT, "delivery.timeout.ms": 700, "request.timeout.ms": 300}),
        producer({**IDEMPOTENT, FLIGHT: 6}, 0, refuse_invalid_config=False),
    ]


@pytest.mark.parametrize("producer_id", [None, -1])
def test_a_producer_without_an_id_waits_for_one_or_all_and_sends_one_or_five(producer_id):
    assert list(_producers(replace(FINDING, producer_id=producer_id))) == [
        producer({**COMMON, "enable.idempotence": False, "acks": acks, "retries": 100, FLIGHT: in_flight}, 5)
        for acks, in_flight in (("1", 1), ("1", 5), ("all", 1), ("all", 5))
    ]


@pytest.mark.parametrize(
    "finding",
    [
        replace(FINDING, code="KA301"),
        replace(FINDING, code="KA308"),
        replace(FINDING, producer_id=7, evidence=StoredEvidence({"offending": {"is_transactional": True}})),
        replace(FINDING, evidence=StoredEvidence({"class": "restart"})),
        replace(FINDING, evidence=StoredEvidence({"class": "timeout-abort"})),
    ],
)
def test_a_transactional_producer_pauses_beyond_its_timeout_or_not(finding):
    """transaction.timeout.ms is a second; delivery may end within it, too."""
    ended = {"records": 3, "outcomes": ["commit", "abort"]}
    assert list(_producers(finding)) == [
        producer(TRANSACTIONAL, transaction={**ended, "pause_ms": 0}),
        producer(TRANSACTIONAL, transaction={**ended, "pause_ms": 1500}),
        producer({**TRANSACTIONAL, "delivery.timeout.ms": 400}, transaction={"records": 3}),
    ]


@pytest.mark.parametrize(
    "evidence", [{}, {"offending": {"is_transactional": False}}, {"offending": 7}, {"class": "bump"}]
)
def test_other_findings_are_of_no_transaction(evidence):
    producers = list(_producers(replace(FINDING, producer_id=7, evidence=StoredEvidence(evidence))))
    assert len(producers) == 4
    assert not any("transaction" in each for each in producers)


def of_kind(kind, records=1, initializations=1):
    config = SimpleNamespace(transactional_id="id" if kind == "transactional" else None, idempotent=kind != "plain")
    return SimpleNamespace(config=config, records=records, initializations=initializations)


@pytest.mark.parametrize(("producers", "has"), [
    ([of_kind("idempotent")], True),
    ([of_kind("plain"), of_kind("idempotent")], True),
    ([of_kind("plain"), of_kind("transactional")], False),
    ([of_kind("idempotent", records=_MOST_RECORDS)], True),
    ([of_kind("idempotent"), of_kind("plain", records=_MOST_RECORDS + 1)], False),
    ([of_kind("idempotent", initializations=2)], False),
    ([], False),
])  # fmt: skip
def test_a_scenario_of_few_records_has_a_producer_of_the_findings_kind(producers, has):
    scenario: Any = SimpleNamespace(producers=producers)
    assert _has_such_a_producer(scenario, replace(FINDING, producer_id=7)) is has
