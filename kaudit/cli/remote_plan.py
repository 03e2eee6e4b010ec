"""`kaudit scan --remote LOCATION --plan`: what reading it costs, before anything is read."""

import sys
from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from kaudit.cli.commands.scan import ScanCommand
from kaudit.cli.exits import ExitCode
from kaudit.cli.inspection import parse_row_targets, show
from kaudit.errors import UsageError
from kaudit.report.console import visible
from kaudit.report.text.formatting import plural
from kaudit.results.scope import size
from kaudit.scanning.plan import input_without_remote
from kaudit.scanning.remote_segments import PlannedObject, planned_objects

_FORMATS = ("table", "jsonl")


def run_plan(paths: Sequence[str], options: ScanCommand) -> ExitCode:
    """List the objects that an audit would read; return the exit code."""
    scan = replace(options.audit, paths=paths)
    if scan.remote is None:
        raise UsageError("--plan needs --remote")
    targets = parse_row_targets(options.output.output_format or (), options.output.output, scan.given)
    for target in targets:
        if target.form not in _FORMATS:
            raise UsageError(f"--plan: --output-format {target.form} is not one of {' and '.join(_FORMATS)}")
    objects, remote = planned_objects(scan, input_without_remote(scan))
    notes = [(note.path, note.reason) for note in (*remote.unreadable, *remote.skipped)]
    names = options.output.redaction.redactor()
    if names is not None:
        names.learn_paths(scan.given)
        names.learn({"topic": [each.topic for each in objects], "path": [each.path for each in objects]})
        objects = [replace(each, topic=names.text(each.topic), path=names.path(each.path)) for each in objects]
        notes = [(names.text(path), names.text(reason)) for path, reason in notes]
    for target in targets:
        lines = _table(objects) if target.form == "table" else _rows(objects)
        show(target, lines, options.display.terminal)
    for path, reason in notes:
        sys.stderr.write(f"kaudit: {visible(path)}: {visible(reason)}\n")
    return ExitCode.UNREADABLE if remote.unreadable else ExitCode.OK


def _rows(objects: Sequence[PlannedObject]) -> Iterator[str]:
    encode = msgspec.json.Encoder().encode
    return (encode({"row": "object", **msgspec.structs.asdict(each)}).decode() + "\n" for each in objects)


def _table(objects: Sequence[PlannedObject]) -> Iterator[str]:
    yield f"{'bytes':>14}  {'requests':>8}  object\n"
    for each in objects:
        yield f"{each.bytes:>14,}  {each.requests:>8,}  {visible(each.path)}\n"
    total, requests = sum(each.bytes for each in objects), sum(each.requests for each in objects)
    yield f"{plural(len(objects), 'object')}, {size(total)}, about {plural(requests, 'request')}; nothing was read\n"
