"""Clients that advance their sequence by another rule than the number of records."""

from collections.abc import Iterable

from kaudit.model.observation import Observation, ObservationKind
from kaudit.model.producer_patterns import StepMismatch, sequence_step

_MIN_STEPS = 3
"""Gaps or overlaps of one pattern that show a client's bug."""
_STEPS = frozenset({ObservationKind.GAP, ObservationKind.OVERLAP, ObservationKind.INSIDE})


def step_mismatches(observations: Iterable[Observation]) -> list[StepMismatch]:
    """Find chains of neighbouring gaps and overlaps of a producer that follow one pattern; `observations` in offset order."""
    chains: dict[tuple[int, int], list[_Chain]] = {}
    for observation in observations:
        if observation.explained or observation.kind not in _STEPS:
            continue
        if observation.remembered is None or observation.remembered.last is None:
            continue
        known = chains.setdefault((observation.producer_id, observation.producer_epoch), [])
        if not known or not known[-1].extend(observation):
            known.append(_Chain(observation))
    return [
        StepMismatch(chain.observations)
        for known in chains.values()
        for chain in known
        if len(chain.observations) >= _MIN_STEPS
    ]


class _Chain:
    """Neighbouring steps: all move the base sequence equally far, or equally far beyond the batch before."""

    def __init__(self, observation: Observation) -> None:
        self.observations = [observation]
        self._moved, records = sequence_step(observation)
        self._beyond = self._moved - records
        self._equally_far = self._equally_beyond = True

    def extend(self, observation: Observation) -> bool:
        """Add the step if it continues the pattern, and return whether it does."""
        assert observation.remembered is not None
        assert observation.remembered.last is not None
        if observation.remembered.last.base_offset != self.observations[-1].offset:
            return False
        moved, records = sequence_step(observation)
        equally_far = self._equally_far and moved == self._moved
        equally_beyond = self._equally_beyond and moved - records == self._beyond
        if not equally_far and not equally_beyond:
            return False
        self.observations.append(observation)
        self._equally_far, self._equally_beyond = equally_far, equally_beyond
        return True
