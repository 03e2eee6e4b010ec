"""Logs of real brokers and the samples: both engines report the same, to the byte."""

from pathlib import Path

import pytest

from kaudit.checks.registry import CHECKS
from kaudit.model.limits import TIMELINES
from kaudit.report.json_documents import pretty
from kaudit.scanning.options import Depth
from tests.conformance.server_logs import recording
from tests.engines.conftest import as_reported
from tests.engines.recorded import CAPTURES, ORACLES, SAMPLES

ROOT = Path(__file__).parents[2]


def test_no_capture_is_left_out():
    assert {path.name.removesuffix(".tar.xz") for path in (ROOT / "tests/data/captures").glob("*.xz")} == set(CAPTURES)


def as_listed(document):
    """A document as Spark's driver has it: the first timelines, and the number of the others."""
    timelines = document.get("timelines", ())
    if len(timelines) <= TIMELINES:
        return document
    return {**document, "timelines": timelines[:TIMELINES], "timelines_omitted": len(timelines) - TIMELINES}


@pytest.mark.jvm
@pytest.mark.parametrize("name", CAPTURES)
def test_captures(local, on_spark, evidence, name):
    path = evidence.capture(name)
    for theirs, ours in zip(on_spark.documents(path), map(as_listed, local.documents(path)), strict=True):
        assert theirs == ours or pretty(theirs) == pretty(ours)


@pytest.mark.jvm
@pytest.mark.parametrize("version", ORACLES)
def test_oracles_cut_into_small_ranges(local, on_spark, evidence, version):
    path = evidence.oracle(version, "logdir")
    whole = local.scan(path)
    assert whole.findings
    assert as_reported(on_spark.scan(path, chunk_bytes=2000)) == as_reported(whole)


@pytest.mark.jvm
def test_a_directory_with_its_brokers_logs(local, on_spark):
    recorded = recording("2.4.1", "histories")
    ours, timeline, _ = local.documents(*recorded.log_directories, server_logs=recorded.server_logs)
    assert ours["log_events"]["refused"]
    assert "event" in {entry["kind"] for one in timeline["timelines"] for entry in one["entries"]}
    theirs, their_timeline, _ = on_spark.documents(*recorded.log_directories, server_logs=recorded.server_logs)
    assert pretty(theirs) == pretty(ours)
    assert pretty(their_timeline) == pretty(timeline)


@pytest.mark.jvm
def test_samples_with_every_kind_of_finding(local, on_spark):
    # side files, snapshots, the coordinator's log, blocks of producer ids, malformed records: each check's own state
    reported = set()
    for name in SAMPLES:
        options = {"depth": Depth.RECORDS, "chunk_bytes": 500}
        if name == "producer-ids":
            options["blocks"] = str(ROOT / "samples/producer-ids/blocks.jsonl")
        ours = local.scan(ROOT / "samples" / name, **options)
        assert as_reported(on_spark.scan(ROOT / "samples" / name, **options)) == as_reported(ours)
        reported |= {finding.code for finding in ours.findings}
    assert {code[:3] for code in reported} == {code[:3] for code in CHECKS}
    assert len(reported) > 35
