"""The typer application, built from the modules of kaudit.cli.commands, and what --help and the reference say of a command."""

import enum
import inspect
import re
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.main import get_command
from typer.models import CommandInfo

from kaudit.cli.commands import COMMANDS, module_of
from kaudit.cli.exits import ExitCode
from kaudit.cli.settings import INPUTS, Version, configurable_options
from kaudit.model.grouping import grouped

_SHORT_HELP = """\
kaudit audits Apache Kafka logs: which producer's records were lost, duplicated or fenced, where, and why.

What was lost, what is there twice, what blocks consumers?
  kaudit scan /var/lib/kafka/data
Which copy is right?
  kaudit diff /backup/broker1 /backup/broker2
Which records do consumers get twice?
  kaudit dedup /var/lib/kafka/data/orders-3
What did this producer do?
  kaudit timeline --producer-id 42 /var/lib/kafka/data
What does this line of a log mean?
  tail -50 server.log | kaudit explain -

kaudit --help lists all commands, kaudit COMMAND --help the options of one.
"""

_EXIT_CODES = (
    "Exit codes: 0 nothing found, 1 findings, 2 usage, 3 nothing to audit, 4 unreadable files, 70 internal error."
)
_HELP_WIDTH = 100
"""Columns; longer lines are harder to read."""
_SETTINGS: dict[str, Any] = {
    "rich_markup_mode": None,  # rich's boxes cost a quarter of a second
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": _HELP_WIDTH},
}


_OWN = "Options"
"""The heading of options that stand in no group with one."""
_SHARED_HEADINGS = (
    *("Filters", "Output", "Findings", "About the log", "Logs of brokers and clients", "Blocks of producer ids"),
    *("Reading", "Live clusters", "Engine", "General"),
)
"""Headings that several commands have, in the order of --help."""
_FEW_OPTIONS = 8
"""Up to this many options --help needs no list of the most used ones."""
_NAMES_WIDTH = 24
"""Longer names of options stand on a line of their own."""


_NO_OPTION = re.compile(r"-(?:\d+|[^\w-].*)", re.DOTALL).fullmatch
"""A negative code, or a pasted line that begins with a dash."""


class _Root(TyperGroup):
    """The root command. It lists its commands by name and summary; only the one that is run is imported."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:  # noqa: ANN401 - not exported
        """Return the name, the command and its arguments."""
        name, _, rest = super().resolve_command(ctx, args)
        literal = [each for each in rest if name == "explain" and _NO_OPTION(each)]
        if literal:
            rest = [*(each for each in rest if each not in literal), "--", *literal]
        return name, None if name is None else _command(name), rest


def root() -> TyperGroup:
    """Return kaudit's root command, with commands that are imported when they are run."""
    app = typer.Typer(name="kaudit", cls=_Root, **_SETTINGS)
    app.callback(invoke_without_command=True, epilog=_EXIT_CODES)(_root)
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    group.commands = {name: TyperCommand(name, short_help=summary) for name, summary in COMMANDS.items()}
    return group


def command_tree() -> TyperGroup:
    """Return kaudit's root command with every command imported."""
    group = root()
    group.commands = {name: _command(name) for name in COMMANDS}
    return group


@cache
def _command(name: str) -> TyperCommand | TyperGroup:
    """Import and build a command."""
    app = typer.Typer(add_completion=False, **_SETTINGS)
    app.callback()(_root)  # typer makes a group of an application with a callback, even for one command
    app.add_typer(module_of(name).app)
    for command in _commands(app):
        command.cls = GroupedCommand
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    found = group.commands[name]
    assert isinstance(found, TyperCommand | TyperGroup)
    found.short_help = COMMANDS[name]
    return found


def _commands(app: typer.Typer) -> Iterator[CommandInfo]:
    yield from app.registered_commands
    for group in app.registered_groups:
        assert group.typer_instance is not None
        yield from _commands(group.typer_instance)


def _root(context: typer.Context, version: Version = False) -> None:  # noqa: ARG001 - its callback has answered
    """Audit Apache Kafka logs: which producer's records were lost, duplicated or fenced, where, and why."""
    context.obj = lambda: configurable_options(command_tree())  # of all commands: what --config asks for
    if context.invoked_subcommand is None:
        sys.stderr.write(_SHORT_HELP)
        raise typer.Exit(ExitCode.USAGE)


