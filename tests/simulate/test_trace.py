"""The events that a sequence diagram shows: the first so many, all faults, and the state after each."""

from typing import Any

from kaudit.simulate.trace import NO_STATE, BrokerAnswer, EventKind, Trace, TraceEvent


def noted(trace, count, *, since=0):
    for at in range(since, since + count):
        trace.note(at, "p", f"note {at}")


def shown(trace):
    return [(event.kind, event.at, event.text, event.omitted) for event in trace.events]


def test_the_first_events_are_kept_and_all_faults():
    trace = Trace(3)
    assert not trace.is_full
    noted(trace, 2)
    trace.fault(2, "broker 1", "killed")
    assert not trace.is_full
    noted(trace, 1, since=3)
    assert trace.is_full
    noted(trace, 2, since=4)
    trace.fault(6, "broker 1", "starts")
    noted(trace, 1, since=7)
    trace.fault(8, "broker 1", "killed")
    trace.fault(9, "broker 1", "starts")
    assert shown(trace) == [
        (EventKind.NOTE, 0, "note 0", 0),
        (EventKind.NOTE, 1, "note 1", 0),
        (EventKind.FAULT, 2, "killed", 0),
        (EventKind.NOTE, 3, "note 3", 0),
        (EventKind.FAULT, 6, "starts", 2),
        (EventKind.FAULT, 8, "killed", 1),
        (EventKind.FAULT, 9, "starts", 0),
    ]
    assert trace.omitted == 3


def test_what_one_participant_did_has_it_on_both_ends_and_the_partitions_concerned():
    trace = Trace()
    trace.note(5, "shop", "sends", "orders-0", "orders-1")
    trace.fault(6, "broker 1", "killed", "orders-0")
    assert trace.events == [
        TraceEvent(EventKind.NOTE, 5, 5, "shop", "shop", "sends", partitions=("orders-0", "orders-1")),
        TraceEvent(EventKind.FAULT, 6, 6, "broker 1", "broker 1", "killed", partitions=("orders-0",)),
    ]


def test_each_event_has_the_state_of_when_everything_that_followed_at_once_was_done():
    trace = Trace()
    states: Any = iter("abc")
    trace.observe = lambda: next(states)

    def read() -> list[Any]:
        return [event.state for event in trace.events if event.state is not NO_STATE]

    noted(trace, 2)
    assert read() == ["a"]
    trace.settle()
    trace.settle()  # it is settled
    assert read() == ["a", "b"]
    noted(trace, 1)
    trace.settle()
    assert read() == ["a", "b", "c"]


def test_without_room_for_events_no_state_is_read():
    trace = Trace(0)
    trace.observe = lambda: 1 / 0  # type: ignore[assignment, return-value]
    trace.fault(1, "broker 1", "killed")
    trace.fault(2, "broker 1", "starts")
    noted(trace, 1)
    trace.settle()
    assert [event.text for event in trace.events] == ["killed", "starts"]
    assert (trace.omitted, trace.is_full) == (1, True)


def test_what_a_broker_decides_belongs_to_the_arrival_of_its_request():
    trace, request, other = Trace(), object(), object()
    one, two = (BrokerAnswer(partition, None) for partition in ("orders-0", "orders-1"))
    trace.answered(None, one)  # nothing has arrived
    noted(trace, 1)
    trace.add(TraceEvent(EventKind.REQUEST, 1, 2, "shop", "broker 1", "Produce"), request)
    trace.answered(request, one)
    trace.answered(other, one)
    trace.answered(request, two)
    noted(trace, 1, since=3)
    trace.answered(request, one)
    trace.settle()
    trace.answered(None, one)
    assert [event.answers for event in trace.events] == [(), (one, two), ()]
