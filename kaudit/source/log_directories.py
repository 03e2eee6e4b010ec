"""Reads the files of log directories: checkpoints, meta.properties, a capture's account."""

from collections.abc import Collection, Mapping

import msgspec
from msgspec import Struct, field

from kaudit.formats.errors import WireError
from kaudit.formats.sidefiles.checkpoints import parse_meta_properties, parse_offset_checkpoint
from kaudit.source.file_kinds import (
    BOOTSTRAP_CHECKPOINT,
    CAPTURE_ACCOUNT,
    CLEAN_SHUTDOWN,
    CLEANER_CHECKPOINT,
    LOG_START_CHECKPOINT,
    META_PROPERTIES,
    OFFSET_CHECKPOINT_NAMES,
    REMOTE_INDEX_CACHE,
)
from kaudit.source.filesystem import FileStatus
from kaudit.source.layout import LogDirectoryIdentity, SegmentFile, Unreadable
from kaudit.source.listing import existing_files, side_file
from kaudit.source.uri import Uri


class LogDirectory(Struct):
    """Content of the files of one log directory; offsets by topic and partition."""

    log_start: dict[tuple[str, int], int] = field(default_factory=dict)
    first_dirty: dict[tuple[str, int], int] = field(default_factory=dict)
    identity: LogDirectoryIdentity | None = None
    has_checkpoints: bool = False
    checkpoints: tuple[SegmentFile, ...] = ()
    is_tiered: bool | None = None
    """The broker moves segments to remote storage."""
    is_captured: bool = False
    """`kaudit capture` wrote it: its segments are not the broker's."""
    is_stopped: bool = False
    """The broker had been shut down, and not been started again, when it was copied."""


class LogDirectories(Struct):
    """Reads the files of each log directory once. What cannot be read is added to `unreadable` or `skipped`."""

    unreadable: list[Unreadable]
    skipped: list[Unreadable]
    meta: list[dict[str, str]] = field(default_factory=list)
    bootstrap: bool = False
    features: dict[str, int] = field(default_factory=dict)
    _known: dict[Uri, LogDirectory] = field(default_factory=dict)

    def of(self, directory: Uri) -> LogDirectory:
        """Return the content of a log directory's files."""
        known = self._known.get(directory)
        if known is None:
            known = self._known[directory] = LogDirectory()
            for file, offsets in ((LOG_START_CHECKPOINT, known.log_start), (CLEANER_CHECKPOINT, known.first_dirty)):
                data = side_file(directory / file, self.unreadable)
                if data is None:
                    continue
                known.has_checkpoints = True
                offsets.update({(row.topic, row.partition): row.offset for row in parse_offset_checkpoint(data).rows})
            named = [
                (directory / name, FileStatus(name, is_directory=False)) for name in sorted(OFFSET_CHECKPOINT_NAMES)
            ]
            known.checkpoints = tuple(existing_files(named, self.unreadable))
            known.identity = self._take_meta(directory)
            self.bootstrap = self.bootstrap or self._holds(directory, BOOTSTRAP_CHECKPOINT)
            known.is_captured = self._holds(directory, CAPTURE_ACCOUNT)
            known.is_tiered = self._holds(directory, REMOTE_INDEX_CACHE) or None
            known.is_stopped = self._holds(directory, CLEAN_SHUTDOWN)
        return known

    def _holds(self, directory: Uri, name: str) -> bool:
        """Whether a file or directory of this name lies in the directory."""
        asked = (directory / name, FileStatus(name, is_directory=False))
        return bool([*existing_files([asked], self.unreadable)])

    def take(self, directory: Uri, held: Collection[str]) -> None:
        """Note what a directory's own files say about the broker and the cluster; `held` are their names."""
        if META_PROPERTIES in held:
            self._take_meta(directory)
        if CAPTURE_ACCOUNT in held:
            self.features |= _captured_features(side_file(directory / CAPTURE_ACCOUNT, self.unreadable) or b"")
        self.bootstrap = self.bootstrap or BOOTSTRAP_CHECKPOINT in held

    def _take_meta(self, directory: Uri) -> LogDirectoryIdentity | None:
        """Note what meta.properties says; return whose log directory that makes it."""
        data = side_file(directory / META_PROPERTIES, self.unreadable)
        if data is None:
            return None
        try:
            properties = parse_meta_properties(data)
        except WireError as error:
            refused = Unreadable(str(directory / META_PROPERTIES), str(error))
            if refused not in self.skipped:  # read for the directory and for its partitions
                self.skipped.append(refused)
            return None
        ids = {
            "node.id": properties.node_id,
            "directory.id": properties.directory_id,
            "cluster.id": properties.cluster_id,
        }
        known = {key: str(value) for key, value in ids.items() if value is not None}
        entry = {"version": str(properties.version), "path": str(directory), **known}
        if entry not in self.meta:
            self.meta.append(entry)
        if properties.node_id is None:
            return None
        return LogDirectoryIdentity(properties.node_id, properties.cluster_id, properties.directory_id)


class _Origin(Struct):
    features: Mapping[str, int] = field(default_factory=dict)


class _Account(Struct):
    origin: _Origin = field(default_factory=_Origin)


def _captured_features(data: bytes) -> Mapping[str, int]:
    """Return the levels of the cluster's finalized features (KIP-584) by name; none where the account does not give them."""
    try:
        return msgspec.json.decode(data, type=_Account).origin.features
    except (msgspec.MsgspecError, RecursionError):
        return {}
