"""Command lines read without typer mean what typer makes of them, and nothing is read that typer would refuse."""

import enum

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.main import get_command

from kaudit.cli.commands import module_of
from kaudit.cli.declared import parameters_of
from kaudit.cli.plain_way import read_plainly, typed_plainly
from kaudit.cli.settings.command import ConfiguredCommand
from kaudit.cli.settings.settings import Settings
from kaudit.cli.tree import run_tree
from kaudit.cli.typed import typed

COMMANDS = ("scan", "timeline", "producers", "diff", "report")
ISOLATED = {"PATH": "/bin"}


def _function(name):
    return getattr(module_of(name), name)


def _by_typer(name, arguments):
    """What typer calls the command with; None where it refuses."""
    seen = []

    def call(**typed):
        seen.append(typed)
        return 0

    command = _function(name)
    call.__signature__ = typed(command).__signature__
    call.__annotations__ = {}
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command(cls=ConfiguredCommand)(call)
    try:
        get_command(app)(["--isolated", *arguments], standalone_mode=False)
    except typer.TyperException:
        return None
    if not seen:  # --help, --version
        return None
    seen[0].pop("context")
    return _comparable(seen[0])


def _comparable(typed):
    """Without what only matters before the command runs: `_by_typer` adds --isolated, --version's callback has answered."""
    return {name: value for name, value in typed.items() if name not in ("isolated", "version")}


def _plainly(name, arguments):
    parameters = parameters_of(_function(name))
    found = typed_plainly(parameters, arguments)
    if found is None:
        return None
    defaults = {each.name: each.default for each in parameters if each.annotation is not Settings}
    return _comparable({**defaults, **found})


def _names(name):
    command = get_command(_app(name))
    return sorted({text for param in command.params for text in param.opts if text.startswith("-")})


def _app(name):
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    module_of(name).register(app)
    return app


VALUES = (
    "a",
    "orders",
    "0",
    "7",
    "-1",
    "007",
    "99999999999999999999",
    "error",
    "crc",
    "spark",
    "x=y",
    "",
    "-",
    "--",
    "KA1",
)
OTHER = (
    "--no-such",
    "-qv",
    "-oout",
    "--help",
    "--quie",
    "--topic=",
    "--topic=a",
    "--jobs=2",
    "-o=x",
    "--quiet=1",
    "\u0663",
)


@pytest.mark.parametrize("name", COMMANDS)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_what_is_read_plainly_is_what_typer_reads(name, data):
    options = [option for option in _names(name) if option != "--config"]  # with it there is something configured
    word = st.one_of(
        st.sampled_from(VALUES).map(lambda value: [value]),
        st.sampled_from(options).map(lambda option: [option]),
        st.tuples(st.sampled_from(options), st.sampled_from(VALUES)).map(list),
        st.sampled_from(OTHER).map(lambda other: [other]),
    )
    words = data.draw(st.lists(word, max_size=5))
    arguments = [part for group in words for part in group]
    found = _plainly(name, arguments)
    if found is not None:
        assert found == _by_typer(name, arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ["/data"],
        ["/data", "/other", "-q", "--exit-zero", "--output-format", "json", "--output-format=concise:x", "-o", "out"],
        ["--topic", "a", "--topic", "b", "--partition", "3", "/data", "--depth", "records", "--jobs", "2"],
        ["--fail-on", "never", "--color=always", "--producer-id", "7", "--isolated", "d", "--since", "2026-01-01"],
    ],
)
def test_common_command_lines_are_plain(arguments):
    found = _plainly("scan", arguments)
    assert found is not None
    assert found == _by_typer("scan", arguments)
    assert not any(isinstance(value, enum.EnumMeta) for value in found.values())


def test_all_options_of_a_scan_but_those_that_answer_at_once_can_be_plain():
    texts = {"--jobs": "1", "--partition": "1", "--producer-id": "1", "--max-findings": "1", "--log-start-offset": "1"}
    texts |= {"--fail-on": "error", "--depth": "crc", "--color": "auto", "--engine": "local"}
    flags = {
        "--exit-zero",
        "--compacted",
        "--batches",
        "--no-color",
        "--quiet",
        "-q",
        "--verbose",
        "-v",
        "--reproducible",
    }
    for option in set(_names("scan")) - {"--version", "-V", "--isolated"}:
        value = [] if option in flags else [texts.get(option, "x")]
        assert _plainly("scan", ["/data", option, *value]) is not None, option
    assert _plainly("scan", ["/data", "--version"]) is None


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--help"],
        ["/data", "--quie"],
        ["/data", "--jobs", "0"],
        ["/data", "--jobs", "x"],
        ["/data", "--depth", "all"],
    ],
)
def test_help_and_mistakes_are_typers(arguments):
    assert read_plainly(_function("scan"), arguments, ISOLATED) is None


def test_where_something_is_configured_typer_reads(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scan = _function("scan")
    plain = read_plainly(scan, ["/data"], ISOLATED)
    assert plain is not None
    assert plain["settings"] == Settings()
    assert plain["paths"] == ["/data"]
    assert plain["asked"].output.output_format is None
    assert read_plainly(scan, ["/data"], {**ISOLATED, "KAUDIT_FAIL_ON": "note"}) is None
    assert read_plainly(scan, ["/data"], {**ISOLATED, "_KAUDIT_COMPLETE": "complete_bash"}) is None
    (tmp_path / "kaudit.toml").write_text('fail-on = "note"\n')
    assert read_plainly(scan, ["/data"], ISOLATED) is None
    assert read_plainly(scan, ["/data", "--config", "kaudit.toml"], ISOLATED) is None
    assert read_plainly(scan, ["/data", "--isolated"], ISOLATED) is not None


def test_the_tree_is_there_for_what_is_not_plain(capsys):
    assert run_tree(["scan", "--help"]) in (None, 0)
    assert "Audit broker logs" in capsys.readouterr().out
