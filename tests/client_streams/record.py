"""Record what real Java producers send: python -m tests.client_streams.record [VERSION ...] [--scenario NAME ...]."""

import argparse
import contextlib
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

from tests.client_streams.java_client import JavaClients
from tests.client_streams.recordings import keep
from tests.client_streams.scenario import scenarios
from tests.live_brokers.jars import jars_of, logging_jars_of

CLIENTS = ("0.11.0.3", "1.1.1", "2.0.1", "2.4.1", "2.6.3", "2.8.2", "3.9.2", "4.4.0")
"""One release of each generation, and the newest."""


def main(arguments: list[str] | None = None) -> None:
    """Play scenarios with clients from Maven Central, and write the recordings."""
    parser = argparse.ArgumentParser(prog="python -m tests.client_streams.record", description=__doc__)
    parser.add_argument("versions", nargs="*", default=CLIENTS, metavar="VERSION", help="releases of kafka-clients")
    parser.add_argument("--scenario", nargs="*", choices=list(scenarios()), help="only these")
    chosen = parser.parse_args(arguments)
    played = {
        name: scenario for name, scenario in scenarios().items() if not chosen.scenario or name in chosen.scenario
    }
    for version in chosen.versions:  # before the threads, which would all fetch the same
        jars_of(version)
        logging_jars_of(version)
    lock = Lock()

    def record(version: str) -> None:
        with tempfile.TemporaryDirectory() as folder, contextlib.closing(JavaClients(version, Path(folder))) as clients:
            for name, scenario in played.items():
                if scenario.suits(version):
                    stream = clients.played(scenario)
                    with lock:
                        keep(name, version, stream)
                        sys.stderr.write(f"{version} {name}\n")

    with ThreadPoolExecutor(len(chosen.versions)) as pool:
        for _ in pool.map(record, chosen.versions):
            pass


if __name__ == "__main__":
    main()
