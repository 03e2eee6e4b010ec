"""Which engine does the work; it is imported once every option is known to be right, because numpy or pyspark come with it."""

from kaudit.cli.loading import loaded
from kaudit.cli.options import EngineChoice, EngineOptions
from kaudit.engines.engine import Engine
from kaudit.engines.local import LOCAL
from kaudit.errors import UsageError
from kaudit.spark import require_pyspark


def choose_engine(asked: EngineOptions) -> Engine:
    """Return the engine asked for.

    Raises:
        UsageError: options of Spark without Spark, or Spark without its extra.

    """
    if asked.engine is EngineChoice.LOCAL:
        if asked.master is not None or asked.spark_conf:
            raise UsageError("--master and --spark-conf need --engine spark")
        return LOCAL
    require_pyspark("--engine spark")
    engine: Engine = loaded("spark_engine", "spark_engine")(asked)  # pyarrow is an extra
    return engine
