"""Runs `kaudit replay`: a broker answers attempts; its answers go to one or more outputs."""

import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from msgspec import Struct
from msgspec.structs import replace

from kaudit.broker.broker import Broker
from kaudit.broker.releases.profile import UnknownVersionError, profile_for
from kaudit.cli.commands.replay import FirstState, Memory, ReplayOptions, ReplayOutput
from kaudit.cli.exits import ExitCode
from kaudit.cli.streams import Output, stdout_console, whole_file, write_pieces
from kaudit.cli.targets import output_file
from kaudit.errors import UsageError
from kaudit.model.limits import ATTEMPT_LINE_BYTES
from kaudit.replay.session import AttemptError, Session
from kaudit.report.console import ColorChoice, visible
from kaudit.report.replay_formats import FORMATS, formatted
from kaudit.report.text.answers import ROW_INDENT
from kaudit.report.text.broker_rules import list_profiles as profiles
from kaudit.report.text.explain_attempt import NoSuchAttemptError
from kaudit.report.text.explain_attempt import explain as explain_attempt
from kaudit.report.text.formatting import fold

if TYPE_CHECKING:  # numpy comes with it, or few outputs need it
    from kaudit.broker.recorded_log import RecordedLog
    from kaudit.results.redaction import Redactor

_STDIN = "-"
_IN_MEMORY = 16 << 20
"""Bytes of answers kept in memory before they wait in a temporary file."""
_TEXT_INDENT = 2


def run_replay(attempts: str | None, asked: ReplayOptions, output: ReplayOutput, begin: FirstState) -> ExitCode:
    """Answer the attempts, or explain what was asked about; return the exit code.

    Raises UsageError for options that exclude each other, and for attempts that cannot be read.
    """
    width = stdout_console(ColorChoice.NEVER).width
    read = [str(path) for path in (begin.on, attempts) if path not in (None, _STDIN)]
    names: Redactor | None = None
    try:
        place = output_file(None if output.output is None else str(output.output), read)
        if asked.list_profiles:
            _deliver(profiles(), place, width)
            return ExitCode.OK
        if attempts is None:
            raise UsageError("ATTEMPTS.jsonl is missing; - reads stdin")
        profile = None if asked.broker_version == "auto" else profile_for(asked.broker_version)
        names = output.redaction.redactor()
        recorded = _recorded_log(begin, names)
        if asked.explain is not None:
            with _opened(attempts, names) as lines:
                _deliver(explain_attempt(lines, asked.explain, profile, recorded), place, width)
            return ExitCode.OK
        targets = _parse_outputs(output.output_format or ["table"], place)
        for target in targets.targets:
            output_file(None if target.file is None else str(target.file), read)
        broker = Broker(profile, recorded)
        begun = [attempts, *begin.arguments] if names is None else [_STDIN]
        arguments = [*begun[:1], *([] if profile is None else ["--broker-version", asked.broker_version]), *begun[1:]]
        with _opened(attempts, names) as lines:
            targets.write(lines, broker, arguments, with_state=output.verbose, width=width)
        _report_unread(_shown(attempts, names), broker.unread_config)
    except AttemptError as error:
        raise UsageError(f"{_shown(str(attempts), names)}: {error}") from None
    except (UnknownVersionError, NoSuchAttemptError, _OutputError) as error:
        raise UsageError(str(error)) from None
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UsageError(f"{_shown(str(error.filename or attempts), names)}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{_shown(str(attempts), names)}: not UTF-8 at byte {error.start}") from error
    return ExitCode.OK


def _recorded_log(begin: FirstState, names: "Redactor | None") -> "RecordedLog | None":
    """Return what the broker begins with, of the redacted topic. Raises UsageError for options that belong together."""
    if begin.on is None:
        if begin.topic is not None or begin.partition is not None or begin.memory is Memory.FULL:
            raise UsageError("--topic, --partition and --memory belong to --on DIR")
        return None
    if begin.topic is None or begin.partition is None:
        raise UsageError("--on needs --topic and --partition")
    from kaudit.replay.log_directory import NoSegmentsError, read_recorded_log  # only reading a log takes numpy

    try:
        recorded = read_recorded_log(begin.on, begin.topic, begin.partition, restarts=begin.memory is Memory.RESTART)
    except NoSegmentsError as error:
        raise UsageError(str(error)) from None
    return recorded if names is None else replace(recorded, key=(names.topic(begin.topic), begin.partition))


