"""The file spark-submit runs: `spark-submit spark_submit.py scan hdfs://...`, with kaudit's own options."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

_ON_ENGINES = ("scan", "timeline", "producers", "diff")
_FINDINGS, _INTERNAL = 1, 70
"""kaudit.cli.exits.ExitCode, which cannot be imported where kaudit cannot."""


def on_spark(arguments: Sequence[str]) -> list[str]:
    """Return kaudit's arguments with `--engine spark`, which goes without saying here."""
    given = list(arguments)
    named = any(word == "--engine" or word.startswith("--engine=") for word in given)
    if named or not given or given[0] not in _ON_ENGINES:
        return given
    return [given[0], "--engine", "spark", *given[1:]]


def main() -> None:
    """Run kaudit in the Spark application that spark-submit has started, and exit with its code.

    Where the cluster runs the driver, findings are no failure: it would call the application failed, and YARN run it again.
    """
    try:
        from kaudit.cli.app import run  # noqa: PLC0415 - the path must be right first
    except ImportError as error:
        # Python's own exit code would be 1, that of findings
        sys.stderr.write(
            f"kaudit: the driver's Python {sys.executable} cannot import kaudit: {error}; see docs/scale.md\n"
        )
        sys.exit(_INTERNAL)
    _write_messages_where_spark_does()
    code = run(on_spark(sys.argv[1:]))
    sys.exit(0 if code == _FINDINGS and _in_cluster() else code)


def _write_messages_where_spark_does() -> None:
    """Take the stderr of spark-submit: it gives the driver one pipe for both outputs, and copies that to its stdout."""
    if os.fstat(1) != os.fstat(2):
        return
    try:
        stderr = os.open(f"/proc/{os.getppid()}/fd/2", os.O_WRONLY | os.O_APPEND)
    except OSError:
        return  # no Linux
    os.dup2(stderr, 2)
    os.close(stderr)


def _in_cluster() -> bool:
    """Whether the driver runs in the cluster, by the setting that spark-submit makes."""
    from pyspark import SparkConf  # noqa: PLC0415 - an extra

    return SparkConf().get("spark.submit.deployMode") == "cluster"


if __name__ == "__main__":
    # spark-submit puts this file's directory first on the path, where kaudit's rooms are no packages of their own
    here = str(Path(__file__).resolve().parent)
    sys.path[:] = [entry for entry in sys.path if entry != here]
    main()
