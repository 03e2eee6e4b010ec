"""Schemas of the DataFrames as Spark has them, and errors of tasks as what they were."""

import pytest
from pyspark.errors import PySparkException
from pyspark.errors.exceptions import captured

from kaudit.errors import NothingToAuditError, UnreadableInputError, UsageError
from kaudit.model.table_columns import DATAFRAME_TABLES, NEVER_NULL, dataframe_column
from kaudit.spark.schemas import arrow_schema, raise_own_errors, spark_schema


@pytest.mark.parametrize("table", DATAFRAME_TABLES)
def test_each_column_has_its_meaning_and_that_of_the_origin_what_was_read(table):
    schema = spark_schema(table, '{"paths": ["/logs"]}')
    assert schema.names == arrow_schema(table).names == list(DATAFRAME_TABLES[table])
    assert [field.metadata["comment"] for field in schema] == [
        dataframe_column(table, name).meaning for name in schema.names
    ]
    named = [field.name for field in schema if "kaudit" in field.metadata]
    assert named == (["origin"] if table in {"batches", "runs"} else [])
    assert {field.metadata["kaudit"] for field in schema if field.name in named} <= {'{"paths": ["/logs"]}'}
    assert {field.name for field in schema if not field.nullable} == set(NEVER_NULL[table])


def test_types_are_those_of_spark():
    types = {field.name: field.dataType.simpleString() for field in spark_schema("records")}
    assert types["timestamp"] == "timestamp"
    assert types["headers"] == "array<struct<key:string,value:binary>>"
    assert types["is_transactional"] == "boolean"
    assert (types["offset"], types["producer_epoch"], types["key"]) == ("bigint", "smallint", "binary")


OURS = UsageError.__module__


@pytest.fixture
def raised_by_spark(monkeypatch):
    """Return the function that makes an exception of what the JVM says, with Spark's own in it, which gives this error."""

    def make(error):
        monkeypatch.setattr(captured, "convert_exception", lambda _: error)
        raise_own_errors()
        again = captured.convert_exception
        raise_own_errors()
        assert captured.convert_exception is again
        return again(None)

    return make


@pytest.mark.parametrize(("name", "kind"), [
    ("UsageError", UsageError), ("NothingToAuditError", NothingToAuditError), ("UnreadableInputError", UnreadableInputError),
])  # fmt: skip
def test_what_a_task_raised_is_raised_in_the_driver(raised_by_spark, name, kind):
    text = f"Job aborted\nTraceback:\n{OURS}.{name}: /logs: no such directory\n\tat java.base/x\n"
    error = raised_by_spark(PySparkException(text))
    assert (type(error), str(error)) == (kind, "/logs: no such directory")


def test_of_several_the_last_is_the_cause(raised_by_spark):
    error = raised_by_spark(PySparkException(f"{OURS}.UsageError: one\n{OURS}.NothingToAuditError: two\n"))
    assert (type(error), str(error)) == (NothingToAuditError, "two")


def test_other_errors_stay_as_they_are(raised_by_spark):
    error = PySparkException("no memory")
    assert raised_by_spark(error) is error
