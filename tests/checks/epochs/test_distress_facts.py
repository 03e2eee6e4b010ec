"""What a series of raised epochs costs, counted by hand from what a client's lines say; how long it took, and how fast."""

import pytest
from msgspec.structs import replace

from kaudit.checks.epochs.distress import failing_sends, mutual_fencing, restart_loop
from kaudit.model.application_logs import LogEvent, LogEventKind
from kaudit.model.impact import Impact
from kaudit.model.observation import Observation, ObservationKind
from kaudit.model.producer_patterns import GivenUpSends, RaisedEpochs, RepeatedSession, RepeatedStarts
from kaudit.model.producer_state import ABORT_BUMPED, ProducerAuditState, RetainedBatch
from tests.checks.facts import batch, reported, summary

WINDOW = (RetainedBatch(0, 0, 2, 1), RetainedBatch(3, 3, 5, 1))
"""Six records may have been in flight."""


def rise(
    epoch: int, time: int, before: int | None = None, kind=ObservationKind.CLIENT_BUMP, *, transactional=False
) -> Observation:
    state = ProducerAuditState(epoch - 1 if before is None else before, 5, WINDOW, flags=ABORT_BUMPED)
    own = batch(100 * epoch, 0, 2, 100 * epoch)._replace(max_timestamp=time)
    return Observation(kind, 7, epoch, own, None, transactional, state)


RISES = [rise(1, 1000), rise(2, 61_000), rise(4, 121_000, 2)]
ENDS = {0: 5, 1: 9, 2: 3, 4: 0}


def series(*given_up: GivenUpSends, ends=None, rises=None) -> RaisedEpochs:
    return RaisedEpochs(RISES if rises is None else rises, ENDS if ends is None else ends, given_up)


def sends(epoch: int, acknowledged: int | None, assigned: int, *moved: tuple[int, int]) -> GivenUpSends:
    return GivenUpSends(epoch, acknowledged, assigned, moved)


def test_without_the_clients_log_there_are_bounds():
    (found,) = reported(failing_sends, series())
    assert found.message == (
        "producer 7 raised its epoch 4 times in 120 s, 2 a minute: 4 epochs have batches here, 1 have none; the application may have "
        "received an error for up to 21 records that are here, and other records that it sent may be missing"
    )
    assert summary(found) == ("warning", "likely", 100, 401)
    assert found.impact == Impact()
    evidence = found.evidence
    assert (evidence["first_epoch"], evidence["last_epoch"], evidence["rises"]) == (0, 4, 3)
    assert (evidence["epochs_here"], evidence["epochs_without_batch"]) == (4, 1)
    # six in flight at the first rise, and all of the epochs since then: 10, 4 and 1
    assert evidence["records"] == 6 + 10 + 4 + 1
    assert (evidence["first_timestamp"], evidence["last_timestamp"], evidence["per_minute"]) == (1000, 121_000, 2.0)
    assert "to_be_certain" in evidence.to_dict()
    assert found.producer_epoch is None


@pytest.mark.parametrize(
    ("given_up", "written", "lacking", "failed"),
    [
        # of epoch 0, whose batches end at 5 here, 4..7 were given up
        ([sends(0, 3, 7)], 2, 2, [(0, 4, 7, 2)]),
        ([sends(0, 5, 7)], 0, 2, [(0, 6, 7, 0)]),
        ([sends(0, 3, 5)], 2, 0, [(0, 4, 5, 2)]),
        # acknowledged, and yet not here: it begins after what is here
        ([sends(0, 6, 7)], 0, 2, [(0, 6, 7, 0)]),
        # nothing was acknowledged
        ([sends(0, -1, 7)], 6, 2, [(0, 0, 7, 6)]),
        # which was acknowledged is not known
        ([sends(0, None, 7)], 0, 2, [(0, 6, 7, 0)]),
        # the last epoch is not over
        ([sends(4, -1, 7)], 1, 0, [(4, 0, 7, 1)]),
        # of an epoch that left nothing here all are missing
        ([sends(3, -1, 7)], 0, 8, [(3, 0, 7, 0)]),
        ([sends(0, 5, 5)], None, None, None),
        ([sends(0, 3, 7), sends(1, 7, 11)], 4, 4, [(0, 4, 7, 2), (1, 8, 11, 2)]),
        # 8 and what follows went on in the next epoch as 0 and what follows: 6..7 are nowhere
        ([sends(0, None, 11, (8, 0))], 0, 2, [(0, 6, 7, 0)]),
        # 4..5, which are here, went on as 0..1 of epoch 1: those are no loss there
        ([sends(0, None, 11, (4, 0), (6, 2)), sends(1, 9, 9)], None, None, None),
        ([sends(2, None, 11, (2, 0), (5, 3)), sends(3, -1, 7)], 0, 5, [(3, 0, 7, 0)]),
    ],
)  # fmt: skip
def test_what_a_client_gave_up_is_here_or_not(given_up, written, lacking, failed):
    (found,) = reported(failing_sends, series(*given_up))
    evidence = found.evidence.to_dict()
    assert (evidence.get("written_though_failed"), evidence.get("not_written")) == (written, lacking)
    if failed is None:
        return
    names = ("producer_epoch", "first_sequence", "last_sequence", "written")
    assert evidence["failed"] == [dict(zip(names, each, strict=True)) for each in failed]
    assert summary(found)[:2] == ("error" if lacking else "warning", "certain")
    assert found.impact == Impact(
        records_failed_but_written=written,
        records_failed_but_written_at_most=21,
        records_failed_not_written=lacking,
    )


