"""What a check knows about the partition and the audit, apart from the evidence."""

import functools
from bisect import bisect_left
from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from kaudit.broker.releases.profile import VersionRange
from kaudit.checks.command_line import CommandLine, quote
from kaudit.model.audit_clock import AppendTime, AuditClock, Idleness
from kaudit.model.coordinator import CoordinatorView
from kaudit.model.json_record import rfc3339
from kaudit.model.observation import Observation
from kaudit.source.layout import FetchedRange
from kaudit.source.uri import Uri


class Context(Struct, frozen=True, kw_only=True, dict=True):
    """One partition replica and its surroundings; there is no topic where a finding is about no partition.

    `segments` are segment file names by index, `paths` what opens them, `segment_sizes` their bytes (none where texts stand
    for them), `relative` their directory relative to its input (empty for lone files).
    """

    versions: VersionRange
    coordinator: CoordinatorView
    clock: AuditClock
    topic: str | None = None
    partition: int | None = None
    replica: str | None = None
    log_dir: str | None = None
    directory: str = ""
    relative: str = ""
    segments: Sequence[str] = ()
    paths: Sequence[str] = ()
    side_files: Sequence[str] = ()
    """Names of the files beside the segments."""
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    """The paths of those segments and files that lie in remote storage and not in the partition's directory, by name."""
    segment_sizes: Sequence[int] = ()
    append_times: Mapping[int, AppendTime] = field(default_factory=dict)
    """By offset, of batches before which their producer may have been forgotten."""
    compacted: bool = False
    log_end_offset: int | None = None
    lone_files: Sequence[str] = ()
    """The files that were given where the directory was not: segments, or texts that show them."""
    texts: bool = False
    """Texts stand in place of the segments."""
    places_known: bool = True
    """Each batch's position in its segment is known: no line of a text was cut before it."""
    fetched: FetchedRange | None = None
    """Brokers sent the batches: they have offsets, but neither files nor positions."""
    replicas: Mapping[str, "Context"] = field(default_factory=dict)
    """Where replicas of the partition are compared: the context of each by its name."""
    asked: CommandLine = CommandLine()
    """The command of the audit."""

    @property
    def name(self) -> str:
        """`topic-partition` as brokers print it."""
        return f"{self.topic}-{self.partition}"

    def idleness(self, observation: Observation) -> Idleness:
        """For how long the producer was idle when a batch of it was appended; negative where a time is missing."""
        state, batch = observation.remembered, observation.batch
        if state is None or batch is None or state.last_timestamp < 0:
            return Idleness(-1, -1)
        appended = self.append_times.get(observation.offset, AppendTime(observation.offset))
        return appended.idleness(state.last_timestamp, batch.max_timestamp)

    def at_byte(self, position: int) -> str:
        """Where in its segment something lies, within a sentence; nothing for batches whose place is not known."""
        return "" if self.fetched is not None or not self.places_known else f", at byte {position},"

    def file(self, segment: int) -> str:
        """The segment's path relative to its input."""
        return self.side_file(self.segments[segment])

    def side_file(self, name: str) -> str:
        """The path, relative to its input, of a file in the partition's directory; of one in remote storage its whole path."""
        return self.elsewhere.get(name) or _below(self.relative, name)

    def segment_before(self, offset: int) -> int | None:
        """The index of the last segment that begins before an offset, None if there is none."""
        before = bisect_left(self.segments, f"{offset:020d}")  # names of segments ascend
        return before - 1 if before else None

    def log_dir_file(self, name: str) -> str:
        """The path, relative to its input, of a file in the log directory, beside the partition's own."""
        directory = self.relative.rpartition("/")[0]
        return f"{directory}/{name}" if directory else name

    def timeline_command(self, *producer_ids: int, by_clock: bool = False) -> str:
        """The command that shows the history of these producers in the partition, and what was found.

        `by_clock`: what was found depends on the time, which another choice of partitions would change.
        """
        begin, end = self._timeline
        ids = "".join(f" --producer-id {producer_id}" for producer_id in producer_ids)
        now = rfc3339(self.clock.now_ms) if by_clock and "--now" not in self.asked.options else None
        return f"{begin}{ids}{'' if now is None else f' --now {now}'}{end}"

    @functools.cached_property
    def _timeline(self) -> tuple[str, str]:
        """Beginning and end of the command for a producer: the many findings of a partition share them."""
        own, places = self._inputs
        begin = self.asked.command("timeline", own, places, self._of_this)
        end = self.asked.quoted_options
        return begin.removesuffix(end), end

    def timeline_everywhere(self, producer_id: int) -> str:
        """The command that shows the history of a producer in all partitions, where what was found takes more than one."""
        return self._over_inputs("timeline", "--producer-id", str(producer_id), of_partition=False)

    def transactions_command(self, group: str) -> str:
        """The command that lists the transactions of the producers that commit offsets of a group."""
        return self._over_inputs("transactions", "--group", group, of_partition=False)

    def compare_records_command(self) -> Sequence[str]:
        """The command that compares keys and values too, and so shows repeated records; none where it was given already."""
        return self._compare_records

    @functools.cached_property
    def _compare_records(self) -> Sequence[str]:
        return () if "--depth" in self.asked.options else (self._over_inputs("scan", "--depth", "records"),)

    def count_repeats_command(self) -> str:
        """The command that counts the repeated records of the partition, however they were batched."""
        return self._on_files("dedup")

    def producers_command(self, *options: str) -> str:
        """The command that lists the producer ids of the partition."""
        return self._over_inputs("producers", *options)

    def _over_inputs(self, name: str, *options: str, of_partition: bool = True) -> str:
        own, places = self._inputs
        return self.asked.command(name, own, places, (*(self._of_this if of_partition else ()), *options))

    @property
    def _of_this(self) -> Sequence[str]:
        if not self.asked.named:
            return ()
        return "--topic", self.topic or "", "--partition", str(self.partition)

    @property
    def _inputs(self) -> tuple[Sequence[str], Sequence[str]]:
        return self.lone_files or [self.directory], self.lone_files or [self.log_dir or self.directory]

    def inspect_command(self, *options: str) -> str:
        """The command that shows files or records of the partition's directory, or of the files that were given alone."""
        return self._on_files("inspect", *options)

    def _on_files(self, name: str, *options: str) -> str:
        config = self.fetched.command_config if self.fetched is not None else None
        connect = [] if config is None else ["--command-config", quote(config)]
        return " ".join(["kaudit", name, *options, *connect, *map(quote, self.lone_files or [self.directory])])

    def inspect_around(self, offset: int) -> str:
        """The command that shows the records around an offset."""
        number = bisect_left(self.segments, f"{offset + 1:020d}") - 1 if self.elsewhere else -1
        if number >= 0 and (place := self.elsewhere.get(self.segments[number])) is not None:
            return f"kaudit inspect --records --around {offset} {quote(place)}"
        return self.inspect_command("--records", "--around", str(offset))

    @property
    def bootstrap_arguments(self) -> str:
        """The option with which Kafka's tools connect to the partition's cluster."""
        if self.fetched is None:
            return "--bootstrap-server HOST:9092"
        config = self.fetched.command_config
        connect = f"--bootstrap-server {quote(self.fetched.servers)}"
        return connect if config is None else f"{connect} --command-config {quote(config)}"

    def inspect_file(self, name: str) -> str:
        """The command that shows a file of the partition's directory; the list of its files if there is none."""
        place = self.elsewhere.get(name, f"{self.directory}/{name}")
        return f"kaudit inspect {quote(place)}" if name in self.side_files else self.inspect_command()

    def inspect_log_dir_file(self, name: str) -> str:
        """The command that shows a file of the log directory, beside the partition's own."""
        return f"kaudit inspect {quote(f'{self.log_dir}/{name}')}"

    def dump_command(self, segment: int, position: int) -> str:
        """The command that shows a segment with Kafka's own tool, or with kaudit where that cannot open the file."""
        command = None if self.texts else _dump_command(self.paths[segment])
        return self.header_command(segment, position) if command is None else command

    def header_command(self, segment: int, position: int) -> str:
        """The command that shows the header of the batch at a position of a segment, field by field."""
        if self.fetched is not None:
            return self.inspect_command("--around", str(self.fetched.offset(position)))
        at = () if self.texts else ("--at", str(position))
        return " ".join(["kaudit inspect", *at, quote(self.paths[segment])])


@functools.lru_cache(maxsize=64)
def _below(directory: str, name: str) -> str:
    """Return the path; the many findings of one segment share it."""
    return f"{directory}/{name}" if directory else name


@functools.lru_cache(maxsize=64)
def _dump_command(path: str) -> str | None:
    """Return the command that shows a segment with Kafka's own tool, None where that cannot open it; shared as well."""
    uri = Uri.parse(path)
    return f"kafka-dump-log --files {quote(path)}" if uri.is_local and uri.within is None else None
