"""The engine on Spark, and whether URLs that it shall write tables to can be reached."""

from functools import partial

from kaudit.cli.options import EngineOptions
from kaudit.errors import UsageError
from kaudit.source.filesystem import require_listener
from kaudit.source.name_nodes import name_nodes
from kaudit.source.uri import Uri, UrlError
from kaudit.spark.engine import SparkEngine
from kaudit.spark.record_ledger import SparkRecords
from kaudit.spark.session import SparkOptions, session


def spark_engine(asked: EngineOptions) -> SparkEngine:
    """Return the engine with the settings asked for."""
    return SparkEngine(SparkOptions(asked.master, asked.spark_conf or ()))


def records_on_spark(asked: EngineOptions) -> SparkRecords:
    """Return what compares records on the Spark asked for."""
    return SparkRecords(partial(session, SparkOptions(asked.master, asked.spark_conf or ())))


def require_name_nodes(url: str) -> None:
    """Raise UsageError for a URL of HDFS where no name node listens, and for one that is malformed."""
    try:
        place = Uri.parse(url)
        if place.scheme == "hdfs":
            require_listener(url, name_nodes(place.authority))
    except UrlError as error:
        raise UsageError(f"--output {error}") from error
    except OSError as error:
        raise UsageError(f"--output {url}: {error.strerror}") from error
