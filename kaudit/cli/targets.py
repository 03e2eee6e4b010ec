"""Where results go: --output-format FORMAT[:FILE] and --output, and writing them whole or not at all."""

import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from msgspec import Struct

from kaudit.cli.streams import refused, stdout_console, write_pieces
from kaudit.errors import UsageError, suggestion
from kaudit.installation import install_command
from kaudit.report.console import ColorChoice, Console, visible
from kaudit.report.formats import FORMATS, Format
from kaudit.report.render_options import Output, Row, Tables, is_replaceable

_STDOUT = "-"


class Target(Struct, frozen=True):
    """One format and where it goes; `file` None: stdout, or the `url` that an engine writes tables to."""

    form: Format
    file: Path | None = None
    url: str | None = None


def parse_targets(formats: Sequence[str], output: str | None, inputs: Sequence[str]) -> list[Target]:
    """Parse the options, and refuse now what would only fail after a long scan."""
    targets = [_target(_format(name), place) for name, place in split_formats(formats, output)]
    for target in targets:
        if target.form.directory:
            _check_directory(target)
    files = [target.url or target.file for target in targets]
    if len(set(files)) < len(files):
        raise UsageError("two formats cannot go to the same place")
    for target in targets:
        if target.file is not None:
            _check_place(target.file, inputs, is_directory=target.form.directory)
    return targets


def _target(form: Format, place: str | None) -> Target:
    """Return where a format goes; tables may go to a URL."""
    if form.directory and place is not None and "://" in place:
        return Target(form, url=place)
    return Target(form, _file(place))


def _check_directory(target: Target) -> None:
    if target.file is None and target.url is None:
        raise UsageError(f"--output-format {target.form.name}: needs a directory, -o DIR")
    if find_spec("pyarrow") is None:
        raise UsageError(f"--output-format {target.form.name} needs an extra: {install_command('parquet')}")
    if target.file is not None and target.file.exists() and not (target.file.is_dir() and is_replaceable(target.file)):
        raise UsageError(f"--output {target.file}: holds something else than an earlier result of kaudit")


def output_directory(name: str, place: str | None, inputs: Sequence[str]) -> Path:
    """Return the directory a format of tables goes to. Raises UsageError where that cannot be."""
    target = Target(FORMATS[name], _file(place))
    _check_directory(target)
    assert target.file is not None
    _check_place(target.file, inputs, is_directory=True)
    return target.file


def split_formats(formats: Sequence[str], output: str | None) -> list[tuple[str, str | None]]:
    """Return each format's name and where it goes: its own file, or for the one without --output's (None: stdout).

    Raises:
        UsageError: two formats for one place, or a place without a format.

    """
    typed = [_split(value) for value in formats or ["table"]]
    loose = [name for name, file in typed if file is None]
    if len(loose) > 1:
        raise UsageError(f"only one format can go to one place, not {' and '.join(loose)}; write FORMAT:FILE")
    if output is not None and not loose:
        raise UsageError(f"--output {output}: every --output-format has its own file already")
    return [(name, output if file is None else file) for name, file in typed]


def _split(value: str) -> tuple[str, str | None]:
    """Split FORMAT[:FILE]; the file is None without one."""
    name, colon, file = value.partition(":")
    if colon and not file:
        raise UsageError(f"--output-format {value}: no file after the colon")
    return name, file or None


def _format(name: str) -> Format:
    if name not in FORMATS:
        hint = suggestion(name, FORMATS) or f"; there are {', '.join(FORMATS)}"
        raise UsageError(f"--output-format {name}: no such format{hint}")
    return FORMATS[name]


def _file(name: str | None) -> Path | None:
    if name is None or name == _STDOUT:
        return None

    with refused(f"--output {name}"), suppress(FileNotFoundError, NotADirectoryError):
        os.lstat(name)  # a name no file can have, or that lies where nobody may look
    return Path(os.path.realpath(name))


def output_file(name: str | None, inputs: Sequence[str], option: str = "--output") -> Path | None:
    """Return the file of this name, None for stdout, refusing one that cannot be written or lies in an input.

    `option` is where it was named.
    """
    file = _file(name)
    if file is not None:
        _check_place(file, inputs, is_directory=False, option=option)
    return file


def _check_place(file: Path, inputs: Sequence[str], *, is_directory: bool, option: str = "--output") -> None:
    if file.is_dir() and not is_directory:
        raise UsageError(f"{option} {file}: is a directory")
    if not file.parent.is_dir():
        raise UsageError(f"{option} {file}: there is no directory {file.parent}")
    device = file.exists() and not file.is_file() and not file.is_dir()
    if not os.access(file if device else file.parent, os.W_OK):
        raise UsageError(f"{option} {file} cannot be written: no permission to write into {file.parent}")

    for path in inputs:
        audited = Path(os.path.realpath(path))
        if file == audited or (audited.is_dir() and file.is_relative_to(audited)):
            raise UsageError(f"{option} {file}: lies in what is audited ({path}), where kaudit never writes")


def console_of(target: Target, choice: ColorChoice) -> Console:
    """Return what the target can show. A file is no terminal: colour there only when asked for."""
    return stdout_console(choice) if target.file is None else Console(color=choice is ColorChoice.ALWAYS)


def write(target: Target, content: Output) -> None:
    """Write a report: text to stdout as it comes, to its file or directory through a temporary one beside it."""
    if isinstance(content, Tables):
        if target.url is not None:
            assert content.write_to is not None
            sys.stderr.write(f"kaudit: wrote run_id={content.write_to(target.url)} to {visible(target.url)}\n")
            return
        assert target.file is not None
        with refused(f"--output {target.file}"):
            _parquet().write_tables(content, target.file)
        return
    write_pieces(target.file, content)


def write_rows(command: str, rows: Iterable[Row], directory: Path, inputs: Sequence[str]) -> None:
    """Write the rows of a command as tables, through a temporary directory beside `directory`."""
    with refused(f"--output {directory}"):
        _parquet().write_row_tables(command, rows, directory, inputs)


def _parquet() -> ModuleType:
    return import_module("kaudit.report.machine.parquet")  # it imports pyarrow, an extra
