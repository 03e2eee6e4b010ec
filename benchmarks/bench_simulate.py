"""How fast the model runs: simulated sends a second on one core, and seeds a second of a sweep.

`python -m benchmarks.bench_simulate`: a send is one record handed to a producer and settled. Three brokers, acks=all and
idempotence, batches as the Java client makes them by default; then the shipped scenario `anything` over many seeds, and the
schedules that a search draws of it: how many a second, and their time as a share of a seed's.
"""

import argparse
import time
from itertools import islice

from kaudit.simulate.output.truth import Truth
from kaudit.simulate.scenario.reading import parse_document, parse_scenario, scenario_text, shipped
from kaudit.simulate.search.candidates import Candidates
from kaudit.simulate.simulation import Simulation
from kaudit.simulate.sweep import sweep

WANTED_SENDS = 100_000
SCENARIO = """
[cluster]
version = "3.9.1"
brokers = {brokers}
[[topics]]
name = "orders"
partitions = 3
[[producers]]
name = "shop"
records = {records}
every_ms = 1
burst = 200
record_bytes = 60
config = {{ "linger.ms" = 5 }}
"""


def sends(records: int, brokers: int) -> tuple[float, float]:
    """Simulated sends a second of the run alone, and with the truth about each batch."""
    scenario = parse_scenario(SCENARIO.format(records=records, brokers=brokers), "benchmark")
    start = time.perf_counter()
    simulation = Simulation(scenario, 1, 0).run()
    ran = time.perf_counter()
    summary = Truth(simulation).summary()
    known = time.perf_counter()
    assert summary["acknowledged"] == summary["present"] == records
    return records / (ran - start), records / (known - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=400_000)
    parser.add_argument("--seeds", type=int, default=50)
    options = parser.parse_args()
    for brokers in (1, 3):
        alone, known = max(sends(options.records, brokers) for _ in range(2))
        print(
            f"{brokers} brokers: {alone:,.0f} simulated sends/s, {known:,.0f} with the truth (wanted {WANTED_SENDS:,})"
        )
    start = time.perf_counter()
    sweep(shipped("anything"), 0, options.seeds)
    each = (time.perf_counter() - start) / options.seeds
    print(f"sweep: {each * 1000:.1f} ms a seed, 1,000 seeds in {each * 1000:.0f} s")
    document = parse_document(scenario_text("anything"))
    start = time.perf_counter()
    for schedule in islice(Candidates(document, "anything", 0), options.seeds):
        schedule.play().summary()
    searched = (time.perf_counter() - start) / options.seeds
    print(f"search: {1 / searched:,.0f} schedules/s, {searched / each:.2f} of a seed's time")


if __name__ == "__main__":
    main()
