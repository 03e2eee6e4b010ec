"""What an audit of transitions keeps of many observations, and what it says of the batches behind a restart."""

from dataclasses import replace
from itertools import zip_longest

import pytest

from kaudit.audits.sequences import transition_audit as module
from tests.logs import WRAP, Batch, Log, data, marker
from tests.properties.audit_reference import Reference
from tests.properties.test_law import assert_observed, decode, replay_rows


def audited(*batches, cut=False):
    log = Log()
    for batch in batches:
        log.append(batch, keep_time=True)
    return replay_rows(decode(log), list(range(len(log.batches))) if cut else [], holes_are_normal=False)


@pytest.mark.parametrize("cut", [False, True], ids=["one chunk", "a batch a chunk"])
def test_of_many_observations_the_first_are_kept_and_the_others_counted(monkeypatch, cut):
    batches = [data(1, 0, sequence) for sequence in (0, 10, 20, 30, 40, 50)]
    every = audited(*batches, cut=cut).observations
    assert len(every) == 5
    for limit in (0, 1, 4, 5):
        monkeypatch.setattr(module, "MAX_OBSERVATIONS", limit)
        audit = audited(*batches, cut=cut)
        assert audit.observations == every[:limit]
        assert audit.dropped_observations == 5 - limit


@pytest.mark.parametrize("cut", [False, True], ids=["one chunk", "a batch a chunk"])
@pytest.mark.parametrize(
    ("times", "back"),
    [
        ([6, 7, 8, 9], False),
        ([4], True),
        ([5, 5, 5, 5], False),
        ([6, 7, 8, 7], True),
        ([6, 7, 8, 9, 8], False),  # five may be in flight, the restart the first of them
        ([-1, 6], False),  # without a timestamp
        ([0], True),
    ],
)
def test_times_that_go_back_behind_a_restart(times, back, cut):
    """max.in.flight.requests.per.connection is at most 5: so many may have been renumbered together."""
    restarted = [data(1, 0, 0, timestamp=5, payload=b"again")]
    followers = [data(1, 0, number, timestamp=time) for number, time in enumerate(times, start=1)]
    others = [data(2, 0, number, timestamp=1) for number in range(3)]
    audit = audited(data(1, 0, 0, timestamp=1), data(1, 0, 1, timestamp=2), *restarted, *followers, *others, cut=cut)
    assert [(each.kind.value, each.times_go_back) for each in audit.observations] == [("sequence/restart", back)]


def in_transaction(sequence, epoch=0):
    return data(1, epoch, sequence, transactional=True)


