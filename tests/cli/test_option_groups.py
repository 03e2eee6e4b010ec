"""Groups of options: typer sees single options, the command gets its groups."""

import inspect
import subprocess
import sys
from typing import Annotated, get_args

import typer
from typer.core import TyperOption
from typer.main import get_command

from kaudit.cli.command_tree import command_tree
from kaudit.cli.option_groups import OptionGroup, with_option_groups
from kaudit.cli.settings import configurable_options


class Inner(OptionGroup, frozen=True, kw_only=True):
    limit: Annotated[int | None, typer.Option("--limit", min=1)] = None


class Named(OptionGroup, frozen=True, kw_only=True):
    heading = "Names"
    alias: Annotated[str, typer.Option("--alias")] = "none"


class Headed(OptionGroup, frozen=True, kw_only=True):
    heading = "All"
    inner: Inner
    named: Named


class Outer(OptionGroup, frozen=True, kw_only=True):
    name: Annotated[str, typer.Option("--name")] = "none"
    inner: Inner
    last: Annotated[bool, typer.Option("--last")] = False


def call(*arguments):
    seen = []
    app = typer.Typer(rich_markup_mode=None, add_completion=False)

    @app.command()
    @with_option_groups
    def main(
        context: typer.Context, path: str, *, outer: Outer, other: Annotated[bool, typer.Option("--other")] = False
    ):
        """Do it."""
        seen.append((context.command.name, path, outer, other))

    get_command(app)(list(arguments), standalone_mode=False)
    return seen[0], main


def test_options_stand_in_place_of_their_group_in_order():
    _, main = call("p")
    assert list(inspect.signature(main).parameters) == ["context", "path", "name", "limit", "last", "other"]
    assert main.__doc__ == "Do it."


def test_the_command_gets_its_groups():
    assert call("p")[0] == ("main", "p", Outer(inner=Inner()), False)
    given = call("p", "--limit", "3", "--name", "x", "--last", "--other")[0]
    assert given == ("main", "p", Outer(name="x", inner=Inner(limit=3), last=True), True)


def test_options_stand_under_the_nearest_heading():
    app = typer.Typer(rich_markup_mode=None, add_completion=False)

    @app.command()
    @with_option_groups
    def main(*, headed: Headed, alone: Annotated[bool, typer.Option("--alone")] = False): ...

    panels = {param.name: param.rich_help_panel for param in get_command(app).params if isinstance(param, TyperOption)}
    assert panels == {"limit": "All", "alias": "Names", "alone": None}


def test_a_group_has_no_heading_where_another_command_gave_it_one():
    """Both share what the option is annotated with."""
    test_options_stand_under_the_nearest_heading()
    _, main = call("p")
    assert get_args(inspect.signature(main).parameters["limit"].annotation)[1].rich_help_panel is None


def test_only_the_command_that_is_run_is_imported():
    program = """if True:
        import sys
        from kaudit.cli.command_tree import root
        from kaudit.cli.commands import COMMANDS
        assert list(root().commands) == list(COMMANDS)
        print([name for name in sys.modules if name.startswith("kaudit.cli.commands.")])
        root()(["checks", "--help"], standalone_mode=False)
        print([name for name in sys.modules if name.startswith("kaudit.cli.commands.")])
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert [line for line in done.stdout.splitlines() if line.startswith("[")] == [
        "[]",
        "['kaudit.cli.commands.checks']",
    ]
    assert {"scan", "baseline", "config", "spark-bundle"} <= set(command_tree().commands)


def test_configuration_sets_options_of_all_commands_but_not_those_that_must_be_meant_each_time():
    keys = set(configurable_options(command_tree()))
    assert {"jobs", "sort", "batches", "reason", "name"} <= keys
    assert not {"config", "isolated", "version", "force", "help"} & keys
