"""Copies that the ids beside them say are no replicas of one partition in one cluster."""

import functools
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from kaudit.checks.check import REPLICAS_NOT_COMPARED, Evidence, check, none_because
from kaudit.checks.command_line import quote
from kaudit.checks.context import Context
from kaudit.checks.texts import counted, listed
from kaudit.model.copy_identities import HeldTwice, LogCopy, MixedClusters, RecreatedLog, SeveralTopicIds
from kaudit.model.evidence import BrokerEvidence
from kaudit.model.finding import Explanation, Finding
from kaudit.model.impact import Act, Caution, Impact
from kaudit.model.severity import Confidence, Severity

_MOST_NAMED = 5
_ABSENT = dict.fromkeys(
    ("file", "segment", "position", "offset", "producer_id", "producer_epoch"), "it is about whole copies of a log"
)
_identity_check = functools.partial(
    check,
    incident=none_because("what follows from mixed copies are comparisons of logs that are no replicas"),
    caused_by=none_because("brokers name it in the exception with which they stop, not in an event"),
    simulated=REPLICAS_NOT_COMPARED,
)
"""Declares a check of what the copies among the inputs are copies of."""


class _MixedEvidence(BrokerEvidence, frozen=True, kw_only=True, gc=False):
    log_dirs: Mapping[str, Sequence[str]]
    count: int
    partitions: Sequence[str]
    same_topic_ids: bool


class _TwiceEvidence(BrokerEvidence, frozen=True, kw_only=True, gc=False):
    broker_id: int | None
    directory_ids: Mapping[str, str | None]
    start_offsets: Mapping[str, int]
    end_offsets: Mapping[str, int]
    last_leader_epochs: Mapping[str, int]
    newest: str


class _RecreatedEvidence(BrokerEvidence, frozen=True, kw_only=True, gc=False):
    topic_id: str
    former_topic_id: str
    held_by: Sequence[str]


class _TopicIdsEvidence(BrokerEvidence, frozen=True, kw_only=True, gc=False):
    topic_ids: Mapping[str, Sequence[str]]


