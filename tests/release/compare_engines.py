"""Audits each path by Spark and by this process, in an environment with one release of Spark; fails where the findings differ."""

import sys

import pyspark

import kaudit
import kaudit.spark as ks
from kaudit.spark.session import SparkOptions, session


def main():
    with session(SparkOptions("local[2]", ["spark.ui.enabled=false"]), None) as spark:
        assert spark.version == pyspark.__version__
        for path in sys.argv[1:]:
            local, by_spark = kaudit.scan(path), kaudit.scan(path, engine="spark", spark=spark)
            assert by_spark.findings == local.findings, path
            assert by_spark.coverage == local.coverage, path
            rows = ks.findings(spark, path).select("code", "topic", "partition", "offset", "fingerprint").collect()
            assert [row.fingerprint for row in rows] == [finding.fingerprint for finding in local.findings], path
            print(f"{path}: {len(rows)} findings")


main()
