"""`kaudit config show`: every setting, its value, and where the value comes from."""

import enum
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import typer
from typer.core import TyperOption

from kaudit.cli.option_groups import with_option_groups
from kaudit.cli.options import ConfigurationOptions, TerminalOptions, TextFormat, TextOrJson
from kaudit.cli.settings import Settings, all_options, settings_of
from kaudit.cli.streams import stdout_console, write_stdout
from kaudit.report.console import Console, Style, visible

if TYPE_CHECKING:  # every check comes with it
    from kaudit.policy.policy import TopicRule

_DEFAULT = "default"
_SCHEMA = "kaudit.config/1"

app = typer.Typer(name="config")


@app.callback()
def _group() -> None:
    """Show the configuration."""


@app.command(short_help="Show every setting with its origin.", epilog="kaudit config show --output-format json")
@with_option_groups
def show(
    context: typer.Context,
    *,
    output_format: TextOrJson = TextFormat.TEXT,
    terminal: TerminalOptions,
    configuration: ConfigurationOptions,  # noqa: ARG001 - its callbacks have read it
) -> None:
    """Show every setting, its value, and where it comes from: a file, the environment, or the default."""
    known, settings = all_options(context), settings_of(context)
    if output_format is TextFormat.JSON:
        write_stdout(_document(known, settings))
    else:
        write_stdout(_text(known, settings, stdout_console(terminal.color_choice)))


def _text(options: Mapping[str, TyperOption], settings: Settings, console: Console) -> str:
    """Return a line per setting: `key = value  # origin`, those that are set first to meet the eye."""
    rows = _rows(options, settings)
    width = max(len(f"{key} = {_shown(value)}") for key, value, _ in rows if len(_shown(value)) < 40)
    lines = []
    for key, value, origin in rows:
        text = visible(f"{key} = {_shown(value)}").ljust(width)
        remark = console.paint(f"# {visible(origin)}", Style.FAINT)
        lines.append(f"{text if origin == _DEFAULT else console.paint(text, Style.STRONG)}  {remark}")
    for rule in settings.topics:
        lines += _topic(rule, settings.topics_origin, console)
    lines += [f"{visible(name)} is not an option of kaudit: ignored" for name in settings.unknown]
    return "".join(f"{line}\n" for line in lines)


def _document(options: Mapping[str, TyperOption], settings: Settings) -> str:
    """Return the same as JSON."""
    values = {key: {"value": value, "origin": origin} for key, value, origin in _rows(options, settings)}
    topics = {rule.pattern: {**_facts(rule), "origin": settings.topics_origin} for rule in settings.topics}
    document = {"schema": _SCHEMA, "settings": values, "topics": topics, "ignored_variables": list(settings.unknown)}
    return json.dumps(document, sort_keys=True, indent=2) + "\n"


def _rows(options: Mapping[str, TyperOption], settings: Settings) -> list[tuple[str, object, str]]:
    rows: list[tuple[str, object, str]] = []
    for key, option in sorted(options.items()):
        if key in settings.values:
            rows.append((key, settings.values[key].value, settings.values[key].origin))
        else:
            rows.append((key, _plain(option.default), _DEFAULT))
    return rows


def _plain(default: object) -> object:
    return default.value if isinstance(default, enum.Enum) else default


def _shown(value: object) -> str:
    if value is None or value == []:
        return "(not set)"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)


def _topic(rule: "TopicRule", origin: str, console: Console) -> list[str]:
    lines = [f"topics.{visible(rule.pattern)}  {console.paint(f'# {visible(origin)}', Style.FAINT)}"]
    if rule.compacted:
        lines.append("  compacted = true")
    if rule.expected_producers is not None:
        lines.append(f"  expected-producers = {rule.expected_producers}")
    lines += [f"  ignore {', '.join(item.codes)}: {visible(item.reason)}" for item in rule.accepted]
    return lines


def _facts(rule: "TopicRule") -> dict[str, object]:
    ignore = [{"codes": list(item.codes), "reason": item.reason} for item in rule.accepted]
    return {"compacted": rule.compacted, "expected-producers": rule.expected_producers, "ignore": ignore}
