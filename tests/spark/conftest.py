"""One session for the tests of DataFrames, in the JVM of the engine's tests."""

import pytest


@pytest.fixture(scope="session")
def spark(spark_session):
    """A session with Spark's own settings, as users have them, but no more tasks than there is work."""
    session = spark_session.newSession()
    session.conf.set("spark.sql.adaptive.enabled", "true")
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "10000")
    session.conf.set("spark.sql.shuffle.partitions", "2")
    session.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    return session
