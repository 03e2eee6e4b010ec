"""Attempts a second through `kaudit replay --output-format jsonl`, in process and as a whole command with its start.

Usage: uv run python benchmarks/bench_replay.py [attempts [attempts of the command]]. Three kinds: fields only, bytes
(records_hex), transactions; beside them the time Python needs to parse the same JSON. In process CPU time, best of five;
the command's CPU and wall time, best of three, answers written to a file. On a busy machine: chrt -f 10 taskset -c 1.
"""

import io
import json
import struct
import sys
import tempfile
import time
from pathlib import Path

import crc32c

from benchmarks.processes import Cost, Runner
from kaudit.broker.broker import Broker
from kaudit.broker.releases.profile import profile_for
from kaudit.replay.session import Session
from kaudit.report.replay_formats import formatted

PRODUCERS = 1000
START = 1_795_241_983_883


def fields(number):
    producer = number % PRODUCERS
    return {
        "index": number, "topic": "orders", "partition": 0, "op": "produce", "producer_id": producer,
        "producer_epoch": 0, "base_sequence": number // PRODUCERS, "record_count": 1, "is_transactional": False,
        "transactional_id": None, "acks": -1, "api_version": 8, "timestamp": START + number, "at": START + number,
    }  # fmt: skip


def with_bytes(number):
    attempt = fields(number)
    record = b"\x1e\x00\x00\x00\x01\x12value-123\x00"
    covered = struct.pack(
        ">hiqqqhii", 0, 0, attempt["timestamp"], attempt["timestamp"], attempt["producer_id"], 0,
        attempt["base_sequence"], 1,
    ) + record  # fmt: skip
    header = struct.pack(">qiibI", 0, 9 + len(covered), -1, 2, crc32c.crc32c(covered))
    return attempt | {"records_hex": (header + covered).hex()}


def transactions(number):
    """Each producer's transactions of eight batches: add, eight, commit."""
    step, rest = number % 10, number // 10
    producer, generation = rest % PRODUCERS, rest // PRODUCERS
    owner = {"transactional_id": f"tx-{producer}", "producer_id": producer, "producer_epoch": 0}
    base = {"index": number, "topic": "orders", "partition": 0, "at": START + number}
    if step == 0 and generation == 0:
        init = {"op": "init_producer_id", "transactional_id": f"tx-{producer}", "timeout_ms": 600_000}
        return base | init | {"granted_producer_id": producer}
    if step <= 1:
        return base | owner | {"op": "add_partitions"}
    if step == 9:
        return base | owner | {"op": "end_txn", "commit": True}
    sequence = generation * 7 + step - 2
    return fields(number) | owner | {"base_sequence": sequence, "is_transactional": True}


def answer_lines(lines, profile, out):
    out.writelines(piece for (piece,) in formatted(Session(lines, Broker(profile)), ["jsonl"]))


def cpu_seconds(work):
    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def encoded(kind, count):
    return [json.dumps(kind(number), separators=(",", ":")).encode() + b"\n" for number in range(count)]


def in_process(kind, count):
    profile = profile_for("3.9.1")
    lines = encoded(kind, count)
    answered = io.StringIO()
    answer_lines(lines, profile, answered)
    outcomes = [json.loads(line)["outcome"] for line in answered.getvalue().splitlines()]
    assert "rejected" not in outcomes, outcomes.index("rejected")
    parse = cpu_seconds(lambda: [json.loads(line) for line in lines])
    replay = cpu_seconds(lambda: answer_lines(lines, profile, io.StringIO()))
    print(
        f"{kind.__name__:13} {count / replay:10,.0f} attempts/s   parsing the JSON alone {count / parse:10,.0f}/s"
        f"   ratio {replay / parse:.2f}"
    )


def whole_command(kind, count):
    with tempfile.TemporaryDirectory() as directory:
        attempts, answers = Path(directory, "attempts.jsonl"), Path(directory, "answers.jsonl")
        with attempts.open("wb") as file:
            file.writelines(encoded(kind, count))
        runner, cost = Runner([], Path(directory)), Cost()
        asked = ["--broker-version", "3.9.1", "--output-format", "jsonl", "-o", str(answers), str(attempts)]
        for _ in range(3):
            runner.run([sys.executable, "-m", "kaudit", "replay", *asked], cost)
        with answers.open("rb") as file:
            assert sum(1 for _ in file) == count
    print(
        f"{kind.__name__:13} {count / cost.wall:10,.0f} attempts/s   {count:,} in {cost.wall:.2f} s, "
        f"{cost.cpu:.2f} s of CPU, {cost.memory:.0f} MB"
    )


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    of_command = int(sys.argv[2]) if len(sys.argv) > 2 else 500_000
    kinds = (fields, with_bytes, transactions)
    print("in process")
    for kind in kinds:
        in_process(kind, count)
    print("kaudit replay, with its start")
    for kind in kinds:
        whole_command(kind, of_command)


if __name__ == "__main__":
    main()
