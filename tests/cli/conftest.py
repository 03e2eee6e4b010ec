"""Running commands in this process, with an engine under the test's control."""

import io
import os
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from kaudit.cli.app import run
from kaudit.engines.local import LocalEngine
from kaudit.listings.producer_histories import RecordedScan
from kaudit.listings.producer_listing import ListedProducers
from tests import scan_results as results


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "CLICOLOR", "COLUMNS", "KAUDIT_DEBUG", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    for name in [name for name in os.environ if name.startswith("KAUDIT_") and not name.startswith("KAUDIT_TEST_")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", "/nonexistent")


class Terminal(io.StringIO):
    """A terminal that keeps what it is sent; its descriptor is any number."""

    encoding = "latin-1"

    def isatty(self):
        return True

    def fileno(self):
        return 77


@dataclass
class Outcome:
    code: int
    out: str
    err: str


@dataclass
class Engine:
    """What the engine will answer, and what it was asked."""

    scan_result: object = None
    timeline_result: object = None
    producers_result: object = None
    error: Exception | None = None
    options: object = None
    query: object = None

    def scan(self, options, progress):
        self.options = options
        progress.start(10)
        progress.advance(10)
        if self.error is not None:
            raise self.error
        return self.scan_result

    @contextmanager
    def record(self, options, progress):
        yield RecordedScan(
            self.scan(options, progress), lambda writer, findings: iter(()), lambda batch_writer: iter(())
        )

    def timeline(self, options, progress):
        self.options = options
        if self.error is not None:
            raise self.error
        return self.timeline_result

    def producers(self, options, progress, query):
        self.options, self.query = options, query
        if self.error is not None:
            raise self.error
        return self.producers_result

    @contextmanager
    def listed_producers(self, options, progress, query):
        yield ListedProducers(self.producers(options, progress, query))


@pytest.fixture
def engine(monkeypatch):
    fake = Engine(results.many(), results.timeline_result(), results.producers_result())
    monkeypatch.setattr(LocalEngine, "scan", lambda _, *asked: fake.scan(*asked))
    monkeypatch.setattr(LocalEngine, "timeline", lambda _, *asked: fake.timeline(*asked))
    monkeypatch.setattr(LocalEngine, "record", lambda _, *asked: fake.record(*asked))
    monkeypatch.setattr(LocalEngine, "listed_producers", lambda _, *asked: fake.listed_producers(*asked))
    return fake


@pytest.fixture
def kaudit(capsys):
    def call(*arguments):
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call
