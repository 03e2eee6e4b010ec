"""What the driver of an audit on Spark sees: counts of all findings and a few of them, and no log."""

import json
from datetime import date

import pytest
from msgspec.structs import replace

from kaudit.audits.coordinator.transaction_state_reader import CoordinatorReader
from kaudit.checks.incident_groups import with_incidents
from kaudit.cli.exits import ExitCode, FailOn, exit_code
from kaudit.engines import local as local_engine
from kaudit.engines.progress import SilentProgress
from kaudit.model.finding import Finding
from kaudit.model.severity import Status
from kaudit.policy.baseline import Baseline, Entry
from kaudit.policy.comparison import Scope
from kaudit.policy.policy import NamedBaseline, Policy
from kaudit.reading.shuffle_codec import pack
from kaudit.report.render_options import RenderOptions
from kaudit.results.selection import Selection, count
from kaudit.scanning.audit import Audit
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.plan import all_needs, find_input, plan_jobs
from kaudit.spark import engine as spark_engine
from kaudit.spark import task_findings as spark_judging
from kaudit.spark.plan import share
from kaudit.spark.task_findings import AllCounts
from tests.engines.conftest import as_reported
from tests.engines.faulty_logs import FAULTS, gap, zombie
from tests.logs import Log, data
from tests.rendered import timeline_text
from tests.report.test_json_schemas import DOCUMENT, validator
from tests.spark.test_finding_counts import partition_of
from tests.timelines import timelines_of


def gaps(directory, number, producer_id=100):
    """A producer that skips a sequence so often: a KA104 each."""
    log = Log()
    sequence = 0
    for index in range(number + 1):
        log.append(data(producer_id, 0, sequence))
        sequence += (
            2 + index * index % 97 + index % 11
        )  # no step like the others: a client that miscounts is one finding
    return log.write(directory)


def scanned(*paths):
    return local_engine.scan(ScanOptions([str(path) for path in paths]), SilentProgress())


def counted(findings):
    """The findings as the driver counts them, each topic partition by itself."""
    by_partition: dict[tuple[str, int | None], list[Finding]] = {}
    for finding in findings:
        by_partition.setdefault((finding.topic or "", finding.partition), []).append(finding)
    return AllCounts(
        {
            number: partition_of(number, topic, own).counts()
            for number, ((topic, _), own) in enumerate(by_partition.items())
        }
    )


def test_the_first_findings_of_each_check_are_listed_and_the_rest_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(spark_judging, "FINDINGS_OF_CHECK", 5)
    for partition in range(3):
        gaps(tmp_path / f"orders-{partition}", 4)
    counts = counted(scanned(tmp_path).findings)
    listed = counts.to_list()
    assert [sum(own.values()) for own in listed.values()] == [4, 1]
    (rest,) = counts.unlisted(listed)
    assert (rest.code, rest.topic, rest.count) == ("KA104", "orders", 7)
    prints = [int(finding.fingerprint, 16) for finding in scanned(tmp_path).findings]
    assert [int(number) for number in rest.fingerprints] == prints[5:]


def test_incidents_across_partitions_need_only_what_the_driver_counts(tmp_path):
    for number, make in enumerate(FAULTS):
        make(tmp_path / f"orders-{number}")
    zombie(tmp_path / "payments-0")
    findings = [replace(finding, incident=None) for finding in scanned(tmp_path).findings]
    across = counted(findings).incident_ids()
    whole = with_incidents(findings)
    # what takes more than one partition, by the findings themselves
    partitions: dict[str | None, set[object]] = {}
    for finding in whole:
        partitions.setdefault(finding.incident, set()).add((finding.topic, finding.partition))
    several = {incident for incident, places in partitions.items() if incident is not None and len(places) > 1}
    assert several
    assert {incident for own in across.values() for incident in own.values()} == several


def test_unlisted_findings_decide_the_exit_code_as_listed_ones(tmp_path, monkeypatch):
    gaps(tmp_path / "orders-0", 6)
    whole = scanned(tmp_path)
    monkeypatch.setattr(spark_judging, "FINDINGS_OF_CHECK", 2)
    counts = counted(whole.findings)
    rest = tuple(counts.unlisted(counts.to_list()))
    part = replace(whole, findings=whole.findings[:2], unlisted=rest)
    scope = Scope(lambda code: True)
    for known, code in ((2, ExitCode.FINDINGS), (5, ExitCode.FINDINGS), (6, ExitCode.OK)):
        entries = [Entry(finding.fingerprint, finding.code, "") for finding in whole.findings[:known]]
        policy = Policy(known=NamedBaseline("baseline.json", Baseline(entries)), today=date(2026, 1, 1))
        decided = policy.apply(part, scope)
        assert exit_code(decided, FailOn.ERROR, exit_zero=False) == code
        assert decided.summary.findings["error"] == 6
        assert decided.summary.statuses == {"new": 6 - known, "known": known, "suppressed": 0}
        assert decided.baseline is not None
        assert decided.baseline.known == known
        assert not decided.baseline.out_of_scope
    nothing = Selection(ignore=("KA104",)).of_scan(part)
    assert (nothing.findings, nothing.unlisted, nothing.summary.omitted) == ([], [], 0)
    assert nothing.summary.findings == count(())
    assert Selection(select=("KA1",)).of_scan(part).unlisted[0].status is Status.NEW


