"""The law once more, on logs of batches that mostly go on and now and then are as odd as bytes allow.

Epochs near their end, negative sequences, producers silent for days, clocks that go back, markers of unknown type,
topics whose sequences mean nothing: what `histories` does not make.
"""

from dataclasses import replace

from hypothesis import example, given, settings
from hypothesis import strategies as st

from kaudit.model.batch_fields import NO_SEQUENCE, UNREPORTED_CONTROL
from tests.logs import TRANSACTIONAL, WRAP, Batch, Log, marker
from tests.properties.audit_reference import Reference
from tests.properties.test_law import assert_observed, decode, replay_rows

DAY_MS = 24 * 3_600_000
KINDS = ("data", "data", "data", "commit", "abort", "unreported")
STEPS = ("same", "same", "same", "next", "next", "back", "odd")
SEQUENCES = ("next", "next", "next", "zero", "zero", "odd")
event = st.tuples(
    st.integers(0, 2),
    st.sampled_from(KINDS),
    st.sampled_from(STEPS),
    st.sampled_from(SEQUENCES),
    st.integers(1, 3),
    st.sampled_from([0, 0, 0, 0, 1]),  # another flag than the batch before
    st.sampled_from([0, 0, 0, 0, DAY_MS - 2, DAY_MS - 1, DAY_MS, -DAY_MS]),
    st.sampled_from([0, 0, 0, 1, 3]),  # offsets left out
    st.sampled_from([0, 0, 0, 1, -1]),  # steps of the coordinator's epoch
)
events = st.lists(event, min_size=1, max_size=50)
first_epochs = st.lists(st.sampled_from([0, 0, 5, 31_999, 32_000, 32_766, -1]), min_size=3, max_size=3)
ODD_EPOCHS, ODD_SEQUENCES = (-32_768, 32_767, 31_999, 32_000), (-5, -WRAP, WRAP - 1, 3)


def odd_log(happenings, epochs, *, sequences_count):
    """Play the events: of each producer its epoch, next sequence, whether it writes transactions, its coordinator.

    Where sequences do not count batches have none, as the coordinator's own.
    """
    log = Log()
    states = [[epoch, 0, False, 0] for epoch in epochs]
    for number, (who, kind, step, sequence, count, toggle, pause, hole, coordinator) in enumerate(happenings):
        epoch, following, transactional, coordinator_epoch = states[who]
        choice = ODD_EPOCHS[number % len(ODD_EPOCHS)]
        epoch = {"same": epoch, "next": min(epoch + 1, 32_767), "back": max(epoch - 1, -1), "odd": choice}[step]
        transactional ^= bool(toggle)
        coordinator_epoch += coordinator
        base = {"next": following, "zero": 0, "odd": ODD_SEQUENCES[number % len(ODD_SEQUENCES)]}[sequence]
        base = base if sequences_count else NO_SEQUENCE
        log.clock += pause
        log.skip(hole)
        if kind == "data":
            flags = TRANSACTIONAL if transactional else 0
            log.append(Batch(100 + who, epoch, base, count, attributes=flags, payload=str(number).encode()))
            following = (base + count) % WRAP if base >= 0 else 0
        else:
            commit, control = kind == "commit", marker(100 + who, epoch, coordinator_epoch=coordinator_epoch)
            log.append(replace(control, control=(commit, coordinator_epoch), timestamp=log.clock))
            following = 0 if step != "same" else following
        states[who] = [epoch, following, transactional, coordinator_epoch]
    return log


GOES_ON = (0, "data", "same", "next", 1, 0, 0, 0, 0)
TOGGLES = (0, "data", "same", "next", 1, 1, 0, 0, 0)
RAISING_COMMIT = (0, "commit", "next", "next", 1, 0, 0, 0, 0)
RAISED = (0, "data", "next", "zero", 1, 0, 0, 0, 0)
OTHER_GOES_ON = (1, "data", "same", "next", 1, 0, 0, 0, 0)
OTHER_GOES_ON_AFTER_A_DAY = (1, "data", "same", "next", 1, 0, DAY_MS, 0, 0)
GOES_ON_AFTER_A_DAY = (0, "data", "same", "next", 1, 0, DAY_MS - 1, 0, 0)  # a day to the millisecond


@settings(max_examples=500, deadline=None)
# reported once of a producer, with a chunk between the two silences that needs no audit batch by batch
@example([GOES_ON, GOES_ON_AFTER_A_DAY, GOES_ON, GOES_ON, GOES_ON_AFTER_A_DAY], [0, 0, 0], [2, 3, 4], False, True)
# an epoch near its end, once as well
@example([GOES_ON] * 4, [32_000, 0, 0], [1, 2, 3], False, True)
# outside of a transaction that a chunk before began
@example([TOGGLES, TOGGLES, GOES_ON], [0, 0, 0], [1], False, True)
# the same where another producer is in no transaction
@example([TOGGLES, OTHER_GOES_ON, TOGGLES, OTHER_GOES_ON], [0, 0, 0], [2], False, True)
# silent for a day, which another producer was not
@example([GOES_ON, OTHER_GOES_ON_AFTER_A_DAY, GOES_ON, OTHER_GOES_ON], [0, 0, 0], [2], False, True)
# an epoch that data raised where markers do (KIP-890)
@example([GOES_ON, RAISING_COMMIT, GOES_ON, RAISED, GOES_ON], [0, 0, 0], [4], False, True)
@given(events, first_epochs, st.lists(st.integers(0, 50), max_size=4), st.booleans(), st.booleans())
def test_odd_logs_are_replayed_as_batch_by_batch(happenings, epochs, cuts, normal, sequences_count):
    log = odd_log(happenings, epochs, sequences_count=sequences_count)
    cuts = [cut for cut in cuts if cut <= len(log.batches)]
    batches, written = decode(log), [*log.batches]
    for index, (_, kind, *_) in enumerate(happenings):
        if kind == "unreported":
            batches["control_type"][index] = UNREPORTED_CONTROL
            written[index] = replace(
                written[index], control=(UNREPORTED_CONTROL, int(batches["coordinator_epoch"][index]))
            )
    replay = replay_rows(batches, cuts, holes_are_normal=normal, sequences_count=sequences_count)
    expected = Reference(sequences_count=sequences_count).read(written)
    assert_observed(replay, expected, holes_are_normal=normal)
