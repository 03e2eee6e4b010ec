"""What --help says of a command: examples, then its options under headings; kaudit.cli.reference says the same."""

import enum
import inspect
from collections.abc import Iterator
from typing import Any

from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

_OWN = "Options"
"""The heading of options that stand in no group with one."""
_NAMES_WIDTH = 24
"""Longer names of options stand on a line of their own."""


class GroupedCommand(TyperCommand):
    """A command whose --help has its options under the headings of their groups (`OptionGroup.heading`)."""

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - typer does not export their types
        """Write everything, examples before options: they are what most people came for."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        self.format_epilog(ctx, formatter)
        self.format_options(ctx, formatter)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ANN401, ARG002
        """Return what stands after the command's name."""
        return usage_pieces(self)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401, ARG002
        """Write the examples like a section."""
        if self.epilog:
            formatter.write_paragraph()
            formatter.write_text(inspect.cleandoc(self.epilog))

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        """Write the arguments, then the options, all in the same two columns."""
        sections = {"Arguments": [(metavar(argument), meaning(argument)) for argument in arguments(self)]}
        for heading, options in sections_of(self).items():
            sections[heading] = [(_names(option), meaning(option)) for option in options]
        about = self.get_help_option(ctx)
        assert isinstance(about, TyperOption)
        last = next(reversed(sections)) if len(sections) > 1 else _OWN
        sections.setdefault(last, []).append((_names(about), meaning(about)))
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
    lines = [line.strip() for line in (command.epilog or "").replace("\b", "").strip().splitlines()]
    return [line for line in lines if line != "Examples:"]


def arguments(command: TyperCommand) -> list[TyperArgument]:
    """Return the arguments of a command, in order."""
    return [param for param in command.params if isinstance(param, TyperArgument)]


def sections_of(command: TyperCommand) -> dict[str, list[TyperOption]]:
    """Return the options of a command by heading, in the order in which the command names them first."""
    sections: dict[str, list[TyperOption]] = {}
    for param in command.params:
        if isinstance(param, TyperOption):
            sections.setdefault(param.rich_help_panel or _OWN, []).append(param)
    return sections


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


def _names(option: TyperOption) -> str:
    names = ", ".join(sorted(option.opts, key=len))
    return names if option.is_flag else f"{names} {metavar(option)}"


def _usage(argument: TyperArgument) -> str:
    many = "..." if argument.nargs == -1 else ""
    return f"{metavar(argument)}{many}" if argument.required else f"[{metavar(argument)}{many}]"
