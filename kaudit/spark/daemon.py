"""Spark's daemon of Python workers (`spark.python.daemon.module`): it has imported what tasks use before it forks them."""

import gc

from pyspark.daemon import manager

from kaudit.spark import task_findings  # noqa: F401 - for the workers

if __name__ == "__main__":
    gc.freeze()
    manager()
