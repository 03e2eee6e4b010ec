"""Which engine does the work; the heavy imports happen here, once every option is known to be right."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

from msgspec import Struct

from kaudit.cli.options import EngineChoice
from kaudit.engines.progress import Progress
from kaudit.errors import UsageError
from kaudit.installation import install_command
from kaudit.listings.query import Query
from kaudit.model.result import ScanResult, TimelineResult
from kaudit.scanning.options import ScanOptions

if TYPE_CHECKING:  # numpy comes with them
    from kaudit.engines.partition_tasks import EachPartition
    from kaudit.listings.producer_histories import RecordedScan
    from kaudit.listings.producer_listing import ListedProducers


Record = Callable[[ScanOptions, Progress], "AbstractContextManager[RecordedScan]"]


class Engine(Struct, frozen=True):
    """What an engine can do."""

    scan: Callable[[ScanOptions, Progress], ScanResult]
    timeline: Callable[[ScanOptions, Progress], TimelineResult]
    producers: Callable[[ScanOptions, Progress, Query], "AbstractContextManager[ListedProducers]"]
    record: Record
    each_partition: "EachPartition"
    writes_to_urls: bool = False
    """Its tables can be written where a URL says."""


def choose_engine(choice: EngineChoice, master: str | None, settings: Sequence[str]) -> Engine:
    """Return the engine asked for.

    Raises:
        UsageError: options of Spark without Spark, or Spark without its extra.

    """
    if choice is EngineChoice.LOCAL:
        if master is not None or settings:
            raise UsageError("--master and --spark-conf need --engine spark")
        from kaudit.engines import local
        from kaudit.engines.partition_tasks import each_partition

        return Engine(local.scan, local.timeline, local.listed_producers, local.record, each_partition)
    require_spark()
    from kaudit.engines import spark, spark_partition_tasks
    from kaudit.engines.spark_session import SparkOptions

    options = SparkOptions(master, settings)
    return Engine(
        partial(spark.scan, spark=options),
        partial(spark.timeline, spark=options),
        partial(spark.listed_producers, spark=options),
        partial(spark.record, spark=options),
        partial(spark_partition_tasks.each_partition, spark=options),
        writes_to_urls=True,
    )


def require_spark() -> None:
    """Refuse in one line what would end in a traceback.

    Raises:
        UsageError: the spark extra is not installed.

    """
    if find_spec("pyspark") is None or find_spec("pyarrow") is None:
        raise UsageError(f"--engine spark needs an extra: {install_command('spark')}")