def test_what_the_message_and_the_causes_say_of_a_client_that_gave_up():
    given_up = [sends(epoch, -1, 9) for epoch in (0, 1, 2, 3)]
    (found,) = reported(failing_sends, series(*given_up))
    assert found.message.endswith(
        "; as its log shows, at least 20, at most 21 records are here of sends that failed, and at least 20 that it sent are not"
    )
    assert list(found.explanations[0].speaks_for) == [
        "its log gives up, in epoch 0: sequences 0..5 are here, sequences 6..9 are not",
        "its log gives up, in epoch 1: sequences 0..9 are here",
        "its log gives up, in epoch 2: sequences 0..3 are here, sequences 4..9 are not",
        "and in 1 more epoch",
    ]
    (found,) = reported(failing_sends, series(given_up[1]))
    assert found.message.endswith("; as its log shows, at least 10, at most 21 records are here of sends that failed")


def test_nothing_is_left_to_find_out_where_all_that_is_here_was_given_up():
    one = series(sends(0, -1, 5), sends(1, -1, 9), sends(2, -1, 3), sends(4, -1, 0))
    assert "to_be_certain" not in reported(failing_sends, one)[0].evidence.to_dict()


@pytest.mark.parametrize(
    ("last_ms", "text"),
    [
        (1000, "in 0 s, 240 a minute"),
        (1500, "in 0 s, 240 a minute"),
        (3000, "in 2 s, 120 a minute"),
        (600_499, "in 599 s, 0.4 a minute"),
        (601_000, "in 10 min, 0.4 a minute"),
        (-119_000, "in 120 s, 2 a minute"),
    ],
)
def test_how_long_it_took_and_how_fast(last_ms, text):
    rises = [*RISES[:2], rise(4, last_ms, 2)]
    assert text in reported(failing_sends, series(rises=rises))[0].message


def instances(*fenced: int) -> RaisedEpochs:
    """Epochs 1, 3 and 5 of one transactional id, and the epochs of those that were refused."""
    rises = [rise(epoch, 1000 * epoch, kind=ObservationKind.RESTART_BUMP, transactional=True) for epoch in (1, 3, 5)]
    events = [
        LogEvent(
            event=LogEventKind.FENCED_PRODUCER, origin="server", path="s", line=1, pattern="", text="", producer_epoch=own
        )
        for own in fenced
    ]  # fmt: skip
    return RaisedEpochs(rises, {}, (), events)


@pytest.mark.parametrize(
    ("fenced", "count"),
    [((), 0), ((0, 0), 1), ((-1, 0), 2), ((-2, 0), 1), ((4, 5), 2), ((5, 6), 1), ((0, 2, 4), 3)],
)
def test_requests_of_two_older_epochs_tell_two_instances_from_one(fenced, count):
    one = instances(*fenced)
    assert len(reported(restart_loop, one)) == (count < 2)
    found = reported(mutual_fencing, one)
    assert len(found) == (count >= 2)
    assert reported(failing_sends, one) == []
    for each in (*found, *reported(restart_loop, one)):
        assert each.evidence["fenced_epochs"] == count
        assert summary(each) == ("warning", "likely", 100, 501)
        assert "was initialised 3 times in 4 s, 45 a minute, each time in the middle of a transaction" in each.message


def test_clients_that_raise_epochs_are_no_instances():
    assert reported(restart_loop, series()) == []
    assert reported(mutual_fencing, replace(series(), fenced=instances(0, 1, 2).fenced)) == []


def test_sessions_that_began_with_records_of_one_before():
    def session(number: int) -> RepeatedSession:
        own = batch(10 * number, 0, 5, 10 * number)._replace(max_timestamp=1000 + 30_000 * number)
        before = batch(10 * number - 10, 0, 5, 0)
        return RepeatedSession(
            70 + number, 0, own.base_offset, own.last_offset, 69 + number, 0, 0, 4, 5, True, before, own
        )

    (found,) = reported(restart_loop, RepeatedStarts([session(number) for number in range(1, 6)]))
    assert found.message == (
        "5 sessions began in 120 s, 2.5 a minute, each with records of one before it (25 records, producer ids 70..75): an application is "
        "started again and again"
    )
    assert (*summary(found), found.producer_id, found.producer_epoch) == ("warning", "likely", 10, 54, 71, None)
    evidence = found.evidence
    assert (evidence["producer_ids"], evidence["records"]) == ([70, 71, 72, 73, 74, 75], 25)
    assert (evidence["first_timestamp"], evidence["last_timestamp"], evidence["per_minute"]) == (31_000, 151_000, 2.5)
    batches = found.evidence.to_dict()
    assert [batches[name]["producer_id"] for name in ("previous", "offending")] == [70, 71]  # type: ignore[index]
    assert [each.innocent for each in found.explanations] == [False, True]
