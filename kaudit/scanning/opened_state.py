"""A state as a whole: where it may lie, its format, and which of its partitions are gone."""

import json
import os
from collections.abc import Iterator
from io import BytesIO

from msgspec import Struct, field
from msgspec.structs import replace

from kaudit.errors import UsageError
from kaudit.model.result import StateUse
from kaudit.partition.job import Job
from kaudit.reading.chunk_plan import OpenSource
from kaudit.reading.saved_partition import DamagedStateError, Settings
from kaudit.reading.state_files import PARTITIONS, directory_of, read_index
from kaudit.reading.struct_codec import FORMAT
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.plan import held_several_times
from kaudit.scanning.state_matching import match_partition
from kaudit.source.filesystem import WritableFileSystem
from kaudit.source.layout import Layout
from kaudit.source.schemes import writable_filesystem
from kaudit.source.uri import KAFKA, Uri, UrlError

_MANIFEST = "kaudit-state.json"
_SCHEMA = f"kaudit.state/{FORMAT}"
_MANIFEST_BYTES = 1 << 16


class OpenedState(Struct, frozen=True):
    """A state that may be read and written. Its partitions know their settings themselves: `use` has what the whole says."""

    uri: Uri
    settings: Settings
    use: StateUse = field(default_factory=StateUse)

    def planned(self, job: Job) -> Job:
        """Return the job so that it reads what this state keeps: digests too, once an audit was asked for them."""
        if not self.settings.digests:
            return job
        return replace(job, plan=[replace(spec, digests=spec.file.text is None) for spec in job.plan])

    def matched(self, job: Job, open_source: OpenSource, *, resumes: bool) -> Job:
        """Return the job, planned, with what holds of what is saved; what texts and brokers show is never saved.

        `resumes`: nobody needs the rows but the audit itself.
        """
        job = self.planned(job)
        if any(spec.file.text is not None or spec.file.fetched is not None for spec in job.plan):
            return job
        own = directory_of(self.uri, job.directory.directory)
        saved = match_partition(own, self.settings, job.directory, job.plan, open_source, resumes=resumes)
        return replace(job, saved=saved)

    def sweep(self, layout: Layout) -> None:
        """Remove what is saved of partitions that were deleted: not among the inputs, nor where they lay."""
        known = {directory_of(self.uri, entry.directory).last for entry in layout.everything}
        store = writable_filesystem(self.uri)
        try:
            for entry in store.entries(self.uri / PARTITIONS):
                place = self.uri / PARTITIONS / entry.name
                if entry.name not in known and _is_deleted(place):
                    store.remove(place)
        except OSError:
            return  # nothing is saved, or it cannot be listed: what is left of it is of no harm


def _is_deleted(place: Uri) -> bool:
    try:
        found = read_index(place)
    except DamagedStateError:
        return True
    if found is None:
        return False
    directory = Uri.parse(found[0].directory.decode(errors="surrogateescape")).absolute()
    try:
        store = writable_filesystem(directory)
        store.status(directory.parent)  # a log directory that is not mounted has not lost its partitions
        store.status(directory)
    except FileNotFoundError:
        return not _is_missing(directory.parent)
    except (OSError, UrlError):
        return False
    return False


def _is_missing(directory: Uri) -> bool:
    try:
        writable_filesystem(directory).status(directory)
    except OSError:
        return True
    return False


def open_state(state: str, options: ScanOptions, layout: Layout) -> OpenedState:
    """Return the state at a path or URL; a new one is begun.

    Raises:
        UsageError: it lies in what is audited, cannot be written, or holds something else.

    """
    try:
        uri = Uri.parse(state).absolute()
        store = writable_filesystem(uri)
    except UrlError as error:
        raise UsageError(f"--state {error}") from error
    _refuse_inputs(state, uri, options, layout)
    settings = Settings(options.depth.value, options.digests or bool(held_several_times(layout)))
    try:
        settings, notice = _settled(store, uri, settings)
    except OSError as error:
        raise UsageError(f"--state {state}: {error.strerror or error}") from error
    return OpenedState(uri, settings, StateUse(notice=notice))


def _refuse_inputs(state: str, uri: Uri, options: ScanOptions, layout: Layout) -> None:
    for path in options.paths:
        if Uri.parse(path).scheme == KAFKA:
            raise UsageError(
                f"--state is for files: {path} is read from brokers (kaudit watch goes on with what is new)"
            )
    place = _resolved(uri)
    for path in dict.fromkeys([*options.paths, *(entry.log_dir for entry in layout.everything)]):
        if place.lies_in(_resolved(Uri.parse(path))):
            raise UsageError(f"--state {state}: lies in what is audited ({path}), where kaudit never writes")


def _resolved(uri: Uri) -> Uri:
    """Return the place itself, with links and other names resolved."""
    if uri.is_local:
        return Uri.parse(os.path.realpath(uri.path))
    return replace(uri, scheme=uri.scheme.replace("s3a", "s3"))


def _settled(store: WritableFileSystem, uri: Uri, settings: Settings) -> tuple[Settings, str | None]:
    """Make sure that the manifest names these settings, and digests if it did; return them, and why what was there is of no use.

    Raises:
        UsageError: the directory holds something else.
        OSError: it cannot be read or written.

    """
    notice = None
    try:
        found = store.read_start(uri / _MANIFEST, _MANIFEST_BYTES)
    except FileNotFoundError:
        # one that is being written, or was when its writer was killed, has a longer name
        if not all(name.startswith(_MANIFEST) for name in _names(store, uri)):
            raise UsageError(f"--state {uri}: holds something else than a state of kaudit") from None
    else:
        with_digests = replace(settings, digests=True)
        if found in (_written(settings), _written(with_digests)):
            return (settings if found == _written(settings) else with_digests), None
        notice = _difference(found, settings)
    store.make_directory(uri)
    store.put(uri / _MANIFEST, BytesIO(_written(settings)))
    return settings, notice


def _written(settings: Settings) -> bytes:
    manifest: dict[str, object] = {"schema": _SCHEMA, "depth": settings.depth}
    if settings.digests:
        manifest["digests"] = True
    return json.dumps(manifest, sort_keys=True).encode()


def _names(store: WritableFileSystem, uri: Uri) -> Iterator[str]:
    try:
        yield from (entry.name for entry in store.entries(uri))
    except FileNotFoundError:
        return


def _difference(found: bytes, settings: Settings) -> str:
    try:
        manifest = json.loads(found)
        schema, depth = manifest["schema"], manifest["depth"]
    except (ValueError, KeyError, TypeError):
        return "its manifest is damaged"
    if schema != _SCHEMA:
        return f"its format is {schema}, this kaudit reads {_SCHEMA}"
    if depth != settings.depth:
        return f"it is of --depth {depth}, this is --depth {settings.depth}"
    return "it is without digests of the batches, which several copies of a partition are compared by"
