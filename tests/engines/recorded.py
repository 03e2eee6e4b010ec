"""The names of what was recorded, for tests that read all of it."""

from pathlib import Path

CAPTURES = (
    "clients-mix", "cross-session", "failover-acks1", "legacy-formats", "retention-compaction-2.8.2", "retry-dup",
    "torn-writes", "txn-mix-2.8.2", "unknown-pid-2.0.1", "zk-pid-blocks",
)  # fmt: skip
ORACLES = ("1.1.1", "2.0.1", "2.8.2", "3.9.1", "4.2.0")
SAMPLES = sorted(path.name for path in (Path(__file__).parents[2] / "samples").iterdir() if path.is_dir())
