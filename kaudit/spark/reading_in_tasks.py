"""What an audit on Spark reads, in tasks: partitions, and beside them __transaction_state, feature levels, partitions once more."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from kaudit.audits.coordinator.transaction_state_reader import (
    CoordinatorReader,
    coordinator_of,
    names_of,
)
from kaudit.audits.producer_ids.block_sources import BlockSource, read_metadata
from kaudit.audits.sequences.rescan import Questions, Seen, rescan
from kaudit.engines.rows import Rows
from kaudit.model.coordinator import CoordinatorView
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.failed_reads import FailedReads
from kaudit.reading.shuffle_codec import pack
from kaudit.scanning.group_log_reading import read_group_log
from kaudit.scanning.group_logs import GroupLog, GroupLogQuestion
from kaudit.scanning.versions import METADATA_VERSION, TRANSACTION_VERSION, feature_levels
from kaudit.source.layout import PartitionDirectory, Unreadable
from kaudit.spark.jobs import ask_tasks, from_here
from kaudit.spark.plan import SparkPlan
from kaudit.spark.releases import by_number, work_frame
from kaudit.spark.tasks import CHUNK_ORDER, CHUNKS, STEPS, Count, reading, replay

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_Answer = TypeVar("_Answer")


def replayed_on(
    spark: "SparkSession", plan: SparkPlan, keeps: Rows, attempts: int, count: Count | None = None
) -> "DataFrame":
    """Describe the reading of a log: plan -> read -> shuffle -> replay -> rows of STEPS; `attempts` and `count` as of `reading`."""
    open_source = from_here()
    read = partial(reading, open_source=open_source, retries=attempts, count=count)
    chunks = work_frame(spark, map(pack, plan.works)).mapInArrow(read, CHUNKS)
    by_replica = by_number(chunks, plan.shuffle_partitions, "shuffle_partition").sortWithinPartitions(*CHUNK_ORDER)
    return by_replica.mapInArrow(partial(replay, keeps=keeps, open_source=open_source), STEPS)


class ReadingInTasks(Struct, frozen=True):
    """Reads in tasks of a session. `failed`: files that could not be read."""

    session: "SparkSession"
    failed: list[Unreadable] = field(default_factory=list)

    def coordinator(
        self,
        directories: Sequence[PartitionDirectory],
        wanted: Collection[int],
    ) -> tuple[CoordinatorReader, CoordinatorView]:
        """Read what partitions of __transaction_state say of these producer ids."""
        question = list(directories), frozenset(wanted)
        read = partial(_answer, read=coordinator_of(from_here()))
        (found,) = ask_tasks(self.session, "kaudit: read __transaction_state", [question], read)
        return found

    def names(self, directories: Sequence[PartitionDirectory], wanted: NDArray[np.int64] | None) -> Mapping[int, str]:
        """Read the transactional ids that partitions of __transaction_state name of these producer ids, of all if None."""
        questions = [([directory], wanted) for directory in directories]
        read = partial(_answer, read=names_of(from_here()))
        found = ask_tasks(self.session, "kaudit: read the names in __transaction_state", questions, read)
        return {producer_id: name for names in found for producer_id, name in names.items()}

    def levels(self, directories: Sequence[PartitionDirectory]) -> Mapping[str, int]:
        """Read the feature levels in __cluster_metadata."""
        (found,) = self._noting(
            "kaudit: read the feature levels in __cluster_metadata", [list(directories)], _read_levels
        )
        return found

    def group_logs(self, questions: Sequence[GroupLogQuestion]) -> list[GroupLog]:
        """Read partitions of __consumer_offsets."""
        read = partial(read_group_log, open_source=from_here())
        return ask_tasks(self.session, "kaudit: read __consumer_offsets", questions, read)

    def rescan(self, asked: Sequence[tuple[PartitionDirectory, Questions]]) -> list[Seen]:
        """Read partitions again."""
        return self._noting("kaudit: find unallocated producer ids", asked, _rescan)

    def _noting(self, what: str, questions: Sequence[Any], read: Callable[[Any, OpenSource], _Answer]) -> list[_Answer]:
        """Ask tasks, and note the files that they could not read."""
        answers = ask_tasks(self.session, what, questions, partial(_answer_noting, read=read, open_source=from_here()))
        self.failed.extend(entry for _, failed in answers for entry in failed)
        return [answer for answer, _ in answers]


def read_metadata_logs(spark: "SparkSession", directories: Sequence[PartitionDirectory]) -> list[BlockSource]:
    """Return what replicas of __cluster_metadata say of blocks, each read in a task."""
    read = partial(read_metadata, open_source=from_here())
    return ask_tasks(spark, "kaudit: read __cluster_metadata", directories, read)


def _answer(question: Sequence[Any], read: Callable[..., _Answer]) -> _Answer:
    return read(*question)


def _answer_noting(
    question: Any,  # noqa: ANN401 - as `read` takes it
    read: Callable[[Any, OpenSource], _Answer],
    open_source: OpenSource,
) -> tuple[_Answer, list[Unreadable]]:
    reads = FailedReads(open_source)
    return read(question, reads), list(reads.unreadable)


def _read_levels(directories: Sequence[PartitionDirectory], open_source: OpenSource) -> dict[str, int]:
    levels = feature_levels(directories, open_source)
    return {name: levels[name] for name in (METADATA_VERSION, TRANSACTION_VERSION) if name in levels}


def _rescan(question: tuple[PartitionDirectory, Questions], open_source: OpenSource) -> Seen:
    directory, questions = question
    return rescan(directory, open_source, questions)
