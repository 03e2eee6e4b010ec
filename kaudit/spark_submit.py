"""The file spark-submit runs: `spark-submit spark_submit.py scan hdfs://...`, with kaudit's own options."""

import sys
from collections.abc import Sequence
from pathlib import Path

_AUDITS = ("scan", "timeline", "producers")


def on_spark(arguments: Sequence[str]) -> list[str]:
    """Return kaudit's arguments with `--engine spark`, which goes without saying here."""
    given = list(arguments)
    named = any(word == "--engine" or word.startswith("--engine=") for word in given)
    if named or not given or given[0] not in _AUDITS:
        return given
    return [given[0], "--engine", "spark", *given[1:]]


def main() -> None:
    """Run kaudit in the Spark application that spark-submit has started, and exit with its code."""
    from kaudit.cli.app import run  # noqa: PLC0415 - the path must be right first

    sys.exit(run(on_spark(sys.argv[1:])))


if __name__ == "__main__":
    # spark-submit puts this file's directory first on the path, where kaudit's rooms are no packages of their own
    here = str(Path(__file__).resolve().parent)
    sys.path[:] = [entry for entry in sys.path if entry != here]
    main()
