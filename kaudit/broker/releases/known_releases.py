"""The releases of Apache Kafka since producer ids exist, oldest first."""

from kaudit.broker.releases.version import Version

_LINES: tuple[tuple[str, range], ...] = (
    ("0.11.0", range(4)),
    ("1.0", range(3)),
    ("1.1", range(2)),
    ("2.0", range(2)),
    ("2.1", range(2)),
    ("2.2", range(3)),
    ("2.3", range(2)),
    ("2.4", range(2)),
    ("2.5", range(2)),
    ("2.6", range(4)),
    ("2.7", range(3)),
    ("2.8", range(3)),
    ("3.0", range(3)),
    ("3.1", range(3)),
    ("3.2", range(4)),
    ("3.3", range(3)),
    ("3.4", range(2)),
    ("3.5", range(3)),
    ("3.6", range(3)),
    ("3.7", range(3)),
    ("3.8", range(2)),
    ("3.9", range(3)),
    ("4.0", range(3)),
    ("4.1", range(3)),
    ("4.2", range(3)),
    ("4.3", range(2)),
    ("4.4", range(1)),
)

RELEASES: tuple[Version, ...] = tuple(Version.parse(f"{line}.{patch}") for line, patches in _LINES for patch in patches)
