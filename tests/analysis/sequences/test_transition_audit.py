"""What an audit of transitions keeps of many observations, and what it says of the batches behind a restart."""

import pytest

from kaudit.analysis.sequences import transition_audit as module
from tests.logs import Log, data
from tests.properties.test_law import decode, replay_rows


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
