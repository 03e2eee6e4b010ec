"""Which of the events that only tell the time are kept."""

from kaudit.audits.log_events.application_logs import CLOCK_EVENTS, ClockEvents
from kaudit.model.application_logs import ONLY_FOR_CLOCKS, ApplicationLogs, LogEventKind
from tests.audits.log_events.made import event

KIND = LogEventKind


def test_of_many_some_are_kept_up_to_the_last_ones_and_of_others_all():
    chosen = ClockEvents()
    lines = [
        line
        for line in range(10 * CLOCK_EVENTS)
        if chosen.keeps(event(KIND.GROUP_ASSIGNED if line % 2 else KIND.LOG_ROLLED, line=line))
    ]
    assert lines[:CLOCK_EVENTS] == list(range(CLOCK_EVENTS))
    assert lines[CLOCK_EVENTS : 2 * CLOCK_EVENTS] == list(range(CLOCK_EVENTS + 1, 3 * CLOCK_EVENTS, 2))
    assert len(lines) < 4 * CLOCK_EVENTS
    assert lines[-1] >= 10 * CLOCK_EVENTS - 8
    for kind in set(KIND) - ONLY_FOR_CLOCKS | {KIND.BROKER_STARTING, KIND.BROKER_REGISTERED}:
        assert all(chosen.keeps(event(kind)) for _ in range(20))


def test_those_left_out_are_not_said_to_be_missing():
    counts = {"group_assigned": 900, "retry": 3}
    logs = ApplicationLogs([], [event(KIND.RETRY), event(KIND.GROUP_ASSIGNED)], counts)
    assert logs.not_kept == 2
