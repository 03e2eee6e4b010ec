"""A session of its own: which settings it gets, and what is said where Spark does not start. Nothing is started."""

from types import SimpleNamespace
from typing import Any

import pyspark
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kaudit.errors import UsageError
from kaudit.source.filesystem import CONNECT_VARIABLE
from kaudit.spark import session as spark_session
from kaudit.spark.session import FORWARDED, SparkOptions, session

OWN = {
    "spark.app.name": "kaudit",
    "spark.executor.memoryOverheadFactor": "0.5",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "64",
    "spark.sql.execution.arrow.maxBytesPerBatch": "16777216",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.hadoop.ipc.client.connect.max.retries": "1",
    "spark.hadoop.ipc.client.connect.max.retries.on.timeouts": "1",
    "spark.hadoop.ipc.client.rpc-timeout.ms": "20000",
}


class Conf:
    """SparkConf, as far as it is used; `configured` is what spark-defaults.conf says."""

    configured: dict[str, str] = {}  # noqa: RUF012 - set by tests

    def __init__(self) -> None:
        self.values = dict(self.configured)

    def set(self, key: str, value: str) -> None:
        self.values[key] = value

    def setIfMissing(self, key: str, value: str) -> None:  # noqa: N802
        self.values.setdefault(key, value)

    def get(self, key: str) -> str | None:
        return self.values.get(key)

    def setMaster(self, master: str) -> None:  # noqa: N802
        self.set("spark.master", master)


@pytest.fixture
def started(monkeypatch) -> Any:
    """`launches`: what the JVM was prepared with; `fails`: what Spark raises when it starts; `stops`: how often it was stopped."""
    state = SimpleNamespace(launches=[], fails=None, stops=0)

    def get_or_create() -> Any:
        if state.fails is not None:
            raise state.fails

        def stop() -> None:
            state.stops += 1

        return SimpleNamespace(conf=state.conf, stop=stop)

    def config(*, conf: Conf) -> Any:
        state.conf = conf.values
        return SimpleNamespace(getOrCreate=get_or_create)

    monkeypatch.setattr(spark_session, "SparkConf", Conf)
    monkeypatch.setattr(pyspark.SparkContext, "_ensure_initialized", lambda: None)
    monkeypatch.setattr(SparkSession, "builder", SimpleNamespace(config=config))
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(spark_session, "_prepare_launch", lambda *given: state.launches.append(given))
    monkeypatch.setattr(Conf, "configured", {})
    for name in (*FORWARDED, "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(CONNECT_VARIABLE, "2.5")
    return state


def settings_of(options: SparkOptions, jobs: int | None = None) -> Any:
    with session(options, jobs) as made:
        return made.conf


@pytest.mark.parametrize(("master", "jobs", "expected"), [
    (None, None, "local[*]"), (None, 3, "local[3]"), ("yarn", 3, "yarn"), ("local[2]", None, "local[2]"),
])  # fmt: skip
def test_a_session_of_its_own_has_these_settings_and_is_stopped(started, master, jobs, expected):
    conf = settings_of(SparkOptions(master), jobs)
    connect = conf.pop("spark.hadoop.ipc.client.connect.timeout")
    assert conf == {**OWN, "spark.master": expected, f"spark.executorEnv.{CONNECT_VARIABLE}": "2.5"}
    assert connect == "2500"
    assert (started.launches, started.stops) == ([(master, {})], 1)


def test_what_is_configured_wins_over_ours_and_what_is_given_over_both(started, monkeypatch):
    monkeypatch.setattr(
        Conf,
        "configured",
        {"spark.master": "yarn", "spark.app.name": "theirs", "spark.sql.adaptive.enabled": "true", "spark.x": "1"},
    )
    conf = settings_of(SparkOptions(None, ["spark.x=2", "spark.sql.adaptive.enabled=a=b"]), 3)
    names = ("spark.master", "spark.app.name", "spark.sql.adaptive.enabled", "spark.x")
    assert [conf[name] for name in names] == ["yarn", "theirs", "a=b", "2"]
    assert started.launches == [(None, {"spark.x": "2", "spark.sql.adaptive.enabled": "a=b"})]
    assert settings_of(SparkOptions("local"))["spark.master"] == "local"


def test_under_spark_submit_the_jvm_runs_already(started, monkeypatch):
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "4711")
    settings_of(SparkOptions())
    assert started.launches == []


