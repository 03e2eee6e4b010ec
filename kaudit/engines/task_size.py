"""How many bytes of logs a Spark task reads: the one rule of audits and of data sources."""

from collections.abc import Sequence

from kaudit.partition.job import Job
from kaudit.reading.chunk_reader import CHUNK_BYTES
from kaudit.source.schemes import filesystem
from kaudit.source.uri import Uri

TASKS_PER_CORE = 4
"""So many reading tasks a core even out what compresses, decodes or is stored unlike its neighbours."""
USUAL_BLOCK_BYTES = 128 << 20
"""Of HDFS by default, and what Spark's tasks read of other files."""
_TASKS = 10_000
"""Of a log for which this is too few, tasks read more."""
_PIECES = 2_000
"""Of one partition, which one task puts together: the rows of a piece are joined (kaudit/reading/range_joining.py)."""
_LARGEST_TASK = 1 << 30
"""A task lost with its executor is read again: this much at most. 100 TB make 100,000 tasks, which Spark bears."""


def block_bytes(jobs: Sequence[Job]) -> int:
    """Return the block size of the files to read: that of one file of each store, and of several stores the largest.

    Disks and S3 have none, and what cannot be asked says none: then it is the usual one.
    """
    newest: dict[tuple[str, str], Uri] = {}
    for job in jobs:
        file = job.plan[-1].file if job.plan else None
        if file is not None and file.fetched is None:
            uri = Uri.parse(file.path)
            newest.setdefault((uri.scheme, uri.authority), uri)
    return max(map(_block_bytes, newest.values()), default=0) or USUAL_BLOCK_BYTES


def _block_bytes(file: Uri) -> int:
    try:
        return 0 if file.is_local else filesystem(file).status(file).block_bytes
    except OSError:
        return 0  # reading it says why


def task_bytes(total: int, block: int, cores: int | None = None, partition: int = 0) -> int:
    """Return how much of so many bytes a task takes: a block, less where so many cores would be idle, at most 1 GiB.

    `partition`: bytes of the largest partition; a huge one is read in larger pieces.
    """
    most = min(max(block, CHUNK_BYTES, partition // _PIECES), _LARGEST_TASK)
    if cores is not None:
        most = min(max(total // (cores * TASKS_PER_CORE), CHUNK_BYTES), most)
    return min(max(most, total // _TASKS), _LARGEST_TASK)
