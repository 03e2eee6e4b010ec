"""TOML to a scenario. Every mistake is reported as one line: the key, and what was expected there.

The scenarios that come with kaudit.
"""

import difflib
import re
import tomllib
from collections.abc import Mapping
from datetime import datetime
from importlib.resources import files
from typing import Any

from msgspec.structs import asdict, replace

from kaudit.broker.config import READ_OF_BROKERS, READ_OF_TOPICS, TRANSACTION_VERSION
from kaudit.broker.errors import KafkaError
from kaudit.broker.releases.profile import UnknownVersionError, profile_for
from kaudit.formats.schema_error import UNKNOWN_KEY, shown
from kaudit.formats.toml import parse_toml
from kaudit.simulate.producer.client_profile import NEWEST, ClientProfile, UnknownClientError, client_for
from kaudit.simulate.producer.client_switches import ACKS_ALL, NO_LIMIT
from kaudit.simulate.producer.config import ProducerConfig, ProducerSettings
from kaudit.simulate.scenario.model import (
    TRANSACTION_PARTITION,
    BrokerFault,
    ClusterSpec,
    DeleteRecords,
    DisconnectBrokers,
    ErrorResponse,
    Fault,
    JumpProducerClock,
    KillProducer,
    LoseMarker,
    MoveLeader,
    NetworkSpec,
    PauseProducer,
    ProducerSpec,
    RandomFaults,
    RequestFault,
    Scenario,
    TopicSpec,
)
from kaudit.simulate.scenario.tables import ScenarioError, convert, one_of, table_at

_ACKS = {"0": 0, "1": 1, "all": ACKS_ALL, "-1": ACKS_ALL}
_IDEMPOTENCE = "enable.idempotence"
_MAX_IN_FLIGHT = "max.in.flight.requests.per.connection"
_DELIVERY_TIMEOUT = "delivery.timeout.ms"
_BACKOFF_MAX = "retry.backoff.max.ms"


def read_producer_config(
    table: dict[str, Any], path: str, client: ClientProfile, *, takes_conflicts: bool = False
) -> ProducerConfig:
    """Return the configuration in `table`, with the client's defaults for what it leaves out.

    Raises ScenarioError for what this client refuses or does not have; `takes_conflicts`: settings that
    contradict one another are taken nevertheless.
    """
    for key, default in (
        (_DELIVERY_TIMEOUT, client.default_delivery_timeout_ms),
        (_BACKOFF_MAX, client.default_retry_backoff_max_ms),
    ):
        if default is None and key in table:
            raise ScenarioError(_key(path, key), f"no such key: {client.name} does not have it")
    acks = _ACKS[one_of(table["acks"], f"{path}.acks", _ACKS)] if "acks" in table else None
    idempotent = _idempotent(table, acks, path, client, takes_conflicts=takes_conflicts)
    backoff = table.get("retry.backoff.ms", client.default_retry_backoff_ms)
    constant = client.default_retry_backoff_max_ms is None
    max_in_flight = client.default_max_in_flight
    defaults = {
        _IDEMPOTENCE: idempotent,
        _MAX_IN_FLIGHT: min(max_in_flight, client.idempotent_max_in_flight) if idempotent else max_in_flight,
        "linger.ms": client.default_linger_ms,
        "retries": NO_LIMIT if idempotent else client.default_retries,
        "retry.backoff.ms": client.default_retry_backoff_ms,
        _BACKOFF_MAX: backoff if constant else client.default_retry_backoff_max_ms,
        _DELIVERY_TIMEOUT: client.default_delivery_timeout_ms,
    }
    if acks is None:
        acks = ACKS_ALL if idempotent else client.default_acks
    overrides = {"acks": acks, _IDEMPOTENCE: idempotent}
    settings: ProducerSettings = convert(defaults | table | overrides, path, ProducerSettings)
    timeout = {} if takes_conflicts else _delivery_timeout(settings, table, path, client)
    return ProducerConfig(client=client, **asdict(settings) | timeout)