def test_workers_get_what_the_driver_finds_stores_by_and_no_credentials(started, monkeypatch):
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    conf = settings_of(SparkOptions())
    assert {key: value for key, value in conf.items() if key.startswith("spark.executorEnv.")} == {
        "spark.executorEnv.AWS_REGION": "eu-central-1",
        f"spark.executorEnv.{CONNECT_VARIABLE}": "2.5",
    }


@pytest.mark.parametrize(("master", "forwarded"), [("spark://host:7077", True), ("yarn", False), ("local[2]", False)])
def test_a_standalone_cluster_gets_the_places_of_tickets_and_tokens(started, monkeypatch, master, forwarded):
    """YARN and Kubernetes put tokens into each container themselves."""
    places = {
        "HADOOP_CONF_DIR": "/etc/hadoop",
        "KRB5_CONFIG": "/run/krb5.conf:/etc/krb5.conf",  # Java reads one file
        "KRB5CCNAME": "/tmp/krb5cc_7",
        "KRB5_CLIENT_KTNAME": "/run/keytab",
        "HADOOP_TOKEN_FILE_LOCATION": "/run/tokens",
    }
    for name, place in places.items():
        monkeypatch.setenv(name, place)
    conf = settings_of(SparkOptions(master))
    expected = {f"spark.executorEnv.{name}": place for name, place in places.items()}
    expected["spark.executor.extraJavaOptions"] = "-Djava.security.krb5.conf=/run/krb5.conf"
    assert {key: conf[key] for key in expected if key in conf} == (expected if forwarded else {})


class Py4JError(Exception):
    java_exception = None


Py4JError.__module__ = "py4j.protocol"


def java(text: str) -> Exception:
    error = Py4JError("An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext")
    error.java_exception = text  # type: ignore[assignment]
    return error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (PySparkException("no master\nmore"), "no master"),
        (OSError(2, "No such file or directory"), "[Errno 2] No such file or directory"),
        (java("java.net.UnknownHostException: nn\n\tat java"), "java.net.UnknownHostException: nn"),
        (Py4JError("gateway closed"), "gateway closed"),
        (Py4JError(" "), "Py4JError"),
    ],
)
def test_where_spark_does_not_start_the_first_line_says_why(started, error, said):
    started.fails = error
    with pytest.raises(UsageError) as raised:
        settings_of(SparkOptions())
    assert (str(raised.value), raised.value.__cause__) == (f"Spark did not start: {said}", error)


def test_what_is_no_error_of_spark_stays_as_it_is(started):
    started.fails = ZeroDivisionError("ours")
    with pytest.raises(ZeroDivisionError, match="ours"):
        settings_of(SparkOptions())


def test_a_time_to_connect_that_is_none_is_an_error_of_usage(started, monkeypatch):
    monkeypatch.setenv(CONNECT_VARIABLE, "soon")
    with pytest.raises(UsageError, match=CONNECT_VARIABLE):
        settings_of(SparkOptions())
    assert started.launches == []


@pytest.mark.parametrize("text", ["spark.x", "x=1", "=1", "sparkx=1"])
def test_a_setting_is_named_and_has_a_value(started, text):
    with pytest.raises(UsageError) as raised:
        settings_of(SparkOptions(settings=[text]))
    assert str(raised.value) == f"--spark-conf {text}: write spark.some.setting=VALUE"


def test_a_body_that_fails_leaves_no_session(started):
    with pytest.raises(ValueError, match="body"), session(SparkOptions(), None):
        raise ValueError("body")
    assert started.stops == 1
