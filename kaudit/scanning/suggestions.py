"""Commands that show more of a scan's inputs than a scan does."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from kaudit.audits.replicas.broker_copies import BrokerCopies
from kaudit.checks.command_line import quote
from kaudit.model.leader_epochs import HeldRecords
from kaudit.model.result import Suggestion
from kaudit.scanning.options import ScanOptions
from kaudit.source.layout import PartitionDirectory


def suggestions(
    options: ScanOptions,
    directories: Sequence[PartitionDirectory],
    copies: Sequence[BrokerCopies],
    held: Iterable[tuple[str, HeldRecords]],
) -> Iterator[Suggestion]:
    """Suggest to compare the copies of partitions that a scan audits each by itself, cluster by cluster.

    `held` are records of partitions (by name) on one copy that another's newer leader began without.
    """
    known = list(held)
    for whole in _by_cluster(entry for entry in directories if entry.whole_directory and entry.segments):
        log_dirs, paths = {entry.log_dir for entry in whole}, {entry.directory for entry in whole}
        own = [entry for entry in copies if log_dirs.issuperset(entry.log_dirs)]
        yield from _suggestion(options, whole, own, [entry for entry in known if entry[1].directory in paths])


def _by_cluster(directories: Iterable[PartitionDirectory]) -> list[list[PartitionDirectory]]:
    """Return the directories of each cluster, in the order given; all of them together unless several clusters are known."""
    found: dict[str | None, list[PartitionDirectory]] = {}
    for entry in directories:
        found.setdefault(entry.identity.cluster_id if entry.identity else None, []).append(entry)
    if len(found.keys() - {None}) > 1:
        return list(found.values())
    return [[entry for entries in found.values() for entry in entries]]


def _suggestion(
    options: ScanOptions,
    whole: Sequence[PartitionDirectory],
    copies: Sequence[BrokerCopies],
    held: Iterable[tuple[str, HeldRecords]],
) -> Iterator[Suggestion]:
    counts = Counter((entry.topic, entry.partition) for entry in whole)
    several = [entry for entry in whole if counts[entry.topic, entry.partition] > 1]
    if not several:
        return
    partitions = len({(entry.topic, entry.partition) for entry in several})
    what = f"{max(counts.values())} replicas of {partitions:,} partition{'' if partitions == 1 else 's'} were given"
    if copies:
        counted = [f"{len(entry.log_dirs)} of broker {entry.identity.broker_id}" for entry in copies]
        what = f"the inputs are copies made at different times: {', '.join(counted)}"
    # partition directories were given, or log directories
    given = {entry.directory for entry in several} <= set(options.paths)
    paths = dict.fromkeys(entry.directory if given else entry.log_dir for entry in several)
    chosen = [f"--topic {quote(topic)}" for topic in options.topics]
    chosen += [f"--partition {partition}" for partition in options.partitions]
    yield Suggestion(
        "; ".join([what, *_held(held), "a scan audits each copy by itself, kaudit diff compares them"]),
        " ".join(["kaudit diff", *chosen, *map(quote, paths)]),
    )


def _held(held: Iterable[tuple[str, HeldRecords]]) -> Iterator[str]:
    """Say which records are on one copy and were left behind, the most of one first; several copies show the same."""
    found = sorted(set(held), key=lambda entry: (-entry[1].records, entry[0], entry[1].copy))
    for partition, records in found[:1]:
        more = f" (the most of {len(found)} such places)" if len(found) > 1 else ""
        yield (
            f"{records.copy} holds {records.records:,} record{'' if records.records == 1 else 's'} of {partition} at offsets "
            f"{records.first_offset}..{records.last_offset} that a newer leader began without{more}"
        )
