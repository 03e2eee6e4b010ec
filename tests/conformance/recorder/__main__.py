"""`python -m tests.conformance.recorder VERSION JARS SCENARIOS.json OUT [--name main] [--config name=value ...]`."""

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

from tests.conformance.recorder.jvm import Broker
from tests.conformance.recorder.script import Recorder, write


def main() -> None:
    """Record one file of scenarios on one release."""
    parser = argparse.ArgumentParser(prog="recorder")
    parser.add_argument("version")
    parser.add_argument("jars", type=Path)
    parser.add_argument("scenarios", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--name", default="main", help="stem of the files written")
    parser.add_argument("--config", action="append", default=[], help="the broker's, as name=value")
    parser.add_argument("--only", default="", help="scenarios whose name begins so")
    parser.add_argument("--keep", type=Path, help="where to leave the broker's directories")
    arguments = parser.parse_args()
    config = dict(setting.split("=", 1) for setting in arguments.config)
    scenarios = [
        scenario
        for scenario in json.loads(arguments.scenarios.read_text())
        if scenario["name"].startswith(arguments.only)
    ]
    arguments.out.mkdir(parents=True, exist_ok=True)
    home = arguments.keep or Path(tempfile.mkdtemp(prefix="kaudit-recorder-"))
    broker = Broker(arguments.version, arguments.jars.resolve(), home / "broker", config)
    try:
        lines = list(Recorder(broker).record(scenarios))
    finally:
        broker.end()
        if arguments.keep is None:
            shutil.rmtree(home)
    line = {"broker_version": arguments.version, "config": config}
    write(lines, line, arguments.out, arguments.name)
    sys.stderr.write(f"{len(lines) + 1} attempts of {len(scenarios)} scenarios on {arguments.version}\n")


if __name__ == "__main__":
    main()
