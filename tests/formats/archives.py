"""All recorded evidence, for tests that want every file of a kind."""

CAPTURES = (
    "clients-mix",
    "cross-session",
    "failover-acks1",
    "legacy-formats",
    "retention-compaction-2.8.2",
    "retry-dup",
    "torn-writes",
    "txn-mix-2.8.2",
    "unknown-pid-2.0.1",
    "zk-pid-blocks",
)
ORACLES = ("1.1.1", "2.0.1", "2.8.2", "3.9.1", "4.2.0")


def roots(evidence):
    """Directories of every capture, and of every oracle's logs."""
    yield from map(evidence.capture, CAPTURES)
    for version in ORACLES:
        yield evidence.oracle(version, "logdir")
    yield evidence.oracle("3.9.1", "logdir-failover")


def files(evidence, pattern, without=()):
    """Every real file that matches, but for those below a directory named in `without` (labelled damage)."""
    for root in roots(evidence):
        for path in sorted(root.rglob(pattern)):
            if path.is_file() and not set(path.parts) & set(without):
                yield path
