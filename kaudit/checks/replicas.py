"""KA601-KA603: replicas of one partition that do not hold the same."""

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from kaudit.checks.context import Context, quote
from kaudit.model.finding import Confidence, Explanation, Finding, Severity
from kaudit.model.replicas import Difference, PartitionComparison, Relation, ReplicaBatch

_RULE = (
    "replicas copy the leader's batches byte for byte: at one offset all of them hold the same batch with the same "
    "leader epoch, as far as their logs go"
)


class ReplicaFacts(Struct, frozen=True):
    """One partition's comparison and what lies around it.

    `contexts` are the holders' by name; `high_watermarks` what each one's replication-offset-checkpoint says, where it
    says anything; `last_common` each one's last batch below the first difference; `torn` the replicas whose logs end in
    damage; `topic_ids` from partition.metadata.
    """

    comparison: PartitionComparison
    contexts: Mapping[str, Context]
    high_watermarks: Mapping[str, int]
    last_common: Mapping[str, ReplicaBatch]
    torn: Sequence[str] = ()
    topic_ids: Mapping[str, str] = field(default_factory=dict)

    def look(self, name: str, offset: int) -> str:
        """The command that shows what a replica holds around an offset."""
        return f"kaudit inspect --records --around {offset} {quote(self.contexts[name].directory)}"

    @property
    def high_watermark(self) -> tuple[str, int] | None:
        """The highest of the checkpoints' high watermarks, and whose it is."""
        known = [(offset, name) for name, offset in self.high_watermarks.items()]
        return (max(known)[1], max(known)[0]) if known else None


def report_replicas(facts: ReplicaFacts) -> list[Finding]:
    """Report what one partition's replicas do not share."""
    if facts.comparison.relation is Relation.MISSING:
        return []  # not every broker has every partition
    return [*_diverged(facts), *_passed_over(facts), *_behind(facts), *_only_copies(facts)]


def _diverged(facts: ReplicaFacts) -> list[Finding]:
    comparison = facts.comparison
    difference = comparison.first_difference
    if difference is None:
        return []
    reference = comparison.reference or ""
    parted = [name for name, relation in comparison.relations.items() if relation is Relation.DIVERGED]
    name = next((name for name in parted if name in difference.batches), next(iter(difference.batches)))
    batch = difference.batches[name]
    cut = comparison.truncation_offsets.get(name)
    end = comparison.end_offsets[name]
    only_epoch = _differ_in_epoch_alone(difference)
    told = "the same records under another leader epoch than" if only_epoch else "other records than"
    like, others = _sides(name, difference)
    message = f"{_listed(like)} {'holds' if len(like) == 1 else 'hold'} {told} {_listed(others or [reference])}"
    message += f" from offset {difference.offset} on"
    previous = facts.last_common.get(name)
    evidence: dict[str, object] = {
        "rule": _RULE,
        "broker": _fate(name, reference, cut, difference.offset, end),
        "previous": None if previous is None else previous.to_dict(),
        "copies": {other: held.to_dict() for other, held in difference.batches.items()},
        **_histories(facts),
    }
    context = facts.contexts[name]
    return [
        context.finding(
            "KA601",
            message,
            segment=batch.segment,
            position=batch.position,
            offset=difference.offset,
            last_offset=batch.last_offset,
            anchor=str(difference.offset),
            evidence=evidence,
            explanations=_causes(facts, difference, cut, only_epoch=only_epoch),
            following=tuple(facts.look(key, difference.offset) for key in dict.fromkeys([name, *others[:1]])),
            absent={
                "producer_id": "the replicas may hold different producers' batches here",
                "producer_epoch": "the replicas may hold different producers' batches here",
            },
        )
    ]


def _histories(facts: ReplicaFacts) -> dict[str, object]:
    comparison = facts.comparison
    return {
        "reference": comparison.reference,
        "end_offsets": dict(comparison.end_offsets),
        "leader_epochs": {key: [row.to_dict() for row in rows[-5:]] for key, rows in comparison.leader_epochs.items()},
        "truncation_offsets": dict(comparison.truncation_offsets),
        "only_on": {key: offsets.to_dict() for key, offsets in comparison.only_on.items()},
        "high_watermarks": dict(facts.high_watermarks),
    }


