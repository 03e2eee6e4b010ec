"""How replicas and records are compared. Each option is declared here once: command line and Spark's data sources derive it."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from msgspec import Struct

from kaudit.errors import UsageError
from kaudit.scanning.options import IsolationLevel
from kaudit.source.option import Option, parse_duration


def _parse_window(text: str, option: str) -> int | None:
    width = parse_duration(text, option)
    if width == 0:
        raise UsageError(f"{option} {text}: a window has a length")
    return width


class ReplicaOptions(Struct, frozen=True):
    """How replicas are called: `names` are texts NAME=DIR."""

    names: Annotated[
        Sequence[str],
        Option(
            "name", "What to call a replica; default: the shortest path suffix that is unique. Repeatable.", "NAME=DIR"
        ),
    ] = ()


class RecordOptions(Struct, frozen=True):
    """By what records are compared, and which of them."""

    heading: ClassVar[str] = "Comparison by records"

    identity: Annotated[
        str | None,
        Option(
            "identity",
            "What makes two records the same: key, value, headers, timestamp, header:NAME, key:PATH, value:PATH, joined by commas; "
            "or debezium, outbox, cloudevents. Default of diff: the first four; of dedup: key, value and headers, or what the first "
            "records of a topic plainly have.",
            "PARTS",
        ),
    ] = None
    schemas: Annotated[
        Sequence[str],
        Option(
            "schema",
            "Read values for value:PATH by this schema (.avsc, .proto, .json), or those with this schema id. Repeatable.",
            "ID=FILE",
        ),
    ] = ()
    key_schemas: Annotated[
        Sequence[str],
        Option("key-schema", "The same for keys and key:PATH. Repeatable.", "ID=FILE"),
    ] = ()
    isolation_level: Annotated[
        IsolationLevel,
        Option(
            "isolation-level",
            "The level of the consumer: read_uncommitted reads aborted records too, read_committed does not.",
            "LEVEL",
        ),
    ] = IsolationLevel.READ_UNCOMMITTED
    temporary_directory: Annotated[
        str | None,
        Option(
            "temporary-directory",
            "For temporary files of about 32 bytes a record; default: TMPDIR.",
            "DIR",
            is_path=True,
        ),
    ] = None

    @property
    def read_committed(self) -> bool:
        """Whether records of aborted transactions are left out."""
        return self.isolation_level is IsolationLevel.READ_COMMITTED


class LedgerOptions(RecordOptions, frozen=True):
    """How the records of two topics are compared: `maps` are texts REGEX=NAME, windows have `windows_ms` of event time."""

    maps: Annotated[
        Sequence[str],
        Option(
            "map",
            "The copies of topics that match are called so; default: CLUSTER.topic, or the same name. Repeatable.",
            "REGEX=NAME",
        ),
    ] = ()
    windows_ms: Annotated[
        int | None,
        Option(
            "windows",
            "First compare counts and digests of the records of each window of event time, such as 10m, and then only the records of "
            "windows that differ.",
            "DURATION",
            parse=_parse_window,
        ),
    ] = None
    translate_groups: Annotated[
        Sequence[str],
        Option(
            "translate-group",
            "Write to --offsets-file where this group continues in the target. Repeatable.",
            "GROUP",
        ),
    ] = ()
    target_remote: Annotated[
        str | None,
        Option(
            "target-remote",
            "Where the target's brokers have copied segments to, as --remote says it of the source.",
            "LOCATION",
            is_path=True,
        ),
    ] = None
    target_command_config: Annotated[
        str | None,
        Option(
            "target-command-config",
            "How to connect to the target, as --command-config says it of the source; default: the same.",
            "FILE",
            is_path=True,
        ),
    ] = None