def _idempotent(
    table: dict[str, Any], acks: int | None, path: str, client: ClientProfile, *, takes_conflicts: bool
) -> bool:
    """Return whether the producer is idempotent, by what is set and by default; raises ScenarioError for a contradiction."""
    explicit = table.get(_IDEMPOTENCE)
    if explicit is not None and not isinstance(explicit, bool):
        raise ScenarioError(_key(path, _IDEMPOTENCE), f"true or false, not {explicit!r}")
    transactional = "transactional.id" in table
    idempotent = client.default_idempotence if explicit is None else explicit
    if not client.conflict_disables_idempotence and explicit is None:
        idempotent = idempotent or transactional
    if idempotent and not takes_conflicts:
        conflict = _conflict(table, acks, path, client)
        if conflict is not None:
            if explicit or not client.conflict_disables_idempotence:
                raise conflict
            if client.refuses_many_in_flight and conflict.key.endswith(f'{_MAX_IN_FLIGHT}"'):
                raise conflict
            if transactional:
                raise ScenarioError(conflict.key, f"{conflict.expected}: a transactional.id needs idempotence")
            return False
    if transactional and not idempotent:
        raise ScenarioError(_key(path, _IDEMPOTENCE), "true: a transactional.id cannot be set without idempotence")
    return idempotent


def _conflict(table: dict[str, Any], acks: int | None, path: str, client: ClientProfile) -> ScenarioError | None:
    """Return what contradicts idempotence, the gravest first."""
    max_in_flight = table.get(_MAX_IN_FLIGHT, 1)
    most = client.idempotent_max_in_flight
    many = None
    if isinstance(max_in_flight, int) and max_in_flight > most:
        expected = f"at most {most} to use the idempotent producer, {client.name} refuses {max_in_flight}"
        many = ScenarioError(_key(path, _MAX_IN_FLIGHT), expected)
    if many is not None and client.refuses_many_in_flight:
        return many
    if table.get("retries") == 0:
        return ScenarioError(f"{path}.retries", "non-zero when using the idempotent producer")
    if acks not in (None, ACKS_ALL):
        return ScenarioError(f"{path}.acks", "all in order to use the idempotent producer, since idempotence is on")
    return many


def _delivery_timeout(
    settings: ProducerSettings, table: dict[str, Any], path: str, client: ClientProfile
) -> dict[str, int]:
    """Return the delivery timeout where the client changes it. Source: KafkaProducer.configureDeliveryTimeout."""
    least = settings.linger_ms + settings.request_timeout_ms
    timeout = settings.delivery_timeout_ms
    if not client.checks_delivery_timeout or timeout is None or timeout >= least:
        return {}
    if _DELIVERY_TIMEOUT in table:
        raise ScenarioError(
            _key(path, _DELIVERY_TIMEOUT),
            f"equal to or larger than linger.ms + request.timeout.ms, {least}, not {timeout}",
        )
    return {"delivery_timeout_ms": least}


def _key(path: str, name: str) -> str:
    return f'{path}."{name}"'


_RATES = frozenset(name for name, default in asdict(RandomFaults()).items() if isinstance(default, float))
_ERRORS = [error.name for error in KafkaError if error is not KafkaError.NONE]
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
_KNOWN = ({*_NUMBERS, "unclean.leader.election.enable"} | READ_OF_BROKERS | READ_OF_TOPICS) - {TRANSACTION_VERSION}
"""Configuration of brokers and topics that a run depends on; a broker's is the default of its topics."""


def parse_scenario(text: str, name: str) -> Scenario:
    """Read a scenario called `name`. Raises ScenarioError."""
    return scenario_of(parse_document(text), name)


def parse_document(text: str) -> dict[str, Any]:
    """Read TOML, whatever it says. Raises ScenarioError."""
    try:
        return parse_toml(text)
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
    scenario: Scenario = convert({"title": name} | content, "", Scenario)
    return replace(scenario, story=scenario.story.strip())


