"""One session for the tests of DataFrames, in the JVM of the engine's tests."""

import pytest

from tests.engines.conftest import Engine, arrow_session, local

__all__ = ["arrow_session", "local"]


@pytest.fixture(scope="session")
def spark(spark_session):
    """A session with Spark's own settings, as users have them, but no more tasks than there is work."""
    session = spark_session.newSession()
    session.conf.set("spark.sql.adaptive.enabled", "true")
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "10000")
    session.conf.set("spark.sql.shuffle.partitions", "2")
    session.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    return session


@pytest.fixture
def on_spark(spark_session):
    """The Spark engine, as the command runs it."""
    from kaudit.spark import engine

    return Engine(engine)
