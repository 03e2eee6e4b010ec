"""The table of a watch on a terminal is drawn after each round, and by nobody else."""

from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from kaudit.cli import bars
from kaudit.cli import watch_outputs as outputs
from kaudit.cli.watch_outputs import Outputs
from kaudit.report.formats import FORMATS


def test_the_table_is_drawn_when_it_is_told(monkeypatch):
    made: list[dict[str, Any]] = []

    @contextmanager
    def live(**given):
        made.append(given)
        yield SimpleNamespace()

    monkeypatch.setattr(bars, "Live", live)
    monkeypatch.setattr(outputs, "_on_terminal", lambda _: True)
    monkeypatch.setattr(outputs, "console_of", lambda *_: SimpleNamespace(color=False))
    target = SimpleNamespace(form=FORMATS["table"], file=None)
    request: Any = SimpleNamespace(targets=[target], color=None)
    with Outputs(request, resumed=False) as shown:
        assert shown.is_live
    (given,) = made
    assert given["auto_refresh"] is False
    assert given["console"].no_color
