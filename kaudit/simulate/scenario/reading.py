"""TOML to a scenario. Every mistake is one line: the key, and what was expected there."""

import tomllib
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NoReturn, TypeVar

from kaudit.broker.releases.profile import UnknownVersionError, profile_for
from kaudit.simulate.clock import BASE_TIMESTAMP
from kaudit.simulate.producer.config import ACKS_ALL, NO_TIMEOUT, Client, ProducerConfig
from kaudit.simulate.scenario.model import (
    DEFAULT_DETECT_MS,
    Between,
    ClusterSpec,
    Fault,
    FaultKind,
    ProducerSpec,
    RandomFaults,
    Scenario,
    TopicSpec,
    TransactionSpec,
)

_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS
_MAX_RECORDS = 100_000_000
_T = TypeVar("_T")


class ScenarioError(ValueError):
    """A scenario that cannot be run: `key` says where, `expected` what should have been there."""

    def __init__(self, key: str, expected: str) -> None:
        self.key = key
        self.expected = expected
        super().__init__(f"{key}: expected {expected}")


class Table:
    """One table of the TOML with its place; what nobody took in the end is a mistake."""

    def __init__(self, content: object, place: str) -> None:
        if not isinstance(content, dict):
            raise ScenarioError(place, f"a table, not {_shown(content)}")
        self._content: dict[str, Any] = dict(content)
        self._known: list[str] = []
        self.place = place

    def key(self, name: str) -> str:
        """Return the full key of a field, as people would write it."""
        quoted = f'"{name}"' if "." in name else name
        return f"{self.place}.{quoted}" if self.place else quoted

    def fail(self, name: str, expected: str) -> NoReturn:
        """Raise for a field."""
        raise ScenarioError(self.key(name), expected)

    def has(self, name: str) -> bool:
        """Tell whether a field is there."""
        self._known.append(name)
        return name in self._content

    def take(self, name: str, default: object = None) -> Any:  # noqa: ANN401 - whatever TOML holds
        """Take a field out."""
        self._known.append(name)
        return self._content.pop(name, default)

    def integer(self, name: str, default: int | None, low: int = 0, high: int = _DAY_MS) -> int:
        """Take a whole number within bounds; required when `default` is None."""
        value = self.take(name, default)
        if type(value) is not int or not low <= value <= high:
            self.fail(name, f"a whole number from {low} to {high}, not {_shown(value)}")
        return value

    def boolean(self, name: str, *, default: bool) -> bool:
        """Take true or false."""
        value = self.take(name, default)
        if type(value) is not bool:
            self.fail(name, f"true or false, not {_shown(value)}")
        return value

    def text(self, name: str, default: str | None) -> str:
        """Take a string that is not empty."""
        value = self.take(name, default)
        if type(value) is not str or not value:
            self.fail(name, f"a text, not {_shown(value)}")
        return value

    def one_of(self, name: str, choices: Mapping[str, _T], default: str | None) -> _T:
        """Take one of several words."""
        value = self.take(name, default)
        if type(value) is not str or value not in choices:
            self.fail(name, f"one of {', '.join(choices)}, not {_shown(value)}")
        return choices[value]

    def between(self, name: str, default: tuple[int, int], high: int = _DAY_MS) -> Between:
        """Take a pair of bounds, or one number for both."""
        value = self.take(name, list(default))
        pair = [value, value] if type(value) is int else value
        whole = type(pair) is list and len(pair) == 2 and all(type(item) is int for item in pair)
        if not whole or not 0 <= pair[0] <= pair[1] <= high:
            self.fail(name, f"[low, high], whole numbers from 0 to {high}, not {_shown(value)}")
        return Between(pair[0], pair[1])

    def moment(self, name: str, default: int) -> int:
        """Take a date with time and zone, as ms since 1970."""
        if not self.has(name):
            return default
        value = self.take(name)
        if type(value) is not datetime or value.tzinfo is None:
            self.fail(name, f"a date with time and zone like 2026-01-31T08:00:00Z, not {_shown(value)}")
        return int(value.timestamp() * 1000)

    def rate(self, name: str) -> float:
        """Take a share from 0 to 1."""
        value = self.take(name, 0)
        if type(value) not in (int, float) or not 0 <= value <= 1:
            self.fail(name, f"a number from 0 to 1, not {_shown(value)}")
        return float(value)

    def tables(self, name: str) -> list["Table"]:
        """Take an array of tables."""
        value = self.take(name, [])
        if type(value) is not list:
            self.fail(name, f"tables, [[{name}]], not {_shown(value)}")
        return [Table(item, f"{self.key(name)}[{number}]") for number, item in enumerate(value)]

    def table(self, name: str) -> "Table":
        """Take a table, an empty one if there is none."""
        return Table(self.take(name, {}), self.key(name))

    def strings(self, name: str) -> dict[str, str]:
        """Take a table of configuration: Kafka's names and values, which become strings."""
        inner = self.table(name)
        found: dict[str, str] = {}
        for key, value in inner._content.items():  # noqa: SLF001 - of this class
            if isinstance(value, bool):
                found[key] = "true" if value else "false"
            elif isinstance(value, int | str):
                found[key] = str(value)
            else:
                inner.fail(key, f"a number, text, true or false, not {_shown(value)}")
        return found

    def partition(self, name: str) -> tuple[str, int] | None:
        """Take a partition, `topic-0`."""
        if not self.has(name):
            return None
        value = self.text(name, None)
        topic, _, number = value.rpartition("-")
        if not topic or not number.isdecimal():
            self.fail(name, f"a partition like orders-0, not {_shown(value)}")
        return topic, int(number)

    def done(self) -> None:
        """Raise for a field nobody knows."""
        for name in self._content:
            near = [known for known in self._known if known.replace("_", "") == name.replace("_", "").replace("-", "")]
            self.fail(
                name,
                f"no such key{f', {near[0]} is one' if near else ''}; known are {', '.join(sorted(set(self._known)))}",
            )


