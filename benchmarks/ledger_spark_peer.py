"""What a user would write: `python ledger_spark_peer.py ADDRESS JARS SOURCE TARGET` counts with Spark what a topic's mirror lacks: Kafka source and anti join."""

import sys

from pyspark.sql import DataFrame, SparkSession


def main() -> None:
    address, jars, source, target = sys.argv[1:]
    spark = (
        SparkSession.builder.master("local[*]")
        .config("spark.jars", jars)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "4g")
        .getOrCreate()
    )

    def records(topic: str) -> DataFrame:
        read = spark.read.format("kafka").option("kafka.bootstrap.servers", address).option("subscribe", topic)
        return read.load().select("key", "value", "timestamp")

    print(records(source).join(records(target), ["key", "value", "timestamp"], "left_anti").count())
    spark.stop()


if __name__ == "__main__":
    main()
