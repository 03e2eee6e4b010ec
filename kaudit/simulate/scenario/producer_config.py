"""A producer's configuration, completed and refused as its client does. Source: ProducerConfig, KafkaProducer."""

from typing import Any

from msgspec.structs import asdict

from kaudit.simulate.producer.config import ProducerConfig, ProducerSettings
from kaudit.simulate.producer.releases.profile import ClientProfile
from kaudit.simulate.producer.releases.switches import ACKS_ALL, NO_LIMIT
from kaudit.simulate.scenario.tables import ScenarioError, convert, one_of

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
