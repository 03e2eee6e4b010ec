"""What each release of the Java client does, on both sides of each change.

Source: the release notes and KIPs that the table names, and the classes of those releases.
"""

from typing import Any

import pytest

from kaudit.broker.releases.version import RELEASES
from kaudit.simulate.producer.client_profile import client_for
from kaudit.simulate.producer.client_switches import ClientSwitches

FOREVER = 2**31 - 1
FIRST, NEWEST = "0.11.0.0", str(RELEASES[-1])
CHANGES: dict[str, list[Any]] = {
    "default_acks": [1, ("3.0.0", -1)],
    "default_retries": [0, ("2.1.0", FOREVER)],
    "default_max_in_flight": [5],
    "default_linger_ms": [0, ("4.0.0", 5)],
    "default_delivery_timeout_ms": [None, ("2.1.0", 120_000)],
    "default_retry_backoff_ms": [100],
    "default_retry_backoff_max_ms": [None, ("3.7.0", 1000)],
    "idempotent_max_in_flight": [1, ("1.0.0", 5)],
    "refuses_many_in_flight": [False, ("4.0.0", True)],
    "checks_delivery_timeout": [False, ("2.1.0", True)],
    "produce_version": [
        3, ("1.0.0", 5), ("2.0.0", 6), ("2.1.0", 7), ("2.4.0", 8), ("2.8.0", 9), ("3.7.0", 10), ("3.8.0", 11),
        ("4.0.0", 12), ("4.1.0", 13),
    ],
    "init_producer_id_version": [0, ("2.0.0", 1), ("2.4.0", 2), ("2.5.0", 3), ("2.7.0", 4), ("3.8.0", 5)],
    "add_partitions_version": [0, ("2.0.0", 1), ("2.7.0", 2), ("2.8.0", 3)],
    "end_txn_version": [0, ("2.0.0", 1), ("2.7.0", 2), ("2.8.0", 3), ("3.8.0", 4), ("4.0.0", 5)],
    "transaction_version2": [False, ("4.0.0", True)],
    "drain_passes_stopped_partition": [False, ("2.1.0", True)],
    "drain_index_per_node": [False, ("3.3.0", True)],
    "new_leader_skips_backoff": [False, ("3.7.0", True)],
    "halves_split_batches": [False, ("4.2.0", True)],
    "tracks_in_flight": [False, ("1.0.0", True)],
    "fails_batches_again": [True, ("3.6.0", False)],
    "recovery": ["reset-producer-id", ("2.5.0", "bump-epoch")],
    "fenced_produce_is_fatal": [True, ("2.7.0", False)],
    "illegal_state_is_fatal": [False, ("3.6.0", True)],
    "unknown_mapping_is_fatal": [True, ("2.5.0", False), ("4.0.0", True)],
    "unknown_mapping_on_produce_is_fatal": [False, ("4.0.0", True)],
    "knows_transaction_abortable": [False, ("3.8.0", True)],
}  # fmt: skip
"""What 0.11.0.0 does, and what each later release changed."""
BACKPORTED: dict[str, dict[str, bool]] = {
    "default_idempotence": {
        "2.8.2": False,
        "3.0.0": False,
        "3.0.1": True,
        "3.1.0": False,
        "3.1.1": True,
        "3.2.0": True,
    },
    "conflict_disables_idempotence": {"3.0.0": False, "3.0.1": True, "3.1.0": False, "3.1.1": True, "3.2.0": True},
    "bump_restarts_idle_partitions": {"2.6.3": False, "2.7.0": False, "2.7.1": True, "2.8.0": True},
}
"""What releases of several lines have."""


@pytest.mark.parametrize("switch", CHANGES)
def test_what_a_release_changed_is_so_from_it_on(switch):
    value, *changes = CHANGES[switch]
    expected = dict.fromkeys(map(str, RELEASES), value)
    for since, changed in changes:
        names = list(expected)
        expected |= dict.fromkeys(names[names.index(since) :], changed)
    assert {release: getattr(client_for(f"java {release}"), switch) for release in expected} == expected


@pytest.mark.parametrize("switch", BACKPORTED)
def test_what_several_lines_changed(switch):
    values = BACKPORTED[switch]
    ends = {FIRST: False, NEWEST: True}
    found = {release: getattr(client_for(f"java {release}"), switch) for release in values | ends}
    assert found == values | ends


def test_every_switch_is_looked_at():
    assert {*CHANGES, *BACKPORTED} == set(ClientSwitches.__struct_fields__)
