"""Clusters and producers that a finding may come from; whatever the finding does not say is tried both ways."""

from collections.abc import Iterator
from typing import Any

from kaudit.broker.releases.profile import UnknownVersionError, profile_for
from kaudit.checks.registry import CHECKS
from kaudit.model.finding import Finding
from kaudit.model.result import BrokerVersions
from kaudit.simulate.scenario.model import Scenario
from kaudit.simulate.scenario.reading import ORDER, parse_document, scenario_text, shipped
from kaudit.simulate.search.schedule import Document

_MOST_RECORDS = 200
"""Of a producer of a shipped scenario: longer ones take too long to run often."""
_RECORDS = 8
_DETECT_MS = 1000
_EPOCH_BUMPS_SINCE = (2, 5)
_NEWEST = "4.2.0"


def setups(finding: Finding, versions: BrokerVersions) -> list[Document]:
    """Return scenarios to draw schedules of: the shipped ones with such a producer, and bare ones.

    The bare ones have each possible release, cluster and configuration of the finding's producer, and no faults.
    """
    return [*_shipped(finding, _versions(versions)), *_bare(finding, _versions(versions))]


def _shipped(finding: Finding, versions: list[str]) -> Iterator[Document]:
    """Yield the shipped scenarios with such a producer: as they are, where the release is possible, then under others."""
    documents = [parse_document(scenario_text(name)) for name in ORDER if _has_such_a_producer(shipped(name), finding)]
    for document in documents:
        releases = (versions[-1], document["cluster"]["version"], versions[0])
        numbers = [profile_for(version).version.numbers for version in releases]
        if numbers == sorted(numbers):
            yield document
    for version in versions:
        for document in documents:
            if version != document["cluster"]["version"]:
                yield {**document, "cluster": {**document["cluster"], "version": version}}


def _has_such_a_producer(scenario: Scenario, finding: Finding) -> bool:
    if any(producer.records > _MOST_RECORDS or producer.initializations > 1 for producer in scenario.producers):
        return False
    return any(
        (producer.config.transactional_id is not None, producer.config.idempotent)
        == (_is_transactional(finding), _is_idempotent(finding))
        for producer in scenario.producers
    )


def _bare(finding: Finding, versions: list[str]) -> list[Document]:
    return [
        {
            "cluster": {"version": version, "brokers": brokers, "detect_ms": _DETECT_MS, "config": dict(broker_config)},
            "topics": [{"name": "topic", "partitions": min(brokers, 2), "config": dict(topic_config)}],
            "producers": [producer | _client(version)],
        }
        for version in versions
        for brokers, topic_config, broker_config in _CLUSTERS
        for producer in _producers(finding)
    ]


_LAG = {"replica.lag.time.max.ms": 200}
_CLUSTERS: tuple[tuple[int, dict[str, Any], dict[str, Any]], ...] = (
    (1, {}, {}),
    (3, {"unclean.leader.election.enable": True, **_LAG}, {}),
    (1, {}, {"producer.id.expiration.ms": 1000, "producer.id.expiration.check.interval.ms": 200}),
)


def _versions(versions: BrokerVersions) -> list[str]:
    found = [versions.at_most or versions.profile or _NEWEST, versions.at_least]
    known = []
    for version in found:
        try:
            known.append(str(profile_for(version or _NEWEST).version))
        except UnknownVersionError:
            known.append(_NEWEST)
    return list(dict.fromkeys(known if versions.at_least else known[:1]))


def _client(version: str) -> dict[str, Any]:
    numbers = tuple(map(int, version.split(".")[:2]))
    return {} if numbers >= _EPOCH_BUMPS_SINCE else {"client": "2.0"}


def _producers(finding: Finding) -> Iterator[dict[str, Any]]:
    common = {"linger.ms": 0, "batch.size": 100}
    producer: dict[str, Any] = {"name": "producer", "records": _RECORDS, "every_ms": 20}
    if _is_transactional(finding):
        config = {**common, "transactional.id": "id", "transaction.timeout.ms": 1000, "request.timeout.ms": 300}
        for pause in (0, 1500):
            transaction = {"records": 3, "outcomes": ["commit", "abort"], "pause_ms": pause}
            yield {**producer, "transaction": transaction, "config": config}
        config = {**config, "delivery.timeout.ms": 400}
        yield {**producer, "transaction": {"records": 3}, "config": config}
    elif not _is_idempotent(finding):
        for acks in ("1", "all"):
            for in_flight in (1, 5):
                limit = {"max.in.flight.requests.per.connection": in_flight}
                config = {**common, "enable.idempotence": False, "acks": acks, "retries": 100, **limit}
                yield {**producer, "every_ms": 5, "config": config}
    else:
        idempotent = {**common, "enable.idempotence": True, "acks": "all"}
        yield {**producer, "config": idempotent}
        yield {**producer, "every_ms": 2, "config": idempotent}
        yield {**producer, "config": {**idempotent, "delivery.timeout.ms": 700, "request.timeout.ms": 300}}
        six_in_flight = {**idempotent, "max.in.flight.requests.per.connection": 6}
        yield {**producer, "every_ms": 0, "refuse_invalid_config": False, "config": six_in_flight}


def _is_idempotent(finding: Finding) -> bool:
    return finding.producer_id is not None and finding.producer_id >= 0


def _is_transactional(finding: Finding) -> bool:
    evidence = finding.evidence
    is_transactional = evidence.offending is not None and evidence.offending.is_transactional
    by_coordinator = evidence.kind in ("restart", "timeout-abort")
    return bool(is_transactional) or by_coordinator or CHECKS[finding.code].transactional
