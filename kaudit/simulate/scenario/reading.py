"""TOML to a scenario. Every mistake is reported as one line: the key, and what was expected there."""

import re
import tomllib
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from kaudit.broker.releases.profile import UnknownVersionError, profile_for
from kaudit.formats.schema_error import describe_misfit, shown
from kaudit.simulate.producer.config import (
    ACKS_ALL,
    NO_TIMEOUT,
    Client,
    ClientRelease,
    ProducerConfig,
    ProducerSettings,
)
from kaudit.simulate.scenario.model import (
    BrokerFault,
    ClusterSpec,
    DeleteRecords,
    Fault,
    KillProducer,
    MessageLoss,
    NetworkSpec,
    PauseProducer,
    ProducerSpec,
    RandomFaults,
    Scenario,
    TopicSpec,
)

_RATES = ("request_loss", "response_loss", "silent_share")
_CLIENTS = {client.value.name: client.value for client in Client}
_ACKS = {"0": 0, "1": 1, "all": ACKS_ALL, "-1": ACKS_ALL}
_NUMBERS = {
    "segment.bytes": 1024,
    "min.insync.replicas": 1,
    "max.message.bytes": 100,
    "replica.lag.time.max.ms": 1,
    "producer.id.expiration.ms": 1,
    "producer.id.expiration.check.interval.ms": 1,
    "transactional.id.expiration.ms": 1,
    "transaction.max.timeout.ms": 1,
}
"""Configuration of brokers and topics that must be a number, and the lowest one."""


class ScenarioError(ValueError):
    """A scenario that cannot be run: `key` is the field at fault, `expected` what it should have held."""

    def __init__(self, key: str, expected: str) -> None:
        self.key = key
        self.expected = expected
        super().__init__(f"{key}: expected {expected}")


def parse_scenario(text: str, name: str) -> Scenario:
    """Read a scenario called `name`. Raises ScenarioError."""
    return scenario_of(parse_document(text), name)


def parse_document(text: str) -> dict[str, Any]:
    """Read TOML, whatever it says. Raises ScenarioError."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError("", f"TOML: {error}") from None


def scenario_of(document: Mapping[str, Any], name: str) -> Scenario:
    """Read the scenario called `name` that a TOML document describes. Raises ScenarioError."""
    content = dict(document)
    if "name" in content:
        raise ScenarioError("name", "no such key: a scenario has the name of its file")
    cluster = _cluster(content.get("cluster", {}))
    topics = [_topic(table, path, cluster) for path, table in _tables(content, "topics", required=True)]
    producers = [_producer(table, path, topics) for path, table in _tables(content, "producers", required=True)]
    faults = [_fault(table, path, cluster, topics, producers) for path, table in _tables(content, "faults")]
    content |= {"name": name, "cluster": cluster, "topics": topics, "producers": producers, "faults": faults}
    content["network"] = _ranges(content.get("network", {}), "network", NetworkSpec)
    if "random" in content:
        content["random"] = _ranges(content["random"], "random", RandomFaults)
    if "starts_at" in content:
        content["starts_at"] = _timestamp(content["starts_at"])
    scenario: Scenario = _convert({"title": name} | content, "", Scenario)
    return replace(scenario, story=scenario.story.strip())


def _tables(content: Mapping[str, Any], name: str, *, required: bool = False) -> list[tuple[str, dict[str, Any]]]:
    """Return the tables [[name]], each with its path, and with a name of its own where it has one."""
    tables = content.get(name, [])
    if not isinstance(tables, list) or (required and not tables):
        raise ScenarioError(name, f"at least one table, [[{name}]], not {shown(tables)}")
    names: set[str] = set()
    for number, table in enumerate(tables):
        own = str(_table(table, f"{name}[{number}]").get("name"))
        if "name" in table and own in names:
            raise ScenarioError(f"{name}[{number}].name", f"a name of its own, {own!r} is taken")
        names.add(own)
    return [(f"{name}[{number}]", table) for number, table in enumerate(tables)]


def _table(value: object, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ScenarioError(path, f"a table, not {shown(value)}")
    return value


def _convert(table: object, path: str, schema: Any) -> Any:  # noqa: ANN401 - an instance of the schema
    content = _table(table, path)
    try:
        return msgspec.convert(content, schema)
    except msgspec.ValidationError as error:
        key, expected = describe_misfit(error, content, schema)
        raise ScenarioError(f"{path}.{key}" if path and key else path or key, expected) from None


def _ranges(table: object, path: str, schema: type) -> Any:  # noqa: ANN401 - an instance of the schema
    """Read a table of bounds [low, high]; one number stands for both."""
    pairs = {
        key: [value, value] if type(value) is int and key not in _RATES else value
        for key, value in _table(table, path).items()
    }
    found = _convert(pairs, path, schema)
    for key, value in asdict(found).items():
        if isinstance(value, tuple) and value[0] > value[1]:
            raise ScenarioError(f"{path}.{key}", f"[low, high], the lower bound first, not {shown(value)}")
    return found


def _timestamp(value: object) -> int:
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise ScenarioError("starts_at", f"a date with time and zone like 2026-01-31T08:00:00Z, not {shown(value)}")
    return int(value.timestamp() * 1000)


def _configuration(table: dict[str, Any], path: str) -> dict[str, Any]:
    """Return `table` with its `config`, Kafka's names and values, as strings."""
    path = f"{path}.config"
    config: dict[str, str] = {}
    for name, value in _table(table.get("config", {}), path).items():
        if not isinstance(value, int | str):
            raise ScenarioError(f'{path}."{name}"', f"a number, a string, true or false, not {shown(value)}")
        config[name] = str(value).lower() if isinstance(value, bool) else str(value)
        low = _NUMBERS.get(name)
        if low is not None and not (config[name].isdecimal() and int(config[name]) >= low):
            raise ScenarioError(f'{path}."{name}"', f"an integer from {low} on, not {shown(value)}")
    return table | {"config": config}


