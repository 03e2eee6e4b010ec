"""What librdkafka and franz-go do otherwise than the Java client, on both sides of each change.

Source: the configuration reference and the CHANGELOG of librdkafka, rdkafka_request.c; pkg/kgo/config.go and the CHANGELOG of franz-go.
"""

from typing import Any

import pytest

from kaudit.simulate.producer.client_profile import client_for
from kaudit.simulate.producer.client_switches import ClientSwitches

FOREVER = 2**31 - 1
LIBRDKAFKA: dict[str, dict[str, Any]] = {
    "default_acks": {"1.0.0": -1},
    "default_idempotence": {"1.0.0": False},
    "default_retries": {"1.0.0": 2, "1.5.3": 2, "1.6.0": FOREVER},
    "default_max_in_flight": {"1.0.0": 100},
    "default_linger_ms": {"1.0.0": 0, "1.4.4": 0, "1.5.0": 5},
    "default_delivery_timeout_ms": {"1.0.0": 300_000},
    "default_retry_backoff_ms": {"1.0.0": 100},
    "default_retry_backoff_max_ms": {"1.0.0": None, "2.2.0": None, "2.3.0": 1000},
    "idempotent_max_in_flight": {"1.0.0": 5},
    "conflict_disables_idempotence": {"1.0.0": False},
    "checks_delivery_timeout": {"1.0.0": False},
    "produce_version": {"1.0.0": 7, "2.4.0": 7, "2.5.0": 10},
    "init_producer_id_version": {"1.0.0": 1, "1.6.2": 1, "1.7.0": 4},
    "add_partitions_version": {"1.0.0": 0},
    "end_txn_version": {"1.0.0": 1},
    "transaction_version2": {"1.0.0": False},
    "recovery": {"1.0.0": "librdkafka"},
    "fenced_produce_is_fatal": {"1.0.0": True},
}
FRANZ_GO: dict[str, dict[str, Any]] = {
    "default_acks": {"1.0.0": -1},
    "default_idempotence": {"1.0.0": True},
    "default_retries": {"1.0.0": FOREVER},
    "default_max_in_flight": {"1.0.0": 1},
    "default_linger_ms": {"1.0.0": 0, "1.19.5": 0, "1.20.0": 10},
    "default_delivery_timeout_ms": {"1.0.0": FOREVER},
    "default_retry_backoff_ms": {"1.0.0": 250},
    "default_retry_backoff_max_ms": {"1.0.0": 5000},
    "conflict_disables_idempotence": {"1.0.0": False},
    "checks_delivery_timeout": {"1.0.0": False},
    "transaction_version2": {"1.0.0": False, "1.17.1": False, "1.18.0": True},
    "recovery": {"1.0.0": "franz-go"},
}
LATEST = {"librdkafka": "2.14.1", "franz-go": "1.21.5"}


@pytest.mark.parametrize(
    ("library", "switch"), [*(("librdkafka", name) for name in LIBRDKAFKA), *(("franz-go", name) for name in FRANZ_GO)]
)
def test_what_a_release_does(library, switch):
    """What changed stays so up to the latest release."""
    values = (LIBRDKAFKA if library == "librdkafka" else FRANZ_GO)[switch]
    latest = {LATEST[library]: list(values.values())[-1]}
    for release, value in (values | latest).items():
        assert getattr(client_for(f"{library} {release}"), switch) == value, release


@pytest.mark.parametrize(("library", "like"), [("librdkafka 1.0.0", "3.6.0"), ("franz-go 1.0.0", "4.1.0")])
def test_all_else_is_as_a_release_of_the_java_client_does_it(library, like):
    own = LIBRDKAFKA if library.startswith("lib") else FRANZ_GO
    others = set(ClientSwitches.__struct_fields__) - set(own)
    client, java = client_for(library), client_for(f"java {like}")
    assert {name: getattr(client, name) for name in others} == {name: getattr(java, name) for name in others}