@_identity_check(
    "KA604",
    severity=Severity.WARNING,
    summary="log directories of several clusters that hold the same partitions",
    needs=(MixedClusters,),
    compared=True,
)
def mixed_clusters(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report the clusters once for all inputs."""
    for found in evidence.of(MixedClusters):
        clusters = [f"{cluster} ({listed(_few(dirs))})" for cluster, dirs in found.log_dirs.items()]
        more = len(found.partitions) - 1
        names = found.partitions[0] + (f" and {counted(more, 'more partition')}" if more else "")
        first = min(log_dirs[0] for log_dirs in found.log_dirs.values())
        yield mixed_clusters.finding(
            replace(context, topic=None, partition=None, replica=None, log_dir=first),
            f"{names} {'are' if more else 'is'} in log directories of {len(clusters)} clusters, {listed(clusters)}: these are no "
            "replicas of one another",
            anchor=",".join(found.log_dirs),
            evidence=_MixedEvidence(
                rule="all log directories of a cluster have its id in meta.properties (cluster.id)",
                broker="does not start with a log directory of another cluster (InconsistentClusterIdException)",
                log_dirs=found.log_dirs,
                count=len(found.partitions),
                partitions=_few(found.partitions),
                same_topic_ids=found.same_topic_ids,
            ),
            explanations=[
                Explanation(
                    "volumes of an earlier cluster were attached to a new one, or restored beside it",
                    speaks_for=("topics have the same ids in both",) if found.same_topic_ids else (),
                ),
                Explanation("the logs of several clusters were given on purpose, such as a mirror's", innocent=True),
            ],
            impact=Impact(cautions=[_mixing(found)]),
            following=[
                f"kaudit inspect {quote(f'{log_dirs[0]}/meta.properties')}" for log_dirs in found.log_dirs.values()
            ],
            absent=_ABSENT,
        )


@_identity_check(
    "KA605",
    severity=Severity.ERROR,
    confidence=Confidence.LIKELY,
    summary="a partition in two log directories of one broker",
    needs=(HeldTwice,),
    compared=True,
)
def duplicate_log_directories(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each partition, with the copy that followed the newest leader first."""
    for found in evidence.of(HeldTwice):
        newest, *others = found.copies
        copies = listed([f"{copy.name} ({copy.offsets})" for copy in found.copies])
        yield duplicate_log_directories.finding(
            replace(
                context, topic=newest.topic, partition=newest.partition, replica=newest.name, log_dir=newest.log_dir
            ),
            f"{newest.topic}-{newest.partition} is in {len(found.copies)} log directories of broker {newest.broker_id}: {copies}; "
            f"{_newer(newest, others)}",
            evidence=_TwiceEvidence(
                rule="a broker keeps a partition in one of its log directories; a copy that is being moved is called -future "
                "(KIP-113)",
                broker="does not start: it stops with 'Duplicate log directories for ... are found in both' (LogManager.loadLog)",
                broker_id=newest.broker_id,
                directory_ids={copy.name: copy.directory_id for copy in found.copies},
                start_offsets={copy.name: copy.start_offset for copy in found.copies},
                end_offsets={copy.name: copy.end_offset or copy.start_offset for copy in found.copies},
                last_leader_epochs={copy.name: copy.leader_epoch for copy in found.copies},
                newest=newest.name,
            ),
            explanations=[
                Explanation(
                    "a log directory failed while the broker moved the partition to another one, and came back later (KAFKA-16234)"
                ),
                Explanation("a directory was copied or restored by hand"),
                Explanation(
                    "the directories were copied at different times, and the partition was moved in between",
                    innocent=True,
                ),
            ],
            impact=_held_twice(newest, others),
            following=[
                f"kaudit inspect {quote(f'{copy.log_dir}/{copy.topic}-{copy.partition}')}" for copy in found.copies
            ],
            absent=_ABSENT,
        )


def _mixing(found: MixedClusters) -> Caution:
    """Return that brokers of one cluster must not be given directories of the other."""
    firsts = [log_dirs[0] for log_dirs in found.log_dirs.values()]
    short = [log_dir.rpartition("/")[2] for log_dir in firsts]
    names = short if len({*short}) == len(short) else firsts
    named = [f"{cluster} ({name})" for cluster, name in zip(found.log_dirs, names, strict=True)]
    return Caution(
        Act.ATTACH,
        f"volumes of clusters {listed(named)}",
        f"{found.partitions[0]} of one is no replica of the other's; nor change cluster.id",
    )


def _held_twice(newest: LogCopy, others: Sequence[LogCopy]) -> Impact:
    """Return that the broker does not start, and which copies must be saved before one is deleted: the newest, and those with more records."""
    longer = _longer(newest, others)
    copies = [f"{newest.name} ({'same end' if _ends_alike(newest, others) else 'newer'})"]
    copies += [f"{other.name}{' (longer)' if other.name in longer else ''}" for other in others]
    partition = f"{newest.topic}-{newest.partition}"
    return Impact(
        cannot_start=[f"broker {newest.broker_id} does not start: {partition} is in {listed(copies)}"],
        cautions=[
            Caution(
                Act.DELETE,
                f"{partition} in {listed([newest.name, *longer])}",
                f"{newest.name} has followed the newest leader"
                + (f", {listed(longer)} has more records" if longer else ""),
            )
        ],
    )


def _longer(newest: LogCopy, others: Sequence[LogCopy]) -> list[str]:
    return [other.name for other in others if (other.end_offset or 0) > (newest.end_offset or 0)]


def _ends_alike(newest: LogCopy, others: Sequence[LogCopy]) -> bool:
    return any(other.leader_epoch == newest.leader_epoch and other.end_offset == newest.end_offset for other in others)


def _newer(newest: LogCopy, others: Sequence[LogCopy]) -> str:
    """Say which copy to keep; more offsets prove nothing, as records of an old leader may have been truncated elsewhere."""
    if _ends_alike(newest, others):
        return "both end alike"
    by = (
        "a newer leader"
        if all(other.leader_epoch < newest.leader_epoch for other in others)
        else "the same leader for longer"
    )
    longer = _longer(newest, others)
    more = f", though {listed(longer)} has more records: keep both until other replicas are compared" if longer else ""
    return f"{newest.name} followed {by}{more}"


@_identity_check(
    "KA606",
    severity=Severity.WARNING,
    summary="copies that give a topic several ids: it was deleted and created again",
    needs=(SeveralTopicIds,),
    compared=True,
)
def several_topic_ids(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each topic once."""
    counted_elsewhere = {found.topic for found in evidence.of(RecreatedLog)}  # by KA613, partition by partition
    for found in evidence.of(SeveralTopicIds):
        ids = {topic_id: [_placed(copy) for copy in copies] for topic_id, copies in found.copies.items()}
        fewest = min(found.copies.values(), key=len)[0]
        yield several_topic_ids.finding(
            replace(
                context, topic=found.topic, partition=fewest.partition, replica=fewest.name, log_dir=fewest.log_dir
            ),
            f"{found.topic} has {len(ids)} topic ids: "
            + "; ".join(f"{topic_id} of {listed(_few(places))}" for topic_id, places in ids.items()),
            anchor=",".join(sorted(ids)),
            evidence=_TopicIdsEvidence(
                rule="a topic has one id from its creation to its deletion (KIP-516); partition.metadata of each copy holds it",
                broker="refuses to load or to follow a log of another topic id (InconsistentTopicIdException)",
                topic_ids={topic_id: _few(places) for topic_id, places in ids.items()},
            ),
            explanations=[
                Explanation("the topic was deleted and created again, and some copies are of the topic before"),
                Explanation("log directories were restored from before that, or belong to another cluster"),
            ],
            impact=Impact()
            if found.topic in counted_elsewhere
            else Impact(records_lost_at_least=0, records_lost_at_most=_lost_at_most(found)),
            absent=_ABSENT,
        )


@_identity_check(
    "KA613",
    severity=Severity.WARNING,
    summary="a topic was deleted and created again, and copies have records of the former topic",
    needs=(RecreatedLog,),
)
def recreated_topic(context: Context, evidence: Evidence) -> Iterator[Finding]:
    """Report each partition of the topic once."""
    for found in evidence.of(RecreatedLog):
        count = found.end_offset - found.first_offset
        most = max(found.copies, key=lambda copy: (copy.end_offset or 0) - copy.start_offset)
        yield recreated_topic.finding(
            replace(context, topic=found.topic, partition=found.partition, replica=most.name, log_dir=most.log_dir),
            f"{found.topic}-{found.partition} was deleted and created again: {counted(count, 'record')} of the topic before, at offsets "
            f"{found.first_offset}..{found.end_offset - 1}, are not in it",
            offset=found.first_offset,
            last_offset=found.end_offset - 1,
            anchor=found.former_id,
            evidence=_RecreatedEvidence(
                rule="a topic has one id from its creation to its deletion (KIP-516); partition.metadata of each copy holds it",
                broker="deletes a log of the former topic, or sets it aside as -delete or -stray when it starts",
                topic_id=found.topic_id,
                former_topic_id=found.former_id,
                held_by=_few([_placed(copy) for copy in found.copies]),
            ),
            explanations=[
                Explanation("somebody, or a tool, deleted the topic and created it again"),
                Explanation("the cluster's metadata was lost and made anew, and the topic was created again by a client"),
            ],
            impact=Impact(records_lost_at_least=0, records_lost_at_most=count),
            following=[f"copy the directory before the broker removes it: {quote(most.directory)}"],
            absent={name: why for name, why in _ABSENT.items() if name != "offset"},
        )  # fmt: skip


def _lost_at_most(found: SeveralTopicIds) -> int:
    """Return how many records are of topics that are no more, if the topic that is there now holds the fewest."""
    held: list[int] = []
    for copies in found.copies.values():
        sizes: dict[int, int] = {}
        for copy in copies:
            size = (copy.end_offset or copy.start_offset) - copy.start_offset
            sizes[copy.partition] = max(size, sizes.get(copy.partition, 0))
        held.append(sum(sizes.values()))
    return sum(held) - min(held)


def _placed(copy: LogCopy) -> str:
    return f"{copy.topic}-{copy.partition} in {copy.name} ({copy.offsets})"


def _few(names: Sequence[str]) -> list[str]:
    more = len(names) - _MOST_NAMED
    return [*names[:_MOST_NAMED], *([f"{more} more"] if more > 0 else [])]
