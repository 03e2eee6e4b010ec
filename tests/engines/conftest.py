"""Both engines behind one fixture, and one Spark session for whoever needs it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType

import pytest
from msgspec import Struct

from kaudit.engines.progress import SilentProgress
from kaudit.listings.query import Query
from kaudit.model.evidence import FindingEvidence
from kaudit.report.json_documents import producers_document, scan_document
from kaudit.report.render_options import RenderOptions
from kaudit.scanning.options import ScanOptions
from tests.rendered import timeline_text


def as_reported(value):
    """Return structs as lists and dicts: what comes from tasks has lists for tuples, and evidence as JSON."""
    if isinstance(value, FindingEvidence):
        return as_reported(value.to_dict())
    if isinstance(value, Struct):
        return {name: as_reported(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, Mapping):
        return {key: as_reported(entry) for key, entry in value.items()}
    return [*map(as_reported, value)] if isinstance(value, list | tuple) else value


@dataclass
class Engine:
    """Runs scans, timelines and lists, and shows them as what reaches users."""

    module: ModuleType

    def scan(self, *paths, **options):
        return self.module.scan(ScanOptions([str(path) for path in paths], **options), SilentProgress())

    def timeline(self, *paths, **options):
        return self.module.timeline(ScanOptions([str(path) for path in paths], **options), SilentProgress())

    def producers(self, *paths, **options):
        return self.module.producers(ScanOptions([str(path) for path in paths], **options), SilentProgress(), Query())

    def documents(self, *paths, **options):
        """Scan, timeline and producers as JSON: findings, their order, fingerprints, evidence, counts, states."""
        view = RenderOptions(show_notes=True)
        listed = self.producers(*paths, **options)
        return (
            scan_document(self.scan(*paths, **options), view),
            json.loads(timeline_text("json", self.timeline(*paths, **options), view)),
            {**producers_document(listed, view), "producers": [entry.to_dict() for entry in listed.producers]},
        )


@pytest.fixture
def local():
    from kaudit.engines import local

    return Engine(local)


@pytest.fixture
def spark(spark_session):
    from kaudit.spark import engine as spark

    return Engine(spark)


@pytest.fixture
def arrow_session(monkeypatch):
    """A session that runs already, as in a notebook, and has no JVM."""
    from pyspark.sql import SparkSession

    from tests.spark.arrow_session import ArrowSession

    running = ArrowSession()
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: running)
    return running


@pytest.fixture(params=["local", pytest.param("spark", marks=pytest.mark.jvm)])
def engine(request):
    return request.getfixturevalue(request.param)
