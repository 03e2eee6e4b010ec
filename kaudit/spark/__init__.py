"""Kafka logs as DataFrames of Spark: batches, runs, records, findings, timelines and producers.

    import kaudit.spark as ks

    batches = ks.batches(spark, "hdfs://name-node/kafka-logs", topics=["orders"])
    findings = ks.findings(ks.runs(batches))

Nothing is read before an action. Only DataFrames are used, so all of it works under Spark Connect; kaudit must be
installed where the tasks run. docs/spark.md has the columns.
"""

from kaudit.installation import install_command

try:
    from kaudit.spark.frames import batches, findings, producers, records, register, runs, timelines
except ModuleNotFoundError as error:
    if error.name is None or error.name.split(".")[0] != "pyarrow":
        raise
    raise ImportError(f"kaudit.spark needs an extra: {install_command('spark')}", name="pyarrow") from error

__all__ = ["batches", "findings", "producers", "records", "register", "runs", "timelines"]
