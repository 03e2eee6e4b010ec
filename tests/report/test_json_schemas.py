"""The JSON Schemas that are shipped describe what is printed, and would notice if it changed."""

import copy
import importlib.resources
import json

import jsonschema
import pytest
import referencing
from msgspec.structs import replace

from kaudit.model.application_logs import ApplicationLogFile, LogClock, LogEventSummary, RefusedBatches
from kaudit.model.audit_clock import AuditClock, ClockSource
from kaudit.model.coverage import NOT_ACCOUNTED, Coverage, EndWitness, OffsetClass, OffsetRange, TextLines
from kaudit.model.digests import Digests, PartitionDigest, RangeDigests
from kaudit.model.impact import Impact
from kaudit.model.remote_segments import RemoteAccount
from kaudit.model.result import AppliedConfiguration, Suggestion
from kaudit.report.render_options import RenderOptions
from kaudit.results.incidents import Incident
from tests import scan_results as results
from tests.rendered import producers_text, scan_text, timeline_text
from tests.report.test_ci_formats import RUN, accepted

SHIPPED = importlib.resources.files("kaudit.report.machine") / "schemas"
DOCUMENT, LINE = (
    json.loads((SHIPPED / f"{name}.schema.json").read_text(encoding="utf-8")) for name in ("json", "jsonl")
)
REGISTRY = referencing.Registry().with_resources(
    (schema["$id"], referencing.Resource.from_contents(schema)) for schema in (DOCUMENT, LINE)
)
CASES = {
    "empty": results.scan_result,
    "many": results.many,
    "incomplete": results.incomplete,
    "hostile": results.hostile,
    "accepted": accepted,
}


VALIDATORS = {id(schema): jsonschema.Draft202012Validator(schema, registry=REGISTRY) for schema in (DOCUMENT, LINE)}


def validator(schema):
    return VALIDATORS[id(schema)]


@pytest.mark.parametrize("schema", [DOCUMENT, LINE], ids=["json", "jsonl"])
def test_they_are_schemas(schema):
    jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("view", [RenderOptions(), RenderOptions(run=RUN)], ids=["reproducible", "with run"])
@pytest.mark.parametrize("case", CASES)
def test_scans(case, view):
    validator(DOCUMENT).validate(json.loads(scan_text("json", CASES[case](), view)))
    for line in scan_text("jsonl", CASES[case](), view).splitlines():
        validator(LINE).validate(json.loads(line))


def test_timelines():
    validator(DOCUMENT).validate(json.loads(timeline_text("json", results.timeline_result(), RenderOptions())))
    for line in timeline_text("jsonl", results.timeline_result(), RenderOptions()).splitlines():
        validator(LINE).validate(json.loads(line))


@pytest.mark.parametrize("result", [results.producers_result(), results.hostile_producers()], ids=["many", "hostile"])
def test_producers(result):
    validator(DOCUMENT).validate(json.loads("".join(producers_text("json", result, RenderOptions()))))
    for line in "".join(producers_text("jsonl", result, RenderOptions())).splitlines():
        validator(LINE).validate(json.loads(line))


def test_a_producer_s_field_that_is_missing_is_noticed():
    whole = json.loads("".join(producers_text("json", results.producers_result(), RenderOptions())))
    places = (("producers", 2), ("producers", 2, "partitions", 0), ("blocks", 0), ("summary",))
    for place in places:
        inner = whole
        for step in place:
            inner = inner[step]
        for hole in list(_holes(inner)):
            if place == ("summary",) and "statuses" in hole[:-1]:
                continue
            broken = copy.deepcopy(whole)
            spot = broken
            for step in (*place, *hole[:-1]):
                spot = spot[step]
            del spot[hole[-1]]
            assert not validator(DOCUMENT).is_valid(broken), (place, hole)


def test_real_producers(evidence):
    from kaudit.engines import local
    from kaudit.engines.progress import SilentProgress
    from kaudit.listings.query import Query
    from kaudit.scanning.options import ScanOptions

    capture = evidence.capture("zk-pid-blocks")
    result = local.producers(ScanOptions([str(capture)], jobs=1), SilentProgress(), Query(limit=300))
    validator(DOCUMENT).validate(json.loads("".join(producers_text("json", result, RenderOptions()))))
    for line in "".join(producers_text("jsonl", result, RenderOptions())).splitlines():
        validator(LINE).validate(json.loads(line))


@pytest.mark.parametrize("command", ["scan", "timeline"])
def test_real_logs(evidence, command):
    from kaudit.engines import local
    from kaudit.engines.progress import SilentProgress
    from kaudit.scanning.options import ScanOptions

    for logs in (evidence.oracle("2.0.1", "logdir"), evidence.capture("txn-mix-2.8.2") / "logdirs"):
        result = getattr(local, command)(ScanOptions([str(logs)], jobs=1), SilentProgress())
        for name, schema in (("json", DOCUMENT), ("jsonl", LINE)):
            text = (
                scan_text(name, result, RenderOptions())
                if command == "scan"
                else timeline_text(name, result, RenderOptions())
            )
            for document in text.splitlines() if name == "jsonl" else [text]:
                validator(schema).validate(json.loads(document))