def _report_unread(attempts: str, config: dict[str, str | None]) -> None:
    """Name the configuration that no answer depends on, and what may have been meant."""
    for name, meant in config.items():
        hint = "" if meant is None else f"; {meant} is"
        sys.stderr.write(f"kaudit: {attempts}: configuration {visible(name)} is not used by replay{hint}\n")


class _OutputError(ValueError):
    """Output options that contradict each other, or a format that does not exist."""


class _Target(Struct, frozen=True):
    """One output: a format and its file, None for stdout."""

    output_format: str
    file: Path | None


class _Targets(Struct, frozen=True):
    """All outputs of one run."""

    targets: tuple[_Target, ...]

    def write(
        self,
        lines: Iterable[bytes],
        broker: Broker,
        arguments: Sequence[str],
        *,
        with_state: bool,
        width: int | None = None,
    ) -> None:
        """Let `broker` answer `lines` once and write every format; `width` is the terminal's, where stdout is one.

        `arguments` are those that decide the answers, the file first. Answers wait until the last line has been read: raises AttemptError for a bad line with nothing written.
        """
        session = Session(lines, broker)
        with ExitStack() as stack:
            spools = [stack.enter_context(_spool(target.file)) for target in self.targets]
            names = [target.output_format for target in self.targets]
            for pieces in formatted(session, names, arguments, with_state=with_state):
                for spool, piece in zip(spools, pieces, strict=True):
                    spool.write(piece.encode())
            for target, spool in zip(self.targets, spools, strict=True):
                if target.file is None:
                    _show(spool, width if target.output_format == "table" else None, ROW_INDENT)


def _parse_outputs(formats: list[str], output: Path | None) -> _Targets:
    """Read `FORMAT[:FILE]` options; `output` is the file of the one format without a file. Raises _OutputError."""
    targets = []
    for text in formats:
        name, _, file = text.partition(":")
        if name not in FORMATS:
            raise _OutputError(f"--output-format {text!r}: expected one of {', '.join(FORMATS)}")
        targets.append(_Target(name, Path(file) if file else None))
    open_ended = [target for target in targets if target.file is None]
    if len(open_ended) > 1:
        raise _OutputError("more than one --output-format without a file: only one can go to stdout or --output")
    if output is not None and not open_ended:
        raise _OutputError("--output needs an --output-format without a file")
    return _Targets(
        tuple(_Target(target.output_format, output) if target.file is None else target for target in targets)
    )


def _deliver(lines: Iterable[str], output: Path | None, width: int | None = None) -> None:
    """Write lines of text to `output`, None for stdout, when all of them are there; `width` is the terminal's."""
    with _spool(output) as spool:
        for line in lines:
            spool.write(f"{line}\n".encode())
        if output is None:
            _show(spool, width, _TEXT_INDENT)


def _shown(name: str, names: "Redactor | None") -> str:
    """Return a path as it may be shown."""
    return name if names is None or name == _STDIN else names.path(name)


@contextmanager
def _opened(name: str, names: "Redactor | None") -> Iterator[Iterator[bytes]]:
    """Open a file of attempts, `-` for stdin. A line that is too long is cut one byte after the limit, so that its reader notices.

    With `names` the attempts are answered as if they had the redacted ones.
    """
    if name == _STDIN:
        yield _lines(sys.stdin.buffer, names)
        return
    with Path(name).open("rb") as file:
        yield _lines(file, names)


def _lines(file: BinaryIO, names: "Redactor | None") -> Iterator[bytes]:
    lines = iter(partial(file.readline, ATTEMPT_LINE_BYTES + 1), b"")
    return lines if names is None else names.json_lines(lines)


def _spool(file: Path | None) -> AbstractContextManager["BinaryIO | Output"]:
    """Open what output waits in until all of it is there; `file`, if given, gets it then."""
    return _memory() if file is None else whole_file(file)


@contextmanager
def _memory() -> Iterator[BinaryIO]:
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as spool:
        yield cast("BinaryIO", spool)


def _show(spool: "BinaryIO | Output", width: int | None, hanging: int) -> None:
    """Print what waits in `spool`; `width` is the terminal's, None where lines stay as they are."""
    waiting = cast("BinaryIO", spool)
    waiting.seek(0)
    text = TextIOWrapper(waiting, encoding="utf-8", newline="")
    lines = text if width is None else (fold(line.rstrip("\n"), width, hanging) + "\n" for line in text)
    write_pieces(None, lines)
