"""Colour and width: who decides, in which order."""

import io

import pytest

from kaudit.report.console import ColorChoice, Console, Style, wanted_width, wants_color


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("choice", "environ", "on_terminal", "in_pipe"),
    [
        ("auto", {}, True, False),
        ("always", {"NO_COLOR": "1"}, True, True),
        ("never", {"FORCE_COLOR": "1"}, False, False),
        ("auto", {"NO_COLOR": "1"}, False, False),
        ("auto", {"NO_COLOR": ""}, True, False),
        ("auto", {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False, False),
        ("auto", {"FORCE_COLOR": "1"}, True, True),
        ("auto", {"FORCE_COLOR": "0"}, True, False),
        ("auto", {"CLICOLOR_FORCE": "1"}, True, True),
        ("auto", {"CLICOLOR_FORCE": "0"}, True, False),
        ("auto", {"CLICOLOR": "0"}, False, False),
        ("auto", {"TERM": "dumb"}, False, False),
        ("auto", {"TERM": "dumb", "FORCE_COLOR": "1"}, True, True),
    ],
)
def test_color(choice, environ, on_terminal, in_pipe):
    assert wants_color(ColorChoice(choice), Terminal(), environ) is on_terminal
    assert wants_color(ColorChoice(choice), io.StringIO(), environ) is in_pipe


def test_width_is_that_of_columns_else_whole_lines_in_a_pipe():
    assert wanted_width(io.StringIO(), {"COLUMNS": "132"}) == 132
    assert wanted_width(io.StringIO(), {}) is None
    assert wanted_width(io.StringIO(), {"COLUMNS": "wide"}) is None
    assert wanted_width(io.StringIO(), {"COLUMNS": "0"}) is None
    assert wanted_width(io.StringIO(), {"COLUMNS": "3"}) == 40


def test_wrapping_keeps_words_longer_than_the_line_whole():
    path = "d" * 100 + "/00000000000000000000.log"
    lines = Console(width=40).wrap(f"the file {path} is damaged", lead="  - ")
    assert [line.strip() for line in lines] == ["- the file", path, "is damaged"]


def test_wrapping_paints_the_lead_only():
    assert Console(color=True, width=40).wrap("text", lead="  = rule: ", style=Style.STRONG) == [
        "\x1b[1m  = rule: \x1b[0mtext"
    ]
