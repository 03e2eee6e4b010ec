"""Clocks of clients' logs: by what brokers say of the same requests, and by nothing else."""

import pytest
from msgspec.structs import replace

from kaudit.audits.log_events.broker_clocks import BrokerClock, client_clocks, unaligned_logs
from kaudit.audits.log_events.clock import ClockOffset
from kaudit.model.application_logs import LogEventKind
from tests.audits.log_events.made import event

AT, HOUR = 1_790_000_000_000, 3_600_000
KIND = LogEventKind
REFUSED = {"kind": KIND.OUT_OF_ORDER_SEQUENCE, "error": "OUT_OF_ORDER_SEQUENCE_NUMBER", "topic": "t", "partition": 0,
           "producer_id": 7, "base_sequence": 9}  # fmt: skip
GIVEN = {"kind": KIND.PRODUCER_ID_ASSIGNED, "transactional_id": "app", "producer_id": 7, "producer_epoch": 3}
JOINED = {"kind": KIND.GROUP_STABILIZED, "group": "g", "generation": 5}
BROKER = BrokerClock("b1", 1, frozenset({"b1/server.log"}), True)
BERLIN = BrokerClock(
    "b1", 1, frozenset({"b1/server.log"}), False, [ClockOffset(-HOUR, -HOUR, -HOUR, {}, {}, 60, (60,))]
)
UNKNOWN = BrokerClock("b1", 1, frozenset({"b1/server.log"}), False)


def logged(origin, fields, at, **more):
    path = "b1/server.log" if origin == "server" else "app.log"
    fields = fields | more
    kind = fields.pop("kind")
    return replace(event(kind, path=path, timestamp_ms=at, **fields), origin=origin)


def found(broker, *events):
    (clock,) = client_clocks(events, [broker])
    return clock


@pytest.mark.parametrize("fields", [REFUSED, GIVEN, JOINED], ids=["refusal", "producer-id", "group"])
@pytest.mark.parametrize("minutes", [0, 120, -570])
def test_a_request_that_both_tell_of_gives_the_zone(fields, minutes):
    client = logged("client", fields, AT + 60_000 * minutes + 12)
    clock = found(BROKER, logged("server", fields, AT, zone_known=True), client)
    assert [offset.zone_minutes for offset in clock.offsets] == [minutes]
    assert abs((clock.batch_time(client) or 0) - AT) <= 500


def test_a_broker_is_in_a_zone_of_its_own():
    client = logged("client", REFUSED, AT + 5)
    clock = found(BERLIN, logged("server", REFUSED, AT + HOUR), client)
    assert [offset.zone_minutes for offset in clock.offsets] == [0]


@pytest.mark.parametrize(
    ("broker", "server", "client"),
    [
        (UNKNOWN, [REFUSED], [REFUSED]),
        (BROKER, [REFUSED], [REFUSED | {"base_sequence": 8}]),
        (BROKER, [REFUSED], [REFUSED | {"producer_id": None}]),
        (BROKER, [REFUSED, REFUSED], [REFUSED]),
        (BROKER, [GIVEN | {"producer_epoch": 2}], [GIVEN]),
        (BROKER, [JOINED | {"generation": 4}], [JOINED]),
    ],
    ids=["broker-unknown", "other-batch", "no-producer", "one-of-two", "other-epoch", "other-generation"],
)
def test_without_the_same_request_times_are_taken_as_utc(broker, server, client):
    events = [logged("server", one, AT + 1000 * number, zone_known=True) for number, one in enumerate(server)]
    clock = found(broker, *events, *(logged("client", one, AT) for one in client))
    assert list(clock.offsets) == []
    assert [(one.directory, one.reason) for one in unaligned_logs([clock])] == [("app.log", "no-anchor")]