def _tables(content: Mapping[str, Any], name: str, *, required: bool = False) -> list[tuple[str, dict[str, Any]]]:
    """Return the tables [[name]], each with its path, and with a name of its own where it has one."""
    tables = content.get(name, [])
    if not isinstance(tables, list) or (required and not tables):
        raise ScenarioError(name, f"at least one table, [[{name}]], not {shown(tables)}")
    names: set[str] = set()
    for number, table in enumerate(tables):
        own = str(table_at(table, f"{name}[{number}]").get("name"))
        if "name" in table and own in names:
            raise ScenarioError(f"{name}[{number}].name", f"a name of its own, {own!r} is taken")
        names.add(own)
    return [(f"{name}[{number}]", table) for number, table in enumerate(tables)]


def _ranges(table: object, path: str, schema: type) -> Any:  # noqa: ANN401 - an instance of the schema
    """Read a table of bounds [low, high]; one number stands for both."""
    pairs = {
        key: [value, value] if type(value) is int and key not in _RATES else value
        for key, value in table_at(table, path).items()
    }
    found = convert(pairs, path, schema)
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
    for name, value in table_at(table.get("config", {}), path).items():
        if not isinstance(value, int | str):
            raise ScenarioError(f'{path}."{name}"', f"a number, a string, true or false, not {shown(value)}")
        config[name] = str(value).lower() if isinstance(value, bool) else str(value)
        if name not in _KNOWN:
            near = difflib.get_close_matches(name, _KNOWN, 1)
            expected = f"{UNKNOWN_KEY}{f', {near[0]} is one' if near else ''}; known are {', '.join(sorted(_KNOWN))}"
            raise ScenarioError(f'{path}."{name}"', expected)
        low = _NUMBERS.get(name)
        if low is not None and not (config[name].isdecimal() and int(config[name]) >= low):
            raise ScenarioError(f'{path}."{name}"', f"an integer from {low} on, not {shown(value)}")
    return table | {"config": config}


def _cluster(table: object) -> ClusterSpec:
    cluster: ClusterSpec = convert(_configuration(table_at(table, "cluster"), "cluster"), "cluster", ClusterSpec)
    try:
        profile_for(cluster.version)
    except UnknownVersionError as error:
        nearest = ", ".join(map(str, error.nearest))
        raise ScenarioError("cluster.version", f"a known release, {nearest}, not {cluster.version!r}") from None
    return cluster


def _topic(table: dict[str, Any], path: str, cluster: ClusterSpec) -> TopicSpec:
    defaults = {"replication_factor": cluster.brokers}
    topic: TopicSpec = convert(defaults | _configuration(table, path), path, TopicSpec)
    if re.fullmatch(r"[A-Za-z0-9._-]+", topic.name) is None or topic.name in "..":
        raise ScenarioError(f"{path}.name", f"letters, digits, dots, dashes and underscores, not {topic.name!r}")
    if topic.replication_factor > cluster.brokers:
        raise ScenarioError(f"{path}.replication_factor", f"at most the number of brokers, {cluster.brokers}")
    if topic.config.get("message.timestamp.type", "CreateTime") != "CreateTime":
        raise ScenarioError(f"{path}.config", "CreateTime: brokers that set the time are not modelled")
    return topic


def _producer(table: dict[str, Any], path: str, topics: list[TopicSpec]) -> ProducerSpec:
    try:
        client = client_for(str(table.get("client", NEWEST)))
    except UnknownClientError as error:
        raise ScenarioError(f"{path}.client", f"{error.expected}, not {shown(table['client'])}") from None
    config = read_producer_config(
        table_at(table.get("config", {}), f"{path}.config"),
        f"{path}.config",
        client,
        takes_conflicts=table.get("refuse_invalid_config") is False,
    )
    fields = {
        "topic": topics[0].name,
        "application": table.get("name"),
        **table,
        "config": config,
        "client": client.name,
    }
    producer: ProducerSpec = convert(fields, path, ProducerSpec)
    one_of(producer.topic, f"{path}.topic", [topic.name for topic in topics])
    if (producer.transaction is None) != (config.transactional_id is None):
        expected = 'a table [producers.transaction] if and only if config has "transactional.id"'
        raise ScenarioError(f"{path}.transaction", expected)
    if producer.initializations > 1 and config.transactional_id is None:
        raise ScenarioError(f"{path}.initializations", 'a producer with "transactional.id"')
    return producer


