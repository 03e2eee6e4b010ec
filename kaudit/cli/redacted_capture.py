"""Runs `kaudit capture --redact`: a copy of log directories, or of topics, that can be shown to anybody, and what it still says."""

import tempfile
from collections.abc import Iterator, Sequence

import msgspec

from kaudit.capture.directory import OccupiedError
from kaudit.capture.redacted_copy import RedactedAccount, redacted_copy
from kaudit.cli.capturing import captured_into
from kaudit.cli.commands.capture import CaptureOptions
from kaudit.cli.exits import ExitCode
from kaudit.cli.options import TextFormat
from kaudit.cli.redacting import redactor
from kaudit.cli.streams import write_stdout
from kaudit.errors import UnreadableInputError, UsageError
from kaudit.report.console import visible
from kaudit.report.text.formatting import plural
from kaudit.results.redaction import IN_CLEAR, Redactor
from kaudit.results.scope import size
from kaudit.source.layout import Unreadable
from kaudit.source.uri import KAFKA, Uri, UrlError

SCHEMA = "kaudit.redacted-copy/1"
_LIVE_ALONE = "topics of a cluster and directories are redacted into directories of their own"
_MOST_LISTED = 20


def run_redacted_capture(urls: Sequence[str], options: CaptureOptions) -> ExitCode:
    """Write a redacted copy of topics or paths; return the exit code.

    Raises UsageError for options and places that cannot be, UnreadableInputError where nothing was copied.
    """
    names = redactor(options.redact_secret, redact=options.redact, says=False)
    assert names is not None
    try:
        live = [url for url in urls if Uri.parse(url).scheme == KAFKA]
        if live and (len(live) < len(urls) or options.follow):
            raise UsageError(_LIVE_ALONE if not options.follow else "--redact copies what is there: leave --follow out")
        if live:
            with tempfile.TemporaryDirectory(prefix="kaudit-capture-") as whole:
                code = captured_into(live, options, whole)
                account = _copied([whole], options.output, names)
        else:
            code, account = ExitCode.OK, _copied(urls, options.output, names)
    except (OccupiedError, UrlError) as error:
        raise UsageError(str(error)) from None
    if options.output_format is TextFormat.JSON:
        document = {"schema": SCHEMA, "in_clear": IN_CLEAR, **msgspec.to_builtins(account)}
        write_stdout(msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n")
    elif not options.quiet:
        write_stdout("".join(f"{visible(line)}\n" for line in _summary(account, options.output)))
    if not account.counts.segments and not account.logs:
        raise UnreadableInputError("nothing was copied: no segment and no log was found")
    return ExitCode.UNREADABLE if account.unread else code


def _copied(inputs: Sequence[str], output: str, names: Redactor) -> RedactedAccount:
    try:
        return redacted_copy(inputs, output, names)
    except FileNotFoundError as error:
        raise UsageError(f"{error.filename}: there is no such file or directory") from None
    except OSError as error:
        raise UsageError(f"{error.filename or output}: {error.strerror or error}") from error


def _summary(account: RedactedAccount, output: str) -> Iterator[str]:
    """Yield what was written, what it says in clear, and what it lacks."""
    counts = account.counts
    yield (
        f"{output}: {plural(counts.segments, 'segment')} of {plural(counts.batches, 'batch', 'batches')}, {size(counts.bytes_written)} "
        f"(the originals: {size(counts.bytes_read)}), {plural(account.side_files, 'side file')}, {plural(account.logs, 'log')}"
    )
    yield f"in clear are {IN_CLEAR}"
    if counts.damaged:
        yield (
            f"damage stays damage: {plural(counts.damaged, 'range')} of {size(counts.damaged_bytes)}, of which headers of batches were "
            "copied and nothing else"
        )
    if counts.opaque:
        yield f"{plural(counts.opaque, 'batch', 'batches')} hold records that cannot be read: headers were copied, records filled with Z"
    for topic, number in account.undecoded.items():
        yield f"{topic}: {plural(number, 'record')} of no known form, hashed whole"
    yield from _listed("not copied", account.left_out)
    yield from _listed("could not be read", account.unread)


def _listed(what: str, entries: Sequence[Unreadable]) -> Iterator[str]:
    yield from (f"{what}: {entry.path}: {entry.reason}" for entry in entries[:_MOST_LISTED])
    if len(entries) > _MOST_LISTED:
        yield f"{what}: {len(entries) - _MOST_LISTED:,} more"
