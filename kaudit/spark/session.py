"""Starting Spark, or joining the one that runs, with the settings a scan wants."""

import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kaudit.errors import UsageError
from kaudit.source.filesystem import ANSWER_VARIABLE, CONNECT_VARIABLE, answer_seconds, connect_seconds
from kaudit.source.uri import UrlError
from kaudit.spark.java import java_home
from kaudit.spark.releases import require_release

SESSION_SETTINGS: Mapping[str, str] = {
    # a row is a whole range of a segment, some 100 KB: Spark's 10,000 rows a batch would not fit into memory
    "spark.sql.execution.arrow.maxRecordsPerBatch": "64",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),
    # replaying tasks are balanced by the bytes of their partitions: merging small ones would undo that
    "spark.sql.adaptive.enabled": "false",
    # the default is a type that Parquet has given up
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
"""Settings that can be given to a session that runs already."""
CONTEXT_SETTINGS: Mapping[str, str] = {
    "spark.app.name": "kaudit",
    # the work is done in Python beside the executor's heap, a few 100 MB a core
    "spark.executor.memoryOverheadFactor": "0.5",
}
_RETRIES = {
    "spark.hadoop.ipc.client.connect.max.retries": "1",
    "spark.hadoop.ipc.client.connect.max.retries.on.timeouts": "1",
}
"""Hadoop's clients try a name node that is down for up to 15 minutes otherwise (45 times 20 s), and wait for ever for one that stopped."""
_KERBEROS = ("HADOOP_CONF_DIR", "KRB5_CONFIG", "KRB5CCNAME", "KRB5_CLIENT_KTNAME", "HADOOP_TOKEN_FILE_LOCATION")
"""Where tickets and tokens lie: a standalone cluster hands on neither; YARN and Kubernetes set their own in each container."""
FORWARDED = (
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT_URL",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "HADOOP_USER_NAME",
    CONNECT_VARIABLE,
    ANSWER_VARIABLE,
)
"""Variables workers need to find what the driver found. No credentials: settings are shown in Spark's UI."""
_JAVA_VARIABLES = ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "SPARK_SUBMIT_OPTS")
"""A JVM that is asked for two garbage collectors does not start."""
_SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Of the JVM on this machine: the work is done in Python, so that optimizing what moves its rows costs more than it saves."""
_LOCAL_MASTERS = ("local", "local[", "local-cluster[")


class SparkOptions(Struct, frozen=True):
    """Which Spark to use, and how.

    `master` as spark-submit takes it (None: what is configured, else this machine); `settings` are `key=value` and win
    over kaudit's own.
    """

    master: str | None = None
    settings: Sequence[str] = ()


@contextmanager
def session(options: SparkOptions, jobs: int | None) -> Iterator[SparkSession]:
    """Give a session for one scan: a running one's sibling, or a new one that is stopped afterwards.

    Raises:
        UsageError: pyspark or Java is missing, a setting is malformed, or Spark does not start.

    """
    given = _parse_settings(options.settings)
    require_release()
    running = SparkSession.getActiveSession()
    if running is not None:
        sibling = running.newSession()  # its settings are its own
        for key, value in {**SESSION_SETTINGS, **given}.items():
            sibling.conf.set(key, value)
        yield sibling
        return
    started = _start(options.master, given, jobs)
    try:
        yield started
    finally:
        started.stop()


def _parse_settings(settings: Sequence[str]) -> dict[str, str]:
    parsed = {}
    for text in settings:
        key, equals, value = text.partition("=")
        if not equals or not key.startswith("spark."):
            raise UsageError(f"--spark-conf {text}: write spark.some.setting=VALUE")
        parsed[key] = value
    return parsed


def _start(master: str | None, given: Mapping[str, str], jobs: int | None) -> SparkSession:
    timeouts = _timeouts()
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # else spark-submit has started the JVM, and chosen all of this
        _prepare_launch(master, given)
    try:
        # starts the JVM, which alone knows spark-defaults.conf and what spark-submit was given: those win over ours
        SparkContext._ensure_initialized()  # noqa: SLF001 - there is no public way to ask before the context starts
        conf = SparkConf()
        if master is not None:
            conf.setMaster(master)
        conf.setIfMissing("spark.master", f"local[{jobs or '*'}]")
        for key, value in given.items():
            conf.set(key, value)
        executors = _of_executors(str(conf.get("spark.master")))
        for key, value in {**CONTEXT_SETTINGS, **SESSION_SETTINGS, **_RETRIES, **timeouts, **executors}.items():
            conf.setIfMissing(key, value)
        return SparkSession.builder.config(conf=conf).getOrCreate()
    except Exception as error:
        if isinstance(error, PySparkException | OSError) or type(error).__module__.startswith("py4j."):
            raise UsageError(f"Spark did not start: {_first_line(error)}") from error
        raise


def _timeouts() -> dict[str, str]:
    try:
        seconds = {"connect.timeout": connect_seconds(), "rpc-timeout.ms": answer_seconds()}
        return {f"spark.hadoop.ipc.client.{name}": str(round(value * 1000)) for name, value in seconds.items()}
    except UrlError as error:
        raise UsageError(str(error)) from error


def _of_executors(master: str) -> dict[str, str]:
    standalone = master.startswith("spark://")
    names = (*FORWARDED, *(_KERBEROS if standalone else ()))
    settings = {f"spark.executorEnv.{name}": os.environ[name] for name in names if os.environ.get(name)}
    return settings | {"spark.executor.extraJavaOptions": realms} if standalone and (realms := _realms()) else settings


def _realms() -> str:
    """Return the JVM's option for what KRB5_CONFIG names to all others; empty where it is not set."""
    path = os.environ.get("KRB5_CONFIG", "").partition(":")[0]
    return f"-Djava.security.krb5.conf={path}" if path else ""


def _prepare_launch(master: str | None, given: Mapping[str, str]) -> None:
    """Set what the JVM reads from the environment when it starts."""
    home = java_home(os.environ)
    if home is not None:
        os.environ["JAVA_HOME"] = home
    # workers take PATH's python3 otherwise, which need not have kaudit
    os.environ.setdefault("PYSPARK_PYTHON", given.get("spark.pyspark.python", sys.executable))
    # Spark's own bar would write over kaudit's on the same stderr; pyspark turns it on before anybody can ask
    own = {"spark.ui.showConsoleProgress": "false"}
    java = [f"-Dlog4j2.configurationFile={Path(__file__).with_name('spark-log4j2.properties').as_uri()}"]
    if realms := _realms():
        java.append(realms)
    if master is None or master.startswith(_LOCAL_MASTERS):
        own["spark.python.daemon.module"] = "kaudit.spark.daemon"
        # without it Spark asks the host's name for an address, which a laptop's DNS need not know
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        if not any("-XX:+Use" in os.environ.get(name, "") for name in _JAVA_VARIABLES):
            java += _SHORT_LIVED
    arguments = [word for key, value in {**own, **given}.items() for word in ("--conf", f"{key}={value}")]
    if "SPARK_CONF_DIR" not in os.environ and "spark.driver.extraJavaOptions" not in given:
        arguments += ["--driver-java-options", " ".join(java)]
    before = os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell")
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"{shlex.join(arguments)} {before}"


def _first_line(error: Exception) -> str:
    java = getattr(error, "java_exception", None)
    text = str(java) if java is not None else str(error)
    return text.strip().splitlines()[0] if text.strip() else type(error).__name__