def test_what_the_driver_keeps_of_a_partition_does_not_grow_with_its_faults(tmp_path, monkeypatch):
    audits = []

    class Kept(Audit):
        def add(self, partition):
            audits.append(partition)
            super().add(partition)

    monkeypatch.setattr(local_engine, "Audit", Kept)
    for number in (10, 3000):
        gaps(tmp_path / str(number) / "orders-0", number)
        assert len(scanned(tmp_path / str(number)).findings) >= number - 2
    few, many = (len(pack(audit.outline())) for audit in audits)
    assert many <= few + 64


def test_replicas_of_a_partition_are_replayed_in_one_task(tmp_path):
    for broker in ("b1", "b2", "b3"):
        for partition in range(6):
            gap(tmp_path / broker / f"orders-{partition}")
    options = ScanOptions([str(tmp_path / broker) for broker in ("b1", "b2", "b3")])
    layout = find_input(options)
    jobs = plan_jobs(options, layout, all_needs)
    plan = share(jobs, 1)
    tasks: dict[int, set[int]] = {}
    for work in plan.works:
        for task, header in work.headers:
            tasks.setdefault(header.job.directory.partition, set()).add(task)
    assert [len(own) for own in tasks.values()] == [1] * 6
    assert len(set.union(*tasks.values())) == plan.shuffle_partitions == 4


@pytest.mark.jvm
def test_the_driver_opens_no_segment(spark_session, tmp_path, monkeypatch):
    for number, make in enumerate(FAULTS):
        make(tmp_path / f"orders-{number}")
    gaps(tmp_path / "orders-20", 4)
    options = ScanOptions([str(tmp_path)])
    expected = local_engine.scan(options, SilentProgress())

    def refuse(segment, working_directory=None):
        raise AssertionError(f"the driver opens {segment.path}")

    monkeypatch.setattr(spark_engine, "open_segment", refuse)
    assert as_reported(spark_engine.scan(options, SilentProgress())) == as_reported(expected)


@pytest.mark.jvm
def test_findings_beyond_the_limit_are_counted_on_spark(spark_session, tmp_path, monkeypatch):
    gaps(tmp_path / "orders-0", 8)
    gaps(tmp_path / "orders-1", 8)
    options = ScanOptions([str(tmp_path)])
    whole = local_engine.scan(options, SilentProgress())
    monkeypatch.setattr(spark_judging, "FINDINGS_OF_CHECK", 10)
    part = spark_engine.scan(options, SilentProgress())
    assert as_reported(part.findings) == as_reported(whole.findings[:10])
    assert part.summary == replace(whole.summary, omitted=6)
    assert [int(number) for more in part.unlisted for number in more.fingerprints] == [
        int(finding.fingerprint, 16) for finding in whole.findings[10:]
    ]


@pytest.mark.jvm
def test_the_first_timelines_are_listed_and_the_rest_counted(on_spark, local, tmp_path, monkeypatch):
    for number, make in enumerate(FAULTS):
        make(tmp_path / f"orders-{number}")
    whole = local.timeline(tmp_path)
    monkeypatch.setattr(spark_engine, "TIMELINES", 5)
    found = on_spark.timeline(tmp_path)
    expected = timelines_of(whole.histories)
    assert timelines_of(found.histories) == expected[:5]
    assert found.omitted == len(expected) - 5 > 0
    document = json.loads(timeline_text("json", found, RenderOptions()))
    assert document["timelines_omitted"] == found.omitted
    validator(DOCUMENT).validate(document)
    chosen = on_spark.timeline(tmp_path, producer_ids=[100])
    asked = timelines_of(chosen.histories)
    assert asked == timelines_of(local.timeline(tmp_path, producer_ids=[100]).histories)
    assert (len(asked) > 5, chosen.omitted) == (True, 0)


@pytest.mark.jvm
def test_names_of_transactions_are_read_in_tasks(spark_session, local, on_spark, evidence, monkeypatch):
    logs = evidence.oracle("2.0.1", "logdir") / "main"
    expected = timelines_of(local.timeline(logs).histories)
    assert any(timeline.transactional_id for timeline in expected)

    def not_on_the_driver(*_):
        raise AssertionError("__transaction_state was read in the driver's process")

    monkeypatch.setattr(CoordinatorReader, "names", not_on_the_driver)
    assert timelines_of(on_spark.timeline(logs).histories) == expected