def _fault(
    table: dict[str, Any], path: str, cluster: ClusterSpec, topics: list[TopicSpec], producers: list[ProducerSpec]
) -> Fault:
    fault: Fault = convert(table, path, Fault)
    names = [producer.name for producer in producers]
    if isinstance(fault, RequestFault | KillProducer | PauseProducer | JumpProducerClock):
        fault = replace(fault, producer=one_of(fault.producer or names[0], f"{path}.producer", names))
    if isinstance(fault, ErrorResponse):
        one_of(fault.error, f"{path}.error", _ERRORS)
    numbers: tuple[int | None, ...] = ()
    if isinstance(fault, BrokerFault):
        if (fault.broker is None) == (fault.leader_of is None):
            raise ScenarioError(f"{path}.broker", f"a broker from 1 to {cluster.brokers}, or leader_of")
        numbers = (fault.broker,)
    elif isinstance(fault, MoveLeader):
        numbers = (fault.broker,)
    elif isinstance(fault, DisconnectBrokers):
        numbers = fault.brokers
    if any(number is not None and number > cluster.brokers for number in numbers):
        field = "brokers" if isinstance(fault, DisconnectBrokers) else "broker"
        raise ScenarioError(f"{path}.{field}", f"a broker from 1 to {cluster.brokers}, or leader_of")
    return _with_partition(fault, path, topics, producers)


def _with_partition(fault: Fault, path: str, topics: list[TopicSpec], producers: list[ProducerSpec]) -> Fault:
    """Check the partition a fault is about, the first one of the first topic where it names none."""
    partitions = {f"{topic.name}-{number}" for topic in topics for number in range(topic.partitions)}
    if isinstance(fault, MoveLeader | DeleteRecords | LoseMarker):
        fault = replace(fault, partition=fault.partition or f"{topics[0].name}-0")
    if isinstance(fault, MoveLeader | BrokerFault) and any(spec.config.transactional_id for spec in producers):
        partitions.add(TRANSACTION_PARTITION)
    field = "leader_of" if isinstance(fault, BrokerFault) else "partition"
    partition = getattr(fault, field, None)
    if partition is not None and partition not in partitions:
        raise ScenarioError(f"{path}.{field}", f"a partition of the scenario's topics like orders-0, not {partition!r}")
    return fault


_SUFFIX = ".toml"

ORDER = (
    "five-in-flight",
    "six-in-flight",
    "refused-retry",
    "retry-without-idempotence",
    "one-in-flight",
    "muted-partition",
    "not-enough-replicas-after-append",
    "delivery-timeout-bump",
    "deliveries-time-out",
    "delivery-timeout-reset",
    "delivery-timeout-reuse",
    "acks0-leader-moves",
    "acks1-leader-dies",
    "unclean-election",
    "zombie-producer",
    "transaction-timeout",
    "hanging-transaction",
    "restart-loop",
    "cross-session",
    "expired-producer",
    "expired-producer-before-2.5",
    "unknown-producer-id",
    "remembered-producer",
    "forgotten-duplicate",
    "batch-split",
    "sequence-wrap",
    "epoch-exhaustion",
    "two-allocators",
    "retry-dup",
    "failover-acks1",
    "anything",
)
"""Their names, in the order to read them."""


def scenario_text(name: str) -> str:
    """Return the TOML of a shipped scenario. Raises KeyError for an unknown name."""
    if name not in ORDER:
        raise KeyError(name)
    return (files("kaudit.simulate") / "scenarios" / f"{name}{_SUFFIX}").read_text(encoding="utf-8")


def shipped(name: str) -> Scenario:
    """Read a shipped scenario. Raises KeyError for an unknown name."""
    return parse_scenario(scenario_text(name), name)
