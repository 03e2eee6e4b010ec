"""TOML to a scenario. Every mistake is reported as one line: the key, and what was expected there."""

import tomllib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from kaudit.broker.releases.profile import UnknownVersionError, profile_for
from kaudit.simulate.clock import BASE_TIMESTAMP
from kaudit.simulate.producer.config import ACKS_ALL, NO_TIMEOUT, Client, ProducerConfig
from kaudit.simulate.scenario.model import (
    DEFAULT_DETECT_MS,
    ClusterSpec,
    Fault,
    FaultKind,
    ProducerSpec,
    RandomFaults,
    Scenario,
    TopicSpec,
    TransactionSpec,
)
from kaudit.simulate.scenario.toml_table import DAY_MS, ScenarioError, TomlTable, shown

_HOUR_MS = 3_600_000
_MAX_RECORDS = 100_000_000
_T = TypeVar("_T")


def parse_scenario(text: str, name: str) -> Scenario:
    """Read a scenario called `name`. Raises ScenarioError."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError("", f"TOML: {error}") from None
    root = TomlTable(content, "")
    cluster = _cluster(root.table("cluster"))
    topics = _named("topics", [_topic(table, cluster) for table in root.tables("topics")], lambda topic: topic.name)
    producers = _named(
        "producers", [_producer(table, topics) for table in root.tables("producers")], lambda producer: producer.name
    )
    network = root.table("network")
    delay = network.int_range("delay_ms", (1, 3), 60_000)
    network.check_all_taken()
    scenario = Scenario(
        name,
        root.text("title", name),
        root.text("story", "-").strip(),
        root.integer("seed", 0, 0, 2**63 - 1),
        root.timestamp("starts_at", BASE_TIMESTAMP),
        root.integer("duration_ms", _HOUR_MS, 1, 30 * DAY_MS),
        (delay.low, delay.high),
        cluster,
        topics,
        producers,
        tuple(_fault(table, cluster, topics, producers) for table in root.tables("faults")),
        _random(root.table("random")) if root.has("random") else None,
        root.boolean("stop_at_end", default=True),
    )
    root.check_all_taken()
    return scenario


def _named(what: str, found: list[_T], name_of: Callable[[_T], str]) -> tuple[_T, ...]:
    if not found:
        raise ScenarioError(what, f"at least one table, [[{what}]]")
    seen: set[str] = set()
    for number, item in enumerate(found):
        name = name_of(item)
        if name in seen:
            raise ScenarioError(f"{what}[{number}].name", f"a name of its own, {name!r} is taken")
        seen.add(name)
    return tuple(found)


def _cluster(table: TomlTable) -> ClusterSpec:
    version = table.text("version", "4.2.0")
    try:
        profile_for(version)
    except UnknownVersionError as error:
        table.fail("version", f"a known release, {', '.join(map(str, error.nearest))}, not {version!r}")
    spec = ClusterSpec(
        version,
        table.integer("brokers", 1, 1, 9),
        table.integer("detect_ms", DEFAULT_DETECT_MS, 1),
        table.strings("config"),
    )
    _check_numbers(table.key("config"), spec.config)
    table.check_all_taken()
    return spec


def _topic(table: TomlTable, cluster: ClusterSpec) -> TopicSpec:
    topic = TopicSpec(
        table.text("name", None),
        table.integer("partitions", 1, 1, 1000),
        table.integer("replication_factor", cluster.brokers, 1, cluster.brokers),
        table.strings("config"),
    )
    if any(not (char.isascii() and (char.isalnum() or char in "._-")) for char in topic.name) or topic.name in "..":
        table.fail("name", f"letters, digits, dots, dashes and underscores, not {topic.name!r}")
    if topic.config.get("message.timestamp.type", "CreateTime") != "CreateTime":
        table.fail("config", "CreateTime: brokers that set the time are not modelled")
    _check_numbers(table.key("config"), topic.config)
    table.check_all_taken()
    return topic


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


def _check_numbers(path: str, config: Mapping[str, str]) -> None:
    for name, low in _NUMBERS.items():
        value = config.get(name)
        if value is not None and not (value.isdecimal() and int(value) >= low):
            raise ScenarioError(f'{path}."{name}"', f"a whole number from {low} on, not {value!r}")


def _producer(table: TomlTable, topics: tuple[TopicSpec, ...]) -> ProducerSpec:
    name = table.text("name", None)
    transaction = _transaction(table.table("transaction")) if table.has("transaction") else None
    release = table.one_of("client", {client.value.name: client for client in Client}, "current").value
    config = _config(table.table("config"), Client(release))
    if (transaction is None) != (config.transactional_id is None):
        table.fail("transaction", 'a table [producers.transaction] if and only if config has "transactional.id"')
    known = {topic.name: topic.name for topic in topics}
    spec = ProducerSpec(
        name,
        table.text("application", name),
        table.one_of("topic", known, topics[0].name),
        table.integer("records", 10, 1, _MAX_RECORDS),
        table.integer("start_ms", 0),
        table.integer("every_ms", 10),
        table.integer("burst", 1, 1, _MAX_RECORDS),
        table.integer("record_bytes", 24, 1, 1 << 20),
        transaction,
        table.integer("initializations", 1, 1, 32_766),
        table.integer("sessions", 1, 1, 100_000),
        config,
    )
    if spec.initializations > 1 and config.transactional_id is None:
        table.fail("initializations", 'a producer with "transactional.id"')
    table.check_all_taken()
    return spec


def _transaction(table: TomlTable) -> TransactionSpec:
    outcomes = table.take("outcomes", ["commit"])
    if type(outcomes) is not list or not outcomes or any(item not in ("commit", "abort") for item in outcomes):
        table.fail("outcomes", f'a list of "commit" and "abort", not {shown(outcomes)}')
    spec = TransactionSpec(
        table.integer("records", 5, 1, _MAX_RECORDS),
        tuple(item == "commit" for item in outcomes),
        table.integer("pause_ms", 0),
    )
    table.check_all_taken()
    return spec


def _config(table: TomlTable, client: Client) -> ProducerConfig:
    release = client.value
    transactional_id = table.text("transactional.id", None) if table.has("transactional.id") else None
    idempotent_by_default = release.idempotent or transactional_id is not None
    asked_acks = table.has("acks")
    acks = table.one_of("acks", {"0": 0, "1": 1, "all": ACKS_ALL, "-1": ACKS_ALL}, None) if asked_acks else None
    if acks not in (None, ACKS_ALL):
        idempotent_by_default = transactional_id is not None
    idempotent = table.boolean("enable.idempotence", default=idempotent_by_default)
    if idempotent and acks not in (None, ACKS_ALL):
        table.fail("acks", "all, since enable.idempotence is on")
    if transactional_id is not None and not idempotent:
        table.fail("enable.idempotence", "true, since there is a transactional.id")
    config = ProducerConfig(
        release,
        (ACKS_ALL if idempotent else release.acks) if acks is None else acks,
        idempotent,
        table.integer("max.in.flight.requests.per.connection", 5, 1, 100),
        table.integer("batch.size", 16_384, 100, 1 << 24),
        table.integer("linger.ms", release.linger_ms),
        table.integer("retries", NO_TIMEOUT if idempotent else release.retries, 0, NO_TIMEOUT),
        table.integer("retry.backoff.ms", 100, 0),
        table.integer("retry.backoff.max.ms", release.retry_backoff_max_ms),
        table.integer("request.timeout.ms", 30_000, 1),
        table.integer("delivery.timeout.ms", release.delivery_timeout_ms, 1)
        if release.delivery_timeout_ms is not None
        else None,
        table.integer("max.request.size", 1_048_576, 100, 1 << 30),
        table.integer("reconnect.backoff.ms", 50),
        transactional_id,
        table.integer("transaction.timeout.ms", 60_000, 1),
    )
    table.check_all_taken()
    return config


_RESTARTED = (FaultKind.KILL_BROKER, FaultKind.STOP_BROKER)
_RELOADED = (*_RESTARTED, FaultKind.START_BROKER)


def _fault(
    table: TomlTable, cluster: ClusterSpec, topics: tuple[TopicSpec, ...], producers: tuple[ProducerSpec, ...]
) -> Fault:
    kind = table.one_of("kind", {kind.value: kind for kind in FaultKind}, None)
    fields: dict[str, Any] = {}
    if kind not in (FaultKind.LOSE_REQUEST, FaultKind.LOSE_RESPONSE):
        fields["at_ms"] = table.integer("at_ms", None)
    match kind:
        case FaultKind.LOSE_REQUEST | FaultKind.LOSE_RESPONSE:
            fields |= _loss(table, producers)
        case FaultKind.KILL_PRODUCER | FaultKind.PAUSE_PRODUCER:
            fields |= _producer_fault(table, kind, producers)
        case FaultKind.DELETE_RECORDS:
            fields["partition"] = _existing(table, "partition", topics) or (topics[0].name, 0)
            fields["before_offset"] = table.integer("before_offset", -1, -1, 2**62)
        case _:
            fields |= _broker_fault(table, kind, cluster, topics)
    table.check_all_taken()
    return Fault(kind, **fields)


def _producer_name(table: TomlTable, producers: tuple[ProducerSpec, ...]) -> str:
    return table.one_of("producer", {producer.name: producer.name for producer in producers}, producers[0].name)


def _loss(table: TomlTable, producers: tuple[ProducerSpec, ...]) -> dict[str, Any]:
    return {
        "producer": _producer_name(table, producers),
        "request": table.integer("request", None, 1, _MAX_RECORDS),
        "times": table.integer("times", 1, 1, _MAX_RECORDS),
        "silent": table.boolean("silent", default=False),
        "behind": table.boolean("behind", default=True),
    }


def _producer_fault(table: TomlTable, kind: FaultKind, producers: tuple[ProducerSpec, ...]) -> dict[str, Any]:
    fields: dict[str, Any] = {"producer": _producer_name(table, producers)}
    if kind is FaultKind.PAUSE_PRODUCER:
        fields["for_ms"] = table.integer("for_ms", None, 1)
    else:
        if table.has("restart_after_ms"):
            fields["restart_after_ms"] = table.integer("restart_after_ms", None)
        fields["resend"] = table.integer("resend", 0, 0, _MAX_RECORDS)
    return fields


def _broker_fault(
    table: TomlTable, kind: FaultKind, cluster: ClusterSpec, topics: tuple[TopicSpec, ...]
) -> dict[str, Any]:
    fields: dict[str, Any] = {"leader_of": _existing(table, "leader_of", topics)}
    if fields["leader_of"] is None:
        fields["broker"] = table.integer("broker", None, 1, cluster.brokers)
    if kind in _RESTARTED and table.has("restart_after_ms"):
        fields["restart_after_ms"] = table.integer("restart_after_ms", None)
    if kind in _RELOADED:
        fields["without_snapshots"] = table.boolean("without_snapshots", default=False)
    if kind is FaultKind.PAUSE_BROKER:
        fields["for_ms"] = table.integer("for_ms", None, 1)
    return fields


def _existing(table: TomlTable, name: str, topics: tuple[TopicSpec, ...]) -> tuple[str, int] | None:
    found = table.partition(name)
    if found is not None and not any(topic.name == found[0] and found[1] < topic.partitions for topic in topics):
        table.fail(name, f"a partition of the scenario's topics, not {found[0]}-{found[1]}")
    return found


def _random(table: TomlTable) -> RandomFaults:
    faults = RandomFaults(
        table.rate("request_loss"),
        table.rate("response_loss"),
        table.rate("silent_share"),
        table.int_range("within_ms", (0, 1000)),
        table.int_range("kill_brokers", (0, 0), 100),
        table.int_range("stop_brokers", (0, 0), 100),
        table.int_range("pause_brokers", (0, 0), 100),
        table.int_range("down_ms", (500, 3000)),
        table.int_range("pause_ms", (100, 3000)),
        table.int_range("kill_producers", (0, 0), 100),
        table.int_range("resend", (0, 0), _MAX_RECORDS),
        table.int_range("delete_records", (0, 0), 100),
    )
    table.check_all_taken()
    return faults
