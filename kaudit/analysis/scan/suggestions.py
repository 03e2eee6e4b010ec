"""Commands that show more of a scan's inputs than a scan does."""

from collections import Counter
from collections.abc import Iterator, Sequence

from kaudit.analysis.replicas.moments import BrokerMoments
from kaudit.analysis.scan.options import ScanOptions
from kaudit.checks.command_line import quote
from kaudit.model.result import Suggestion
from kaudit.source.layout import PartitionDirectory


def suggestions(
    options: ScanOptions, directories: Sequence[PartitionDirectory], moments: Sequence[BrokerMoments]
) -> Iterator[Suggestion]:
    """Suggest to compare the copies of partitions that a scan audits each by itself."""
    whole = [entry for entry in directories if entry.whole_directory and entry.segments]
    copies = Counter((entry.topic, entry.partition) for entry in whole)
    several = [entry for entry in whole if copies[entry.topic, entry.partition] > 1]
    if not several:
        return
    partitions = len({(entry.topic, entry.partition) for entry in several})
    what = f"{max(copies.values())} replicas of {partitions:,} partition{'' if partitions == 1 else 's'} were given"
    if moments:
        times = [f"broker {entry.identity.broker_id} at {len(entry.log_dirs)} moments" for entry in moments]
        what = f"the inputs are copies of {', '.join(times)}"
    # partition directories were given, or log directories
    given = {entry.directory for entry in several} <= set(options.paths)
    paths = dict.fromkeys(entry.directory if given else entry.log_dir for entry in several)
    chosen = [f"--topic {quote(topic)}" for topic in options.topics]
    chosen += [f"--partition {partition}" for partition in options.partitions]
    yield Suggestion(
        f"{what}; a scan audits each copy by itself, kaudit diff compares them",
        " ".join(["kaudit diff", *chosen, *map(quote, paths)]),
    )