def _shown(value: object) -> str:
    if value is None:
        return "nothing"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def parse_scenario(text: str, name: str) -> Scenario:
    """Read a scenario called `name`. Raises ScenarioError."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError("", f"TOML: {error}") from None
    root = Table(content, "")
    cluster = _cluster(root.table("cluster"))
    topics = _named("topics", [_topic(table, cluster) for table in root.tables("topics")], lambda topic: topic.name)
    producers = _named(
        "producers", [_producer(table, topics) for table in root.tables("producers")], lambda producer: producer.name
    )
    network = root.table("network")
    delay = network.between("delay_ms", (1, 3), 60_000)
    network.done()
    scenario = Scenario(
        name,
        root.text("title", name),
        root.text("story", "-").strip(),
        root.integer("seed", 0, 0, 2**63 - 1),
        root.moment("starts_at", BASE_TIMESTAMP),
        root.integer("duration_ms", _HOUR_MS, 1, 30 * _DAY_MS),
        (delay.low, delay.high),
        cluster,
        topics,
        producers,
        tuple(_fault(table, cluster, topics, producers) for table in root.tables("faults")),
        _random(root.table("random")) if root.has("random") else None,
        root.boolean("stop_at_end", default=True),
    )
    root.done()
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


def _cluster(table: Table) -> ClusterSpec:
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
    table.done()
    return spec


def _topic(table: Table, cluster: ClusterSpec) -> TopicSpec:
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
    table.done()
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


def _check_numbers(place: str, config: Mapping[str, str]) -> None:
    for name, low in _NUMBERS.items():
        value = config.get(name)
        if value is not None and not (value.isdecimal() and int(value) >= low):
            raise ScenarioError(f'{place}."{name}"', f"a whole number from {low} on, not {value!r}")


def _producer(table: Table, topics: tuple[TopicSpec, ...]) -> ProducerSpec:
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
    table.done()
    return spec


def _transaction(table: Table) -> TransactionSpec:
    outcomes = table.take("outcomes", ["commit"])
    if type(outcomes) is not list or not outcomes or any(item not in ("commit", "abort") for item in outcomes):
        table.fail("outcomes", f'a list of "commit" and "abort", not {_shown(outcomes)}')
    spec = TransactionSpec(
        table.integer("records", 5, 1, _MAX_RECORDS),
        tuple(item == "commit" for item in outcomes),
        table.integer("pause_ms", 0),
    )
    table.done()
    return spec


def _config(table: Table, client: Client) -> ProducerConfig:
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
    table.done()
    return config


_LOSSES = (FaultKind.LOSE_REQUEST, FaultKind.LOSE_RESPONSE)
_BROKERS = (
    FaultKind.KILL_BROKER,
    FaultKind.STOP_BROKER,
    FaultKind.START_BROKER,
    FaultKind.PAUSE_BROKER,
    FaultKind.LOSE_ALLOCATION,
)
_PRODUCERS = (FaultKind.KILL_PRODUCER, FaultKind.PAUSE_PRODUCER)


def _fault(
    table: Table, cluster: ClusterSpec, topics: tuple[TopicSpec, ...], producers: tuple[ProducerSpec, ...]
) -> Fault:
    kind = table.one_of("kind", {kind.value: kind for kind in FaultKind}, None)
    names = {producer.name: producer.name for producer in producers}
    fields: dict[str, Any] = {}
    if kind not in _LOSSES:
        fields["at_ms"] = table.integer("at_ms", None)
    if kind in _LOSSES:
        fields["producer"] = table.one_of("producer", names, producers[0].name)
        fields["request"] = table.integer("request", None, 1, _MAX_RECORDS)
        fields["times"] = table.integer("times", 1, 1, _MAX_RECORDS)
        fields["silent"] = table.boolean("silent", default=False)
        fields["behind"] = table.boolean("behind", default=True)
    elif kind in _BROKERS:
        fields["leader_of"] = _existing(table, "leader_of", topics)
        if fields["leader_of"] is None:
            fields["broker"] = table.integer("broker", None, 1, cluster.brokers)
        if kind in (FaultKind.KILL_BROKER, FaultKind.STOP_BROKER) and table.has("restart_after_ms"):
            fields["restart_after_ms"] = table.integer("restart_after_ms", None)
        if kind in (FaultKind.KILL_BROKER, FaultKind.STOP_BROKER, FaultKind.START_BROKER):
            fields["without_snapshots"] = table.boolean("without_snapshots", default=False)
        if kind is FaultKind.PAUSE_BROKER:
            fields["for_ms"] = table.integer("for_ms", None, 1)
    elif kind in _PRODUCERS:
        fields["producer"] = table.one_of("producer", names, producers[0].name)
        if kind is FaultKind.PAUSE_PRODUCER:
            fields["for_ms"] = table.integer("for_ms", None, 1)
        else:
            if table.has("restart_after_ms"):
                fields["restart_after_ms"] = table.integer("restart_after_ms", None)
            fields["resend"] = table.integer("resend", 0, 0, _MAX_RECORDS)
    else:
        fields["partition"] = _existing(table, "partition", topics) or (topics[0].name, 0)
        fields["before_offset"] = table.integer("before_offset", -1, -1, 2**62)
    table.done()
    return Fault(kind, **fields)


def _existing(table: Table, name: str, topics: tuple[TopicSpec, ...]) -> tuple[str, int] | None:
    found = table.partition(name)
    if found is not None and not any(topic.name == found[0] and found[1] < topic.partitions for topic in topics):
        table.fail(name, f"a partition of the scenario's topics, not {found[0]}-{found[1]}")
    return found


def _random(table: Table) -> RandomFaults:
    chance = RandomFaults(
        table.rate("request_loss"),
        table.rate("response_loss"),
        table.rate("silent_share"),
        table.between("within_ms", (0, 1000)),
        table.between("kill_brokers", (0, 0), 100),
        table.between("stop_brokers", (0, 0), 100),
        table.between("pause_brokers", (0, 0), 100),
        table.between("down_ms", (500, 3000)),
        table.between("pause_ms", (100, 3000)),
        table.between("kill_producers", (0, 0), 100),
        table.between("resend", (0, 0), _MAX_RECORDS),
        table.between("delete_records", (0, 0), 100),
    )
    table.done()
    return chance