def _passed_over(facts: ReplicaFacts) -> list[Finding]:
    """Report ends of logs which a newer leader began without, and in whose place it has written nothing yet."""
    comparison = facts.comparison
    names = _beyond_reference(comparison)
    if not names:
        return []
    reference = comparison.reference or ""
    name = max(names, key=lambda key: comparison.end_offsets[key])
    first, end = comparison.end_offsets[reference], comparison.end_offsets[name]
    newest = comparison.leader_epochs[reference][-1]
    message = f"{_listed(names)} {'holds' if len(names) == 1 else 'hold'} {_span(first, end - 1)}, "
    message += f"which {reference} began leader epoch {newest.epoch} without"
    causes = _failed_leader(f"leader epoch {newest.epoch} of {reference} begins at offset {newest.start_offset}")
    return [
        facts.contexts[name].finding(
            "KA601",
            message,
            offset=first,
            last_offset=end - 1,
            anchor=str(first),
            evidence={
                "rule": _RULE,
                "broker": _fate(name, reference, comparison.truncation_offsets.get(name), first, end),
                **_histories(facts),
            },
            explanations=[*_made_again(facts), causes],
            following=(facts.look(name, first),),
            absent=_NO_FILE,
        )
    ]


def _beyond_reference(comparison: PartitionComparison) -> list[str]:
    """Who agrees with the reference to its end and goes on: the reference is one for its newer leader epoch."""
    end = comparison.end_offsets[comparison.reference or ""]
    found = []
    for name, relation in comparison.relations.items():
        cut = comparison.truncation_offsets[name]
        agrees = cut is None or cut >= end
        if relation is Relation.DIVERGED and comparison.end_offsets[name] > end and agrees:
            found.append(name)
    return found


def _sides(name: str, difference: Difference) -> tuple[list[str], list[str]]:
    """Who holds the same batch at the difference as `name`, and who another."""
    mine = difference.batches[name]
    like = [
        other
        for other, batch in difference.batches.items()
        if (batch.offset, batch.last_offset, batch.crc, batch.leader_epoch)
        == (mine.offset, mine.last_offset, mine.crc, mine.leader_epoch)
    ]
    return like, [other for other in difference.batches if other not in like]


def _differ_in_epoch_alone(difference: Difference) -> bool:
    held = list(difference.batches.values())
    return len(held) > 1 and len({(one.offset, one.last_offset, one.crc, one.size) for one in held}) == 1


def _fate(name: str, reference: str, cut: int | None, offset: int, end: int) -> str:
    if cut is None:
        return f"has no leader epochs to go by: {name} truncates to its high watermark when it follows {reference}"
    if cut <= offset:
        lost = f", which drops its offsets {cut}..{end - 1}" if cut < end else ""
        return f"truncates {name} to offset {cut} when it follows {reference} (OffsetsForLeaderEpoch, KIP-101){lost}"
    return (
        f"does not notice: by its leader epochs {name} agrees with {reference} up to offset {cut}, so what differs from "
        f"{offset} on stays (OffsetsForLeaderEpoch, KIP-101)"
    )


def _causes(facts: ReplicaFacts, difference: Difference, cut: int | None, *, only_epoch: bool) -> list[Explanation]:
    epochs = {batch.leader_epoch for batch in difference.batches.values()}
    noticed = cut is not None and cut <= difference.offset
    causes = _made_again(facts)
    if len(epochs) > 1:
        causes.append(_failed_leader("the leader epochs differ there" if noticed else None))
    else:
        causes.append(
            Explanation(
                "two leaders wrote under one leader epoch, or truncation went by the high watermark (before KIP-101 and "
                "KIP-279: Kafka 2.0)",
                speaks_for=("both batches carry the same leader epoch",),
            )
        )
        causes.append(Explanation("one copy was edited, restored, or put together from others"))
    if only_epoch:
        causes.append(Explanation("a bit of the leader epoch flipped: the CRC does not cover it (KA009)"))
    return causes


def _made_again(facts: ReplicaFacts) -> list[Explanation]:
    if len(set(facts.topic_ids.values())) < 2:
        return []
    ids = ", ".join(f"{name} {topic_id}" for name, topic_id in facts.topic_ids.items())
    return [Explanation("the topic was deleted and made again: these are two topics", speaks_for=(ids,))]


def _failed_leader(told_by: str | None) -> Explanation:
    return Explanation(
        "a leader failed with records that no follower had, and another replica went on without them (acks=0 or 1, "
        "or an unclean election); it has not been truncated yet",
        speaks_for=() if told_by is None else (told_by,),
    )


