"""Where a run is written, and what its truth says of records that never came."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from kaudit.broker.errors import KafkaError
from kaudit.simulate.output.log_directory import OccupiedError, write_run
from kaudit.simulate.output.record_outcomes import Acknowledgement, _why_never
from kaudit.simulate.output.truth import Truth
from kaudit.simulate.simulation import _client_partition
from tests.simulate.test_faults import played


def test_a_run_is_written_into_an_empty_directory_and_into_no_other(tmp_path):
    simulation = played("")
    truth = Truth(simulation)
    (tmp_path / "file").write_text("")
    for occupied in (tmp_path, tmp_path / "file"):
        with pytest.raises(OccupiedError, match="exists and is not an empty directory"):
            write_run(occupied, simulation, truth)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    (tmp_path / "empty").mkdir()
    for name in ("empty", "new/deeper"):
        write_run(tmp_path / name, simulation, truth)
        assert {path.name for path in (tmp_path / name).iterdir()} >= {"broker-1", "attempts.jsonl", "truth.json"}


@pytest.mark.parametrize(("acknowledgement", "acks", "why"), [
    (Acknowledgement.ACKNOWLEDGED, 0, "never arrived; with acks=0 nobody waits for an answer"),
    (Acknowledgement.ACKNOWLEDGED, 1,
     "answered as a duplicate of another producer's batch under the same producer id: never written"),
    (Acknowledgement.FAILED, 0, "never written: NOT_LEADER_OR_FOLLOWER, sent 3 times"),
    (Acknowledgement.FAILED, -1, "never written: NOT_LEADER_OR_FOLLOWER, sent 3 times"),
    (None, 0, "never written: the process died, or the run ended, before it was sent or arrived"),
])  # fmt: skip
def test_why_a_batch_was_never_written(acknowledgement, acks, why):
    batch = SimpleNamespace(error=KafkaError.NOT_LEADER_OR_FOLLOWER, attempts=2)
    outcome: Any = SimpleNamespace(batch=batch, acknowledgement=acknowledgement)
    application: Any = SimpleNamespace(spec=SimpleNamespace(config=SimpleNamespace(acks=acks)))
    assert _why_never(outcome, application) == why


@pytest.mark.parametrize(("idempotent", "sequences", "expected"), [
    (False, None, (-1, -1)),
    (True, None, (0, -1)),  # nothing was sent there yet
    (True, (7, 4), (7, 4)),
])  # fmt: skip
def test_the_sequences_of_a_partition_as_a_page_shows_them(idempotent, sequences, expected):
    """The next one, and the last one that was acknowledged."""
    key = ("orders", 0)
    own = (
        {} if sequences is None else {key: SimpleNamespace(next_sequence=sequences[0], last_acknowledged=sequences[1])}
    )
    manager = SimpleNamespace(partitions=own, is_unresolved=lambda _: False) if idempotent else None
    accumulator = SimpleNamespace(queues={key: []}, muted=set())
    producer = SimpleNamespace(accumulator=accumulator, manager=manager, in_flight=[])
    state = _client_partition(cast("Any", producer), key)
    assert (state.next_sequence, state.last_acknowledged) == expected
