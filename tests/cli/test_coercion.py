"""Options that need no conversion come out as typer's own conversion would bring them."""

import enum
from typing import Annotated

import pytest
import typer
from typer.main import get_command

from kaudit.cli.settings.coercion import convert_simple_values


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


def _command(seen):
    app = typer.Typer()

    @app.command()
    def main(
        paths: list[str],
        name: Annotated[str, typer.Option()] = "none",
        colour: Annotated[Colour, typer.Option()] = Colour.BLUE,
        other: Annotated[Colour | None, typer.Option()] = None,
        number: Annotated[int | None, typer.Option(min=1)] = None,
        words: Annotated[list[str] | None, typer.Option()] = None,
        numbers: Annotated[list[int] | None, typer.Option()] = None,
        flag: Annotated[bool, typer.Option("--flag/--no-flag")] = False,
    ):
        seen.append((paths, name, colour, other, number, words, numbers, flag))

    return get_command(app)


@pytest.mark.parametrize(
    "arguments",
    [
        ["a"],
        ["a", "b", "--name", "", "--colour", "red", "--other", "blue"],
        ["a", "--number", "7", "--numbers", "1", "--numbers", "-2", "--words", "x", "--words", "1", "--flag"],
        ["a", "--number", "0"],
        ["a", "--number", "007", "--numbers", "\N{ARABIC-INDIC DIGIT ONE}", "--numbers", "1_0", "--numbers", "+5"],
        ["a", "--number", "99999999999999999999"],
        ["a", "--colour", "RED"],
        ["a", "--number", "x"],
        ["a", "--colour", "green"],
        ["a", "--numbers", "x"],
        [],
    ],
)
def test_values_and_errors_are_those_of_typer(arguments):
    outcomes = []
    for light in (False, True):
        seen = []
        command = _command(seen)
        if light:
            convert_simple_values(command.params)
        try:
            command(arguments, standalone_mode=False)
        except typer.TyperException as error:
            seen.append((type(error), error.format_message()))
        outcomes.append(seen)
    assert outcomes[0] == outcomes[1]
    assert outcomes[0]
    for own, theirs in zip(outcomes[1][0], outcomes[0][0], strict=True):
        assert type(own) is type(theirs)
