"""Which engine does the work; the heavy imports happen here, once every option is known to be right."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from kaudit.cli.options import EngineChoice
from kaudit.errors import UsageError
from kaudit.installation import install_command

if TYPE_CHECKING:  # numpy comes with them
    from kaudit.engines.engine import Engine


def choose_engine(choice: EngineChoice, master: str | None, settings: Sequence[str]) -> "Engine":
    """Return the engine asked for.

    Raises:
        UsageError: options of Spark without Spark, or Spark without its extra.

    """
    if choice is EngineChoice.LOCAL:
        if master is not None or settings:
            raise UsageError("--master and --spark-conf need --engine spark")
        from kaudit.engines.local import LOCAL

        return LOCAL
    require_spark()
    from kaudit.spark.engine import SparkEngine
    from kaudit.spark.session import SparkOptions

    return SparkEngine(SparkOptions(master, settings))


def require_spark() -> None:
    """Refuse in one line what would end in a traceback.

    Raises:
        UsageError: the spark extra is not installed.

    """
    if find_spec("pyspark") is None or find_spec("pyarrow") is None:
        raise UsageError(f"--engine spark needs an extra: {install_command('spark')}")