HISTORIES = {
    "marker outside of a transaction": [data(1, 0, 0), marker(1, 0), in_transaction(1)],
    "abort of the next epoch outside of a transaction": [data(1, 0, 0), marker(1, 1, commit=False), data(1, 1, 0)],
    "commit of the next epoch outside of a transaction": [data(1, 0, 0), marker(1, 1), in_transaction(0, 1)],
    "markers alone": [marker(1, 0), marker(1, 1, commit=False), marker(1, 2), in_transaction(0, 2)],
    "transactions": [in_transaction(0), marker(1, 0), in_transaction(1), marker(1, 0), in_transaction(2), marker(1, 0)],
    "late write": [in_transaction(0), marker(1, 0), in_transaction(1), in_transaction(2)],
    "zombie behind the abort of the next epoch": [in_transaction(0), marker(1, 1, commit=False), in_transaction(1)],
    "zombie behind the marker of a later epoch, last": [in_transaction(0, 1), marker(1, 1), in_transaction(3)],
    "zombie behind the marker of a later epoch": [
        in_transaction(0, 1),
        marker(1, 1),
        in_transaction(3),
        in_transaction(1, 1),
        marker(1, 1),
    ],
    "writes on behind the abort of the next epoch": [
        in_transaction(0),
        marker(1, 1, commit=False),
        in_transaction(0, 1),
        marker(1, 1),
    ],
    "few epochs left": [data(1, 32_000, sequence) for sequence in range(4)],
    "version 2, then a restart": [in_transaction(0), marker(1, 1), data(1, 1, 0), data(1, 1, 1), data(1, 2, 0)],
    "version 2, an abort and its own next epoch": [
        in_transaction(0),
        marker(1, 1),
        in_transaction(0, 1),
        marker(1, 2, commit=False),
        in_transaction(0, 2),
        in_transaction(1, 2),
    ],
    "version 2, an abort and another instance": [
        in_transaction(0),
        marker(1, 1),
        in_transaction(0, 1),
        marker(1, 2, commit=False),
        in_transaction(0, 3),
        in_transaction(1, 3),
    ],
    "version 2, an abort and another instance two epochs on": [
        in_transaction(0),
        marker(1, 1),
        in_transaction(0, 1),
        marker(1, 2, commit=False),
        in_transaction(0, 4),
    ],
    "over the highest sequence": [data(1, 0, sequence) for sequence in (WRAP - 2, WRAP - 1, 0, 1)],
    "another kind, another epoch, and a day later": [
        data(1, 0, 0),
        data(1, 0, 1),
        in_transaction(2),
        in_transaction(3),
        marker(1, 0),
        data(1, 0, 4),
        data(1, 1, 0),
        data(1, 1, 1),
        data(1, 1, 3),
    ],
    "markers of a former coordinator": [
        in_transaction(0),
        marker(1, 0, coordinator_epoch=5),
        marker(1, 0, coordinator_epoch=4),
        marker(1, 0, coordinator_epoch=5),
    ],
    "without a sequence": [data(1, 0, 0), Batch(1, 0, -1), data(1, 0, 1), data(1, 0, 5), Batch(1, 0, -1)],
    "a zombie that writes on and on": [
        in_transaction(0),
        marker(1, 1, commit=False),
        *(in_transaction(sequence) for sequence in range(1, 10)),
    ],
    "begins without a sequence": [Batch(1, 0, -1), Batch(1, 1, -1), data(1, 1, 0)],
}
"""Each in a log that holds nothing else: whole chunks without transactions, or with nothing but markers."""


@pytest.mark.parametrize("history", HISTORIES)
def test_a_short_log_is_audited_as_batch_by_batch_wherever_it_is_cut(history):
    log = Log()
    for batch in HISTORIES[history]:
        log.append(batch)
    places = list(range(len(log.batches)))
    runs = replay_rows(decode(log), [], holes_are_normal=False).runs
    for cuts in ([], places, *([place] for place in places)):
        audit = replay_rows(decode(log), cuts, holes_are_normal=False)
        assert audit.runs == runs
        assert_observed(audit, Reference().read(log.batches), holes_are_normal=False)


@pytest.mark.parametrize("rows", [1, 4, 1000])
def test_so_are_all_of_them_side_by_side_in_parts_of_any_size(rows, monkeypatch):
    monkeypatch.setattr(module, "_PART_ROWS", rows)
    log = Log()
    for steps in zip_longest(*HISTORIES.values()):
        for producer_id, batch in enumerate(steps):
            if batch is not None:
                log.append(replace(batch, producer_id=producer_id))
    for cuts in ([], list(range(0, len(log.batches), 7))):
        audit = replay_rows(decode(log), cuts, holes_are_normal=False)
        assert_observed(audit, Reference().read(log.batches), holes_are_normal=False)


@pytest.mark.parametrize("cut", [False, True], ids=["one chunk", "a batch a chunk"])
def test_where_sequences_mean_nothing_only_epochs_are_compared(cut):
    """Batches of the group coordinator begin at 0 each, and one of a lower epoch brings the others before the audit."""
    log = Log()
    for number, (epoch, sequence) in enumerate([(1, 0), (1, 0), (0, 0), (1, 0), (1, 7), (1, 3), (2, 4), (2, 0)]):
        log.append(data(1, epoch, sequence, payload=b"%d" % number))
    cuts = list(range(len(log.batches))) if cut else []
    audit = replay_rows(decode(log), cuts, holes_are_normal=False, sequences_count=False)
    assert [(each.kind.value, each.offset) for each in audit.observations] == [
        ("epoch/stale-batch", 2),
        ("epoch/client-bump", 6),
    ]
