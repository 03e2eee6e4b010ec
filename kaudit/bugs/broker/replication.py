"""Bugs that make the logs of replicas differ for good."""

from collections.abc import Mapping

from kaudit.bugs.bug import Affected, Bug, Case, Program, Trait, codes, jira
from kaudit.model.severity import Confidence

_NEXT_EPOCHS = 3
"""Most epochs between leaders that quickly followed one another; a flipped bit makes most epochs differ by more."""


def _begins(case: Case) -> Mapping[str, Mapping[int, int]]:
    """Return the start offset of each leader epoch on each replica that differs."""
    histories = case.evidence.leader_epochs
    return {
        name: {
            row.epoch: row.start_offset
            for row in histories.get(name, ())
            if row.epoch is not None and row.start_offset is not None
        }
        for name in case.evidence.copies or ()
    }


def _goes_on(case: Case) -> bool:
    """Whether the copies share a leader epoch that begins after the offset at which they differ.

    In one log: whether batches of an older leader epoch follow a batch of one of the next epochs.
    """
    if case.finding.code == "KA009":
        return 0 < (case.evidence.leader_epoch or 0) - (case.evidence.expected_leader_epoch or 0) <= _NEXT_EPOCHS
    begins, offset = list(_begins(case).values()), case.finding.offset
    if len(begins) < 2 or offset is None:
        return False
    shared = set.intersection(*(set(rows) for rows in begins))
    return any(min(rows[epoch] for rows in begins) > offset for epoch in shared)


def _not_cut(case: Case) -> bool:
    if case.finding.code == "KA009":
        return True
    offset, ends, copies = case.finding.offset, case.evidence.end_offsets, case.evidence.copies
    if ends is None or copies is None or offset is None:
        return False
    return all(name in ends and ends[name] > offset for name in copies)


GOES_ON = Trait("another leader continued the log after records that it did not have", _goes_on)
NOT_CUT = Trait("it was not cut at these records", _not_cut)


KAFKA_6361 = Bug(
    id="KAFKA-6361",
    title="Fast leader fail over can lead to log divergence between leader and follower",
    summary="a leader that does not know the follower's last leader epoch answers with its own end, and the follower cuts too little",
    program=Program.BROKER,
    affected=(Affected("0.11.0.0", "1.1.1"),),
    fixed_in=("2.0.0",),
    fix="KIP-279",
    codes=codes("KA009", "KA601"),
    traits=(GOES_ON, NOT_CUT),
    confidence=Confidence.LIKELY,
    sources=(*jira("KAFKA-6361"), "https://cwiki.apache.org/confluence/display/KAFKA/KIP-279"),
    alike=("KAFKA-7415",),
)


KAFKA_7415 = Bug(
    id="KAFKA-7415",
    title="OffsetsForLeaderEpoch may incorrectly respond with undefined epoch causing truncation to HW",
    summary="a new leader does not note its epoch before the first append, and followers cut at their high watermark instead",
    program=Program.BROKER,
    affected=(Affected("0.11.0.0", "2.0.0"),),
    fixed_in=("2.0.1", "2.1.0"),
    codes=codes("KA009", "KA601"),
    traits=(GOES_ON, NOT_CUT),
    confidence=Confidence.LIKELY,
    sources=(*jira("KAFKA-7415"), "https://github.com/apache/kafka/pull/5678"),
    alike=("KAFKA-6361",),
)