def _holes(document, path=()):
    """Every way to leave one field out."""
    for key, value in document.items():
        yield (*path, key)
        if isinstance(value, dict) and key not in ("evidence", "absent", "impact"):
            yield from _holes(value, (*path, key))


def test_a_field_that_is_missing_is_noticed():
    whole = json.loads(scan_text("json", results.scan_result(results.old_duplicate()), RenderOptions()))
    finding = whole["findings"][0]
    for path in [*_holes(whole), *(("findings", 0, *hole) for hole in _holes(finding))]:
        broken = copy.deepcopy(whole)
        inner = broken
        for step in path[:-1]:
            inner = inner[step]
        del inner[path[-1]]
        if path[0] == "summary" and "statuses" in path[1:-1]:
            continue  # engines do not count statuses, the policy does
        assert not validator(DOCUMENT).is_valid(broken), path


COVERAGE = Coverage(
    "orders",
    3,
    "1",
    log_start_offset=0,
    log_start_source="name of the first segment",
    log_end_offset=1017,
    witnesses=[EndWitness("replication-offset-checkpoint", 1020)],
    offsets={"data": 1017, "missing": 3},
    ranges=[OffsetRange(1017, 1019, 3, OffsetClass.MISSING, "replication-offset-checkpoint knows the log up to 1020")],
    all_accounted=False,
    text_lines=TextLines(9, 1, 4, 4, ("line 3: baseOffset: 0 lastOf",)),
    remote=RemoteAccount(2, 900, 0, 499, 400, 100, 0, 1),
)
CLOCK = AuditClock(1_700_000_000_000, ClockSource.BROKERS, 1_700_000_000_001)


def test_the_schemas_name_every_field_that_is_printed():
    clock = LogClock("logs", 0, 1, 0, None, 3, 3)
    refused = RefusedBatches("t", 0, 1, 0, "out_of_order_sequence", 1, 2, 2, "never-landed", "logs/server.log", 1, "")
    logs = LogEventSummary([ApplicationLogFile("server.log", "server", 1, 0, 1)], {}, [clock], [refused])
    suggestions = [Suggestion("2 replicas", "kaudit diff b1 b2")]
    ranges = RangeDigests(0, 1024, ["0" * 64])
    digest = PartitionDigest("t", 0, "b1", 0, 9, 3, "0" * 64, ranges, compacted=False, damaged=False)
    result = replace(
        accepted(),
        suggestions=suggestions,
        log_events=logs,
        digests=Digests("kaudit.fingerprint/1", [digest]),
        clock=CLOCK,
        coverage=[COVERAGE],
        configuration=AppliedConfiguration(["kaudit.toml"]),
    )
    whole = json.loads(scan_text("json", result, RenderOptions(run=RUN)))
    validator(DOCUMENT).validate(whole)
    defs = DOCUMENT["$defs"]
    described = defs["digests"]["properties"]["partitions"]["items"]["properties"]
    assert set(whole["digests"]["partitions"][0]) == set(described)
    assert set(whole["digests"]["partitions"][0]["ranges"]) == set(described["ranges"]["properties"])
    assert set(whole["log_events"]) == set(defs["log_events"]["properties"])
    for name in ("files", "clocks", "refused"):
        described = defs["log_events"]["properties"][name]["items"]["properties"]
        assert set(whole["log_events"][name][0]) == set(described)
    account = defs["coverage"]["items"]["properties"]
    assert set(whole["coverage"][0]) == set(account)
    for name in ("witnesses", "ranges"):
        assert set(whole["coverage"][0][name][0]) == set(account[name]["items"]["properties"])
    assert {kind.value for kind in OffsetClass} == set(account["offsets"]["propertyNames"]["enum"])
    assert {kind.value for kind in NOT_ACCOUNTED} == set(account["ranges"]["items"]["properties"]["kind"]["enum"])
    assert set(whole["clock"]) == set(defs["clock"]["properties"])
    assert set(whole["configuration"]) == set(defs["configuration"]["properties"])
    assert set(whole) == set(defs["scan_document"]["properties"])
    assert set(whole["findings"][0]) == set(defs["finding"]["properties"])
    assert set(Impact.__struct_fields__) == set(defs["impact"]["properties"])
    assert set(Incident.__struct_fields__) == set(defs["incident"]["properties"])
    assert set(whole["summary"]) == set(defs["summary"]["properties"])
    assert set(whole["partitions"][0]) == set(defs["partition"]["properties"])
    assert set(whole["suggestions"][0]) == set(defs["suggestions"]["items"]["properties"])
    assert set(whole["baseline"]) == set(defs["baseline"]["properties"])
