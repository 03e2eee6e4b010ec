"""Findings name the bugs they look like: where a bug was at work, in the versions that have it, and nowhere else."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from kaudit.broker.releases.profile import VersionRange
from kaudit.broker.releases.version import Version
from kaudit.broker.releases.version_evidence import VersionEvidence, infer_range
from kaudit.bugs.bug import Program, logged
from kaudit.bugs.matching import with_known_bugs
from kaudit.bugs.registry import BUGS
from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.engines.replicas import diff
from kaudit.model.application_logs import LogEventKind
from kaudit.model.evidence import StoredEvidence
from kaudit.model.evidence_parts import EventEvidence, ShownEvents
from kaudit.model.finding import Finding
from kaudit.model.replicas import Replica
from kaudit.model.severity import Confidence, Severity
from kaudit.scanning.options import ScanOptions
from tests.bugs.recorded_bugs import RECORDED, recorded_bug
from tests.bugs.simulated_bugs import SIMULATED, diverged, first_batch_overtaken
from tests.conftest import DATA

SAMPLES = Path(__file__).parents[2] / "samples"
HEALTHY = (
    "clean",
    "compacted",
    "damaged",
    "open-transaction",
    "producer-ids",
    "replicas",
    "side-files",
    "truncated-head",
)
"""Samples in which no broker or client did wrong: healthy logs, and those that disks and people damaged."""
CAPTURES = {
    "clients-mix": "3.9.1",
    "cross-session": "3.9.1",
    "failover-acks1": "3.9.1",
    "legacy-formats": "2.0.1",
    "retention-compaction-2.8.2": "2.8.2",
    "retry-dup": "3.9.1",
    "torn-writes": "3.9.1",
    "txn-mix-2.8.2": "2.8.2",
    "unknown-pid-2.0.1": "2.0.1",
    "zk-pid-blocks": "2.0.1",
}
"""Real clusters in which no bug was at work (tests/data/captures/*.md), and their brokers."""
OF_BROKERS = [ticket for ticket in SIMULATED if BUGS[ticket].program is Program.BROKER]


def scanned(paths, broker_version="auto", **options):
    return scan(ScanOptions([str(path) for path in paths], broker_version=broker_version, **options), SilentProgress())


def named(paths, broker_version="auto", **options):
    result = scanned(paths, broker_version, **options)
    return {known.id for finding in result.findings for known in finding.known_bugs}


def affected_version(bug):
    return bug.affected[-1].last if bug.program is Program.BROKER else "auto"


@pytest.mark.parametrize("ticket", SIMULATED)
def test_a_simulated_bug_is_named(ticket, tmp_path):
    options = SIMULATED[ticket](tmp_path)
    bug = BUGS[ticket]
    assert named([tmp_path], affected_version(bug), **options) == {ticket, *bug.alike}


@pytest.mark.parametrize("ticket", OF_BROKERS)
def test_a_simulated_bug_is_not_named_in_versions_without_it(ticket, tmp_path):
    options = SIMULATED[ticket](tmp_path)
    assert ticket not in named([tmp_path], BUGS[ticket].fixed_in[-1], **options)


@pytest.mark.parametrize("ticket", RECORDED)
def test_a_recorded_bug_is_named(ticket):
    recorded = recorded_bug(ticket)
    bug = BUGS[ticket]
    version = recorded.version if bug.program is Program.BROKER else "auto"
    logs = [str(path) for path in recorded.server_logs]
    assert named(recorded.log_dirs, version, server_logs=logs) == {ticket, *bug.alike}


def test_replicas_that_went_on_behind_a_difference_look_like_a_missed_truncation(tmp_path):
    paths = [str(path) for path in diverged(tmp_path)]
    replicas = [Replica(Path(path).name, path) for path in paths]
    result = diff(ScanOptions(paths), replicas, SilentProgress())
    assert {known.id for finding in result.scan.findings for known in finding.known_bugs} == {
        "KAFKA-6361",
        "KAFKA-7415",
    }


def test_what_was_fetched_may_be_redpandas_too(tmp_path):
    SIMULATED["KAFKA-14034"](tmp_path)
    result = scan(ScanOptions([str(tmp_path)]), SilentProgress())
    fetched = [replace(finding, file=None, known_bugs=()) for finding in result.findings]
    versions, _ = infer_range(VersionEvidence())
    assert not any(partition.compacted for partition in result.partitions)
    bugs = {known.id for finding in with_known_bugs(fetched, versions, ()) for known in finding.known_bugs}
    assert bugs == {"Redpanda-3039", *BUGS["Redpanda-3039"].alike}


def test_a_hundred_thousand_findings_share_what_they_name():
    finding = Finding("KA304", "", Severity.ERROR, Confidence.CERTAIN, "", topic="t", partition=0)
    many = [replace(finding, producer_id=number, offset=number) for number in range(100_000)]
    versions, _ = infer_range(VersionEvidence())
    named_bugs = with_known_bugs(many, versions, [])
    assert len({id(known) for finding in named_bugs for known in finding.known_bugs}) == 1
    assert [known.id for known in named_bugs[-1].known_bugs] == ["KAFKA-12671"]


def with_events(finding, *kinds):
    """What the logs of brokers and clients add to a finding's evidence."""
    events = [EventEvidence("server.log", 1, None, kind.value, "") for kind in kinds]
    return replace(finding, evidence=replace(finding.evidence, events=ShownEvents(events, len(events))))


def test_an_event_of_a_log_is_a_trait_where_there_is_one(tmp_path):
    options = SIMULATED["KAFKA-7190"](tmp_path)
    result = scanned([tmp_path], "2.0.1", **options)
    finding = next(finding for finding in result.findings if finding.known_bugs)
    versions = VersionRange(Version.parse("2.0.1"), Version.parse("2.0.1"))
    assert len(finding.known_bugs[0].traits) == len(finding.known_bugs[0].traits_seen) == 2
    (again,) = with_known_bugs([with_events(finding, LogEventKind.UNKNOWN_PRODUCER_ID)], versions, [])
    assert len(again.known_bugs[0].traits) == len(again.known_bugs[0].traits_seen) == 3


def test_librdkafka_3575_is_named_by_a_log_alone(evidence):
    result = scanned([evidence.capture("txn-mix-2.8.2") / "logdirs"])
    finding = next(finding for finding in result.findings if finding.evidence.get("class") == "restart")
    versions, _ = infer_range(VersionEvidence())
    assert not with_known_bugs([finding], versions, [])[0].known_bugs
    refused = with_events(finding, LogEventKind.OUT_OF_ORDER_SEQUENCE)
    assert [known.id for known in with_known_bugs([refused], versions, [])[0].known_bugs] == ["librdkafka-3575"]


def test_a_first_batch_overtaken_is_named_by_a_log_alone(tmp_path):
    # a topic created again under a running producer begins like that too, and is healthy
    first_batch_overtaken(tmp_path)
    (finding,) = (finding for finding in scanned([tmp_path], "2.8.2").findings if finding.code == "KA106")
    assert not finding.known_bugs
    refused = with_events(finding, LogEventKind.OUT_OF_ORDER_SEQUENCE)
    for version, bugs in (("2.4.1", []), ("2.8.2", ["KAFKA-15591"])):
        only = VersionRange(Version.parse(version), Version.parse(version))
        assert [known.id for known in with_known_bugs([refused], only, [])[0].known_bugs] == bugs


@pytest.mark.parametrize("moment", ["A2-new-leader-old-one-down", "B2-unclean-leader-old-one-down"])
def test_a_replica_that_has_not_come_back_names_nothing(evidence, moment):
    replicas = [
        Replica(path.name, str(path)) for path in sorted((evidence.capture("failover-acks1") / moment).iterdir())
    ]
    result = diff(ScanOptions([replica.path for replica in replicas]), replicas, SilentProgress())
    assert "KA601" in {finding.code for finding in result.scan.findings}
    assert not any(finding.known_bugs for finding in result.scan.findings)


@pytest.mark.parametrize("sample", HEALTHY)
def test_samples_without_a_bug_name_none(sample):
    assert named([SAMPLES / sample]) == set()


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize("known", [False, True])
def test_captures_name_no_bug(evidence, capture, known):
    left_out = ["artificial", "broker-verdict"]  # made by hand
    left_out += ["dumps"] if known else []  # texts of the same logs
    recorded = [path for path in evidence.capture(capture).iterdir() if path.is_dir() and path.name not in left_out]
    assert named(recorded, CAPTURES[capture] if known else "auto") == set()


def test_every_capture_is_held_to_that():
    assert {path.name.removesuffix(".tar.xz") for path in (DATA / "captures").glob("*.tar.xz")} == set(CAPTURES)


@pytest.mark.parametrize(
    ("events", "seen"),
    [
        ([{"event": "fenced_producer"}], True),
        ([{"event": "duplicate_sequence"}, {"event": "unknown_producer_id"}], True),
        (({"event": "fenced_producer"}, {"event": "duplicate_sequence"}), True),
        ([{"event": "duplicate_sequence"}], False),
        ([{"other": "fenced_producer"}, "fenced_producer"], False),
        ([], False),
        ("fenced_producer", False),
        (None, False),
    ],
)
def test_a_trait_of_logs_is_one_of_its_events(events, seen):
    case: Any = SimpleNamespace(evidence=StoredEvidence({"log_events": events}))
    for must in (False, True):
        trait = logged("a log says so", LogEventKind.FENCED_PRODUCER, LogEventKind.UNKNOWN_PRODUCER_ID, must=must)
        assert (trait.seen(case), trait.optional, trait.of_logs) == (seen, not must, True)


def joint(step, records):
    return {"step": step, "records": records}


@pytest.mark.parametrize(("joints", "seen"), [
    ([joint(3, 2)], True),
    ([joint(3, 2), joint(2, 1)], True),
    ([joint(3, 2), joint(2, 2)], False),
    ([joint(4, 2)], False),
    ([joint("3", 2)], False),
    ([joint(None, None)], False),
    ([], False),  # nothing was seen
    (None, False),
    ("joints", False),
    ({"step": 3, "records": 2}, False),
])  # fmt: skip
def test_a_client_that_goes_on_one_too_high_does_so_after_each_batch(joints, seen):
    """What a saved scan says may be anything."""
    finding = Finding("KA107", "", Severity.ERROR, Confidence.CERTAIN, "", topic="t", partition=0)
    evidence = {"offending": {"is_transactional": False}, **({} if joints is None else {"joints": joints})}
    versions, _ = infer_range(VersionEvidence())
    (found,) = with_known_bugs([replace(finding, evidence=StoredEvidence(evidence))], versions, [])
    assert ("kafkajs-598" in {known.id for known in found.known_bugs}) is seen
