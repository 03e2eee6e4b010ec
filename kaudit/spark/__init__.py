"""Kafka logs as DataFrames of Spark: batches, runs, records, findings, timelines, producers, diff, dedup and ledger.

    import kaudit.spark as ks

    batches = ks.batches(spark, "hdfs://name-node/kafka-logs", topics=["orders"])
    findings = ks.findings(ks.runs(batches))

Nothing is read before an action, but by `ledger`. Only DataFrames are used, so all of it works under Spark Connect; kaudit must be
installed where the tasks run. docs/spark.md has the columns.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from kaudit.errors import MissingExtraError
from kaudit.installation import install_command

if TYPE_CHECKING:
    from kaudit.spark.frames import (
        batches,
        dedup,
        diff,
        findings,
        ledger,
        producers,
        read_table,
        records,
        register,
        runs,
        timelines,
    )

__all__ = [
    "batches",
    "dedup",
    "diff",
    "findings",
    "ledger",
    "producers",
    "read_table",
    "records",
    "register",
    "runs",
    "timelines",
]


def require_pyspark(what: str) -> None:
    """Raise MissingExtraError, where Spark or Arrow is not installed: `what` needs them."""
    if find_spec("pyspark") is None or find_spec("pyarrow") is None:
        raise MissingExtraError(f"{what} needs an extra: {install_command('spark')}")


def __getattr__(name: str) -> Any:  # noqa: ANN401 - functions of `frames`
    """Load the functions on first use: the command line imports other modules of this package without them.

    Raises:
        AttributeError: there is no such function.
        MissingExtraError: pyspark or pyarrow is not installed.

    """
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require_pyspark("kaudit.spark")
    from kaudit.spark import frames  # noqa: PLC0415 - as above

    return getattr(frames, name)