class GroupedCommand(TyperCommand):
    """A command whose --help has its options under the headings of their groups (`OptionGroup.heading`)."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - typer does not export their types
        """Note the arguments first: --config is processed before them, and must know what lies in an input."""
        if not ctx.resilient_parsing and "config" in {option.name for option in self.params}:
            values, _, _ = self.make_parser(ctx).parse_args(args=list(args))
            read = [each for each in self.params if isinstance(each, TyperArgument) or each.metavar == "DIR"]
            given = [values.get(str(each.name)) for each in read]
            ctx.meta[INPUTS] = [
                path for value in given for path in (value if isinstance(value, list | tuple) else [value]) if path
            ]
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        """Write everything; the options that most people need and the examples before the lists of all options."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        used = most_used(self)
        if used:
            with formatter.section("Most used options"):
                for option, example in used:
                    formatter.write_dl([(names_of(option).ljust(_NAMES_WIDTH), meaning(option))], col_max=_NAMES_WIDTH)
                    formatter.write(f"{'':{formatter.current_indent}}  $ {example}\n")  # whole, to copy
        self.format_epilog(ctx, formatter)
        self.format_options(ctx, formatter)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ANN401, ARG002
        """Return what stands after the command's name."""
        return usage_pieces(self)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401, ARG002
        """Write the other examples like a section."""
        shown = {example for _, example in most_used(self)}
        lines = [line for line in examples_of(self) if line not in shown]
        if lines:
            with formatter.section("Examples"):
                formatter.write("".join(f"{'':{formatter.current_indent}}{line}\n" for line in lines))

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        """Write the arguments, then the options, all in the same two columns."""
        sections = {"Arguments": [(metavar(argument), meaning(argument)) for argument in arguments(self)]}
        for heading, options in sections_of(self).items():
            sections[heading] = [(names_of(option), meaning(option)) for option in options]
        about = self.get_help_option(ctx)
        assert isinstance(about, TyperOption)
        last = next(reversed(sections)) if len(sections) > 1 else _OWN
        sections.setdefault(last, []).append((names_of(about), meaning(about)))
        lengths = [len(names) for rows in sections.values() for names, _ in rows]
        width = max(length for length in lengths if length <= _NAMES_WIDTH)
        for heading, rows in sections.items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl([(names.ljust(width), text) for names, text in rows], col_max=width)


def commands_of(name: str, command: object) -> Iterator[tuple[str, TyperCommand]]:
    """Yield every command that does something with its full name, in the order of --help."""
    if isinstance(command, TyperGroup):
        for child, below in command.commands.items():
            yield from commands_of(f"{name} {child}", below)
    elif isinstance(command, TyperCommand):
        yield name, command


def examples_of(command: TyperCommand) -> list[str]:
    """Return the command lines that --help shows as examples."""
    return inspect.cleandoc(command.epilog or "").splitlines()


def most_used(command: TyperCommand) -> list[tuple[TyperOption, str]]:
    """Return the options that the first examples introduce, at most three, each with its example; none of few options."""
    options = {name: param for param in command.params if isinstance(param, TyperOption) for name in param.opts}
    if len(options) <= _FEW_OPTIONS:
        return []
    found: dict[str, tuple[TyperOption, str]] = {}
    for example in examples_of(command):
        new = [word for word in example.split() if word in options and options[word].name not in found]
        if new and example.startswith("kaudit ") and not example.endswith("\\"):
            found[str(options[new[0]].name)] = (options[new[0]], example)
    return list(found.values())[:3]


def arguments(command: TyperCommand) -> list[TyperArgument]:
    """Return the arguments of a command, in order."""
    return [param for param in command.params if isinstance(param, TyperArgument)]


def sections_of(command: TyperCommand) -> dict[str, list[TyperOption]]:
    """Return the options of a command by heading: first the command's own headings, then those it shares, in the order of all commands."""
    sections = grouped(
        (param.rich_help_panel or _OWN, param) for param in command.params if isinstance(param, TyperOption)
    )
    ranks = {heading: rank for rank, heading in enumerate(_SHARED_HEADINGS)}
    return {heading: sections[heading] for heading in sorted(sections, key=lambda heading: ranks.get(heading, -1))}


def usage_pieces(command: TyperCommand) -> list[str]:
    """Return what stands after the name of a command in the line that shows how it is called."""
    return ["[OPTIONS]", *(_usage(argument) for argument in arguments(command))]


def metavar(param: TyperArgument | TyperOption) -> str:
    """Return the word that stands for the value."""
    return param.metavar or str(param.name).upper()


def meaning(param: TyperArgument | TyperOption) -> str:
    """Return the help text of a parameter, with the values it may have, its default, and whether it must be given."""
    text, default = param.help or "", param.default
    if isinstance(default, enum.Enum):
        values = [f"{each.value} (default)" if each is default else str(each.value) for each in type(default)]
        return f"{text.removesuffix('.')}: {', '.join(values[:-1])} or {values[-1]}."
    if isinstance(param, TyperArgument):
        return text
    if param.required:
        return f"{text} Required."
    return text if param.is_flag or default is None else f"{text} Default: {default}."


def names_of(option: TyperOption) -> str:
    """Return an option's names, the shortest first, with the word that stands for its value."""
    names = ", ".join(sorted(option.opts, key=len))
    return names if option.is_flag else f"{names} {metavar(option)}"


def _usage(argument: TyperArgument) -> str:
    many = "..." if argument.nargs == -1 else ""
    return f"{metavar(argument)}{many}" if argument.required else f"[{metavar(argument)}{many}]"