def _behind(facts: ReplicaFacts) -> list[Finding]:
    comparison = facts.comparison
    reference = comparison.reference or ""
    behind = [
        name
        for name, relation in comparison.relations.items()
        if relation is Relation.BEHIND and name not in facts.torn
    ]
    if not behind:
        return []
    end = comparison.end_offsets[reference]
    name = min(behind, key=lambda key: comparison.end_offsets[key])
    start = comparison.end_offsets[name]
    lags = {key: end - comparison.end_offsets[key] for key in behind}
    lag = _offsets(lags[name])
    message = f"{name} ends at offset {start}, {lag} before {reference}"
    if len(behind) > 1:
        message = f"{_listed(behind)} are behind {reference} by up to {lag}"
    return [
        facts.contexts[name].finding(
            "KA602",
            message,
            offset=start,
            last_offset=end - 1,
            evidence={
                "rule": "a follower holds a prefix of the leader's log: it is behind by what it has not fetched yet",
                "broker": f"lets it fetch from offset {start} on",
                "class": "behind",
                "count": len(behind),
                "reference": reference,
                "lags": lags,
                "end_offsets": dict(comparison.end_offsets),
            },
            explanations=(
                Explanation("the replica's broker was stopped, slow, or starting when it was copied", innocent=True),
                Explanation("the copies were made one after the other while the brokers ran", innocent=True),
            ),
            absent=_NO_FILE,
        )
    ]


def _only_copies(facts: ReplicaFacts) -> list[Finding]:
    comparison = facts.comparison
    found: list[Finding] = []
    passed_over = _beyond_reference(comparison)
    for name, offsets in comparison.only_on.items():
        # where it begins because the others differ, or a newer leader began there, KA601 has told of it
        if name in passed_over:
            continue
        if offsets.first not in [end for other, end in comparison.end_offsets.items() if other != name]:
            continue
        if _begins_at_difference(name, offsets.first, comparison):
            continue
        mark = facts.high_watermark
        below = mark is not None and mark[1] > offsets.first
        acknowledged = None if mark is None or not below else min(mark[1] - 1, offsets.last)
        message = f"{_span(offsets.first, offsets.last)} are on {name} alone"
        if below and mark is not None:
            message += f", below the high watermark {mark[1]}"
        others = [other for other in comparison.end_offsets if other != name]
        found.append(
            facts.contexts[name].finding(
                "KA603",
                message,
                severity=Severity.ERROR if below else Severity.WARNING,
                confidence=Confidence.CERTAIN if below else Confidence.POSSIBLE,
                offset=offsets.first,
                last_offset=offsets.last,
                evidence={
                    "rule": "records survive the loss of a broker only once another replica has them; below the high "
                    "watermark every in-sync replica has them",
                    "broker": f"loses them if {_listed(others)} is elected without {name}"
                    if len(others) == 1
                    else f"loses them if one of {_listed(others)} is elected without {name}",
                    "only_on": name,
                    "end_offsets": dict(comparison.end_offsets),
                    "high_watermark": None if mark is None else mark[1],
                    "high_watermark_of": None if mark is None else mark[0],
                    "last_acknowledged_offset": acknowledged,
                    "ends_in_damage": list(facts.torn),
                },
                explanations=_only_copy_causes(name, below=below, torn=facts.torn),
                following=(facts.look(name, offsets.first),),
                absent=_NO_FILE,
            )
        )
    return found


def _only_copy_causes(name: str, *, below: bool, torn: Sequence[str]) -> list[Explanation]:
    causes = [
        Explanation(
            f"{name} was the only replica in sync: the followers were stopped or too slow",
            speaks_for=("the high watermark passed these offsets",) if below else (),
        ),
        Explanation("the others lost them: truncated after an unclean election, deleted, or damaged"),
    ]
    if torn:
        causes.append(Explanation("another copy ends in damage", speaks_for=(f"{_listed(torn)} does",)))
    causes.append(
        Explanation("the copies were made while the brokers ran, and the followers were about to fetch", innocent=True)
    )
    return causes


def _begins_at_difference(name: str, offset: int, comparison: PartitionComparison) -> bool:
    difference = comparison.first_difference
    return difference is not None and difference.offset == offset and name in difference.batches


_NO_FILE = {
    "file": "the replicas as a whole are compared",
    "segment": "the replicas as a whole are compared",
    "position": "the replicas as a whole are compared",
    "producer_id": "the records may be any producer's",
    "producer_epoch": "the records may be any producer's",
}


def _span(first: int, last: int) -> str:
    return f"offsets {first}..{last} ({_offsets(last - first + 1)})"


def _offsets(number: int) -> str:
    return f"{number:,} offset" + ("" if number == 1 else "s")


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
