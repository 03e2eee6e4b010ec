"""Schemas of the DataFrames as Spark has them, and errors of tasks as what they were."""

import pytest
from pyspark.errors import PySparkException

from kaudit.errors import NothingToAuditError, UnreadableInputError, UsageError
from kaudit.model.table_columns import DATAFRAME_COLUMNS, DATAFRAME_TABLES, NEVER_NULL
from kaudit.spark.schemas import arrow_schema, errors_of_tasks, spark_schema


@pytest.mark.parametrize("table", DATAFRAME_TABLES)
def test_each_column_has_its_meaning_and_the_first_one_what_was_read(table):
    metadata = {"paths": '["/logs"]'}
    schema = spark_schema(table, metadata)
    assert schema.names == arrow_schema(table).names == list(DATAFRAME_TABLES[table])
    assert [field.metadata["comment"] for field in schema] == [DATAFRAME_COLUMNS[name].meaning for name in schema.names]
    assert [field.metadata.get("kaudit") for field in schema] == [metadata, *[None] * (len(schema) - 1)]
    assert {field.name for field in schema if not field.nullable} == set(NEVER_NULL[table])
    assert [field.metadata for field in spark_schema(table)] == [
        {"comment": field.metadata["comment"]} for field in schema
    ]
    assert dict(spark_schema(table, {})[0].metadata)["kaudit"] == {}


def test_types_are_those_of_spark():
    types = {field.name: field.dataType.simpleString() for field in spark_schema("records")}
    assert types["timestamp"] == "timestamp"
    assert types["headers"] == "array<struct<key:string,value:binary>>"
    assert types["is_transactional"] == "boolean"
    assert (types["offset"], types["producer_epoch"], types["key"]) == ("bigint", "smallint", "binary")


OURS = UsageError.__module__


@pytest.mark.parametrize(("name", "kind"), [
    ("UsageError", UsageError), ("NothingToAuditError", NothingToAuditError), ("UnreadableInputError", UnreadableInputError),
])  # fmt: skip
def test_what_a_task_raised_is_raised_in_the_driver(name, kind):
    text = f"Job aborted\nTraceback:\n{OURS}.{name}: /logs: no such directory\n\tat java.base/x\n"
    error = PySparkException(text)
    with pytest.raises(kind) as raised, errors_of_tasks():
        raise error
    assert (type(raised.value), str(raised.value), raised.value.__cause__) == (kind, "/logs: no such directory", error)


def test_of_several_the_last_is_the_cause():
    text = f"{OURS}.UsageError: one\n{OURS}.NothingToAuditError: two\n"
    with pytest.raises(NothingToAuditError, match=r"^two$"), errors_of_tasks():
        raise PySparkException(text)


def test_other_errors_stay_as_they_are():
    errors: list[Exception] = [PySparkException("no memory"), ValueError(f"{OURS}.UsageError: x")]
    for error in errors:
        with pytest.raises(type(error)) as raised, errors_of_tasks():
            raise error
        assert raised.value is error
