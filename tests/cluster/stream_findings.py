"""Runs a stream of findings until nothing is left: stream_findings.py LOGS STATE CHECKPOINT TABLE appends its rows to a table by topic."""

import json
import sys

from pyspark.sql import SparkSession

import kaudit.spark as ks


def main(logs, state, checkpoint, table):
    """Append what the log shows since the last run; print the rows of the table, a JSON object a line."""
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    ks.register(spark)
    found = spark.readStream.format("kaudit.findings").option("state", state).load(logs)

    def append(rows, _):
        rows.write.mode("append").partitionBy("topic").parquet(table)

    written = found.writeStream.foreachBatch(append).option("checkpointLocation", checkpoint)
    written.trigger(availableNow=True).start().awaitTermination()
    columns = ("topic", "code", "fingerprint", "merge_key", "change", "found_at", "audited_at", "run_id")
    for row in spark.read.schema(found.schema).parquet(table).select(*columns).toLocalIterator():
        sys.stdout.write(json.dumps(row.asDict(), default=str) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
