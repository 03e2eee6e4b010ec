"""Which check reports a raised epoch: KA704 if the old epoch's tail stands again, KA206 at a change of leader, else KA203."""

from collections.abc import Iterable, Sequence

from kaudit.checks.check import Evidence
from kaudit.model.leader_epochs import LeaderChange
from kaudit.model.observation import Observation
from kaudit.model.producer_patterns import RepeatedEpoch


def not_repeated(evidence: Evidence, bumps: Iterable[Observation]) -> Sequence[Observation]:
    """Return the bumps after which the client did not write the old epoch's tail again.

    Where it did, it went on from batches that are still in the log, so nothing was cut off.
    """
    repeated = {(found.producer_id, found.producer_epoch) for found in evidence.of(RepeatedEpoch)}
    return [bump for bump in bumps if (bump.producer_id, bump.producer_epoch) not in repeated]


def without_finding(evidence: Evidence, bumps: Iterable[Observation]) -> Sequence[Observation]:
    """Return the bumps that neither KA704 nor KA206 reports."""
    reported = {(bump.producer_id, bump.offset) for change in evidence.of(LeaderChange) for bump in change.bumps}
    return [bump for bump in not_repeated(evidence, bumps) if (bump.producer_id, bump.offset) not in reported]
