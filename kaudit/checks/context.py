"""What a check may look at beside the fact it reports."""

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from kaudit.broker.releases.profile import VersionRange
from kaudit.model.coordinator import CoordinatorView


class Context(Struct, frozen=True, kw_only=True):
    """One partition replica and what is known of its surroundings; what is about no partition has no topic.

    `segments` are segment file names by index, `segment_sizes` their bytes (none where `texts` stand for them), `relative`
    their directory relative to its input (empty for lone files).
    """

    versions: VersionRange
    coordinator: CoordinatorView
    now_ms: int
    topic: str | None = None
    partition: int | None = None
    replica: str | None = None
    log_dir: str | None = None
    directory: str = ""
    relative: str = ""
    segments: Sequence[str] = ()
    segment_sizes: Sequence[int] = ()
    compacted: bool = False
    log_end_offset: int | None = None
    texts: Sequence[str] = ()
    """Texts that stand in place of the segments, if any do."""
    replicas: Mapping[str, "Context"] = field(default_factory=dict)
    """Where replicas of the partition are compared: the context of each by its name."""

    @property
    def name(self) -> str:
        """`topic-partition` as brokers print it."""
        return f"{self.topic}-{self.partition}"

    def file(self, segment: int) -> str:
        """The segment's path relative to its input."""
        return self.side_file(self.segments[segment])

    def side_file(self, name: str) -> str:
        """The path, relative to its input, of a file in the partition's directory."""
        return f"{self.relative}/{name}" if self.relative else name

    def log_dir_file(self, name: str) -> str:
        """The path, relative to its input, of a file in the log directory, beside the partition's own."""
        directory = self.relative.rpartition("/")[0]
        return f"{directory}/{name}" if directory else name

    def timeline_command(self, producer_id: int) -> str:
        """The command that shows this producer's history."""
        if self.texts:
            chosen = f"--topic {quote(self.topic or '')} --partition {self.partition}"
            return f"kaudit timeline {' '.join(map(quote, self.texts))} {chosen} --producer-id {producer_id}"
        return f"kaudit timeline {quote(self.directory)} --producer-id {producer_id}"

    def inspect_command(self, file: str) -> str:
        """The command that shows a file of the partition's directory, or a checkpoint beside that directory."""
        return f"kaudit inspect {quote(f'{self.directory}/{file}')}"


def quote(path: str) -> str:
    """Quote a path for a shell where it needs it."""
    import shlex  # noqa: PLC0415 - only a finding quotes

    return shlex.quote(path)