def _cluster(table: object) -> ClusterSpec:
    cluster: ClusterSpec = _convert(_configuration(_table(table, "cluster"), "cluster"), "cluster", ClusterSpec)
    try:
        profile_for(cluster.version)
    except UnknownVersionError as error:
        nearest = ", ".join(map(str, error.nearest))
        raise ScenarioError("cluster.version", f"a known release, {nearest}, not {cluster.version!r}") from None
    return cluster


def _topic(table: dict[str, Any], path: str, cluster: ClusterSpec) -> TopicSpec:
    defaults = {"replication_factor": cluster.brokers}
    topic: TopicSpec = _convert(defaults | _configuration(table, path), path, TopicSpec)
    if re.fullmatch(r"[A-Za-z0-9._-]+", topic.name) is None or topic.name in "..":
        raise ScenarioError(f"{path}.name", f"letters, digits, dots, dashes and underscores, not {topic.name!r}")
    if topic.replication_factor > cluster.brokers:
        raise ScenarioError(f"{path}.replication_factor", f"at most the number of brokers, {cluster.brokers}")
    if topic.config.get("message.timestamp.type", "CreateTime") != "CreateTime":
        raise ScenarioError(f"{path}.config", "CreateTime: brokers that set the time are not modelled")
    return topic


def _producer(table: dict[str, Any], path: str, topics: list[TopicSpec]) -> ProducerSpec:
    client = _one_of(table.get("client", "current"), f"{path}.client", _CLIENTS)
    config = _producer_config(_table(table.get("config", {}), f"{path}.config"), f"{path}.config", _CLIENTS[client])
    fields = {"topic": topics[0].name, "application": table.get("name"), **table, "config": config}
    fields.pop("client", None)
    producer: ProducerSpec = _convert(fields, path, ProducerSpec)
    _one_of(producer.topic, f"{path}.topic", [topic.name for topic in topics])
    if (producer.transaction is None) != (config.transactional_id is None):
        expected = 'a table [producers.transaction] if and only if config has "transactional.id"'
        raise ScenarioError(f"{path}.transaction", expected)
    if producer.initializations > 1 and config.transactional_id is None:
        raise ScenarioError(f"{path}.initializations", 'a producer with "transactional.id"')
    return producer


def _producer_config(table: dict[str, Any], path: str, release: ClientRelease) -> ProducerConfig:
    """Read a producer's configuration; what it leaves out depends on the client's release and on idempotence."""
    is_transactional = "transactional.id" in table
    acks = _ACKS[_one_of(table["acks"], f"{path}.acks", _ACKS)] if "acks" in table else None
    default = is_transactional or (release.idempotent and acks in (None, ACKS_ALL))
    idempotent = table.get("enable.idempotence", default)
    if idempotent is True and acks not in (None, ACKS_ALL):
        raise ScenarioError(f"{path}.acks", "all, since enable.idempotence is on")
    if is_transactional and idempotent is False:
        raise ScenarioError(f'{path}."enable.idempotence"', "true, since there is a transactional.id")
    if release.delivery_timeout_ms is None and "delivery.timeout.ms" in table:
        raise ScenarioError(f'{path}."delivery.timeout.ms"', f"no such key: client {release.name} does not have it")
    defaults = {
        "enable.idempotence": idempotent,
        "linger.ms": release.linger_ms,
        "retries": NO_TIMEOUT if idempotent else release.retries,
        "retry.backoff.max.ms": release.retry_backoff_max_ms,
        "delivery.timeout.ms": release.delivery_timeout_ms,
    }
    default_acks = ACKS_ALL if idempotent else release.acks
    settings = _convert(defaults | table | {"acks": default_acks if acks is None else acks}, path, ProducerSettings)
    return ProducerConfig(client=release, **asdict(settings))


def _one_of(value: object, path: str, choices: list[str] | Mapping[str, object]) -> str:
    if not isinstance(value, str) or value not in choices:
        raise ScenarioError(path, f"one of {', '.join(choices)}, not {shown(value)}")
    return value


def _fault(
    table: dict[str, Any], path: str, cluster: ClusterSpec, topics: list[TopicSpec], producers: list[ProducerSpec]
) -> Fault:
    fault: Fault = _convert(table, path, Fault)
    partitions = {f"{topic.name}-{number}" for topic in topics for number in range(topic.partitions)}
    match fault:
        case MessageLoss() | KillProducer() | PauseProducer():
            names = [producer.name for producer in producers]
            return replace(fault, producer=_one_of(fault.producer or names[0], f"{path}.producer", names))
        case BrokerFault(broker=broker, leader_of=leader_of):
            if (broker is None) == (leader_of is None) or (broker or 0) > cluster.brokers:
                raise ScenarioError(f"{path}.broker", f"a broker from 1 to {cluster.brokers}, or leader_of")
            field, partition = "leader_of", leader_of
        case DeleteRecords():
            fault = replace(fault, partition=fault.partition or f"{topics[0].name}-0")
            field, partition = "partition", fault.partition
    if partition is not None and partition not in partitions:
        raise ScenarioError(f"{path}.{field}", f"a partition of the scenario's topics like orders-0, not {partition!r}")
    return fault
