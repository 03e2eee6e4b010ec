"""What a scan says of accidents that were played on real brokers, beside what the producers were told and a consumer reads."""

import shutil
import struct
from pathlib import Path

import pytest
from msgspec.structs import replace

import kaudit
from kaudit.model.evidence import FindingEvidence
from kaudit.model.severity import Severity
from kaudit.report.render_options import RenderOptions
from kaudit.report.text.incident_block import incident_sections
from tests.diff.test_relations import run as diff
from tests.live_brokers.accidents.judged import (
    MAY_BE_NONE,
    MOST_ROWS,
    NOT_YET,
    UNKNOWN,
    copied,
    recorded,
    verdict_rows,
    wrong,
)
from tests.live_brokers.accidents.truth import truths

SAMPLES = Path(__file__).parents[2] / "samples"
TRUTHS = truths()


@pytest.mark.parametrize("name", TRUTHS)
def test_lost_and_doubled_records_are_bounded_by_half_and_twice_and_healthy_logs_have_no_warning(name):
    place = recorded(name)
    moments = {f"{name}/{moment.name}": moment for moment in TRUTHS[name].moments}
    found = {where: set(wrong(where, each, kaudit.scan(place / each.name))) for where, each in moments.items()}
    # whoever mends one takes it out of the table: python -m tests.live_brokers.accidents.judged
    assert found == {moment: set(NOT_YET.get(moment, ())) for moment in found}


@pytest.mark.parametrize("where", [*UNKNOWN, *MAY_BE_NONE])
def test_what_cannot_be_known_names_the_evidence_that_is_missing(where):
    name, moment = where.split("/")
    (own,) = (each for each in TRUTHS[name].moments if each.name == moment)
    result = kaudit.scan(recorded(name) / moment)
    topic = {**UNKNOWN, **MAY_BE_NONE}[where].removesuffix(" lost")
    assert wrong(where, own, result) == {}
    silent = [replace(each, evidence=FindingEvidence()) for each in result.findings]
    assert wrong(where, own, replace(result, findings=silent)) == {
        f"{topic} evidence": "the verdict and the finding do not name what is missing"
    }


@pytest.mark.parametrize("sample", sorted(path.name for path in SAMPLES.iterdir() if path.is_dir()))
def test_the_verdict_over_a_sample_takes_three_rows_of_a_terminal(sample):
    rows = verdict_rows(kaudit.scan(SAMPLES / sample))
    assert 1 <= len(rows) <= MOST_ROWS, rows
    assert all(len(row) <= 80 for row in rows if not row.startswith("first: "))


def test_copies_that_count_exactly_speak_for_the_lines_of_logs():
    """Both moments in one scan: what the old leader had and cut off is there, record by record."""
    place = recorded("acks1-failover")
    result = kaudit.scan([place / moment.name for moment in TRUTHS["acks1-failover"].moments])
    lost = {
        each.code: (each.impact.records_lost_at_least, each.impact.records_lost_at_most) for each in result.findings
    }
    assert lost == {"KA603": (90, 90)}


def test_what_is_not_yet_right_is_about_recorded_moments():
    assert set(NOT_YET) <= {f"{name}/{moment.name}" for name, each in TRUTHS.items() for moment in each.moments}


def test_what_logs_say_of_a_partition_that_the_copy_leaves_out_is_a_note(tmp_path):
    """Directories of other topics are given, and logs that name this one: whether it lost anything is in its own directories."""
    place = copied("acks1-failover", tmp_path) / "recovered"
    for directory in place.glob("b*/payments-0"):
        shutil.rmtree(directory)
    result = kaudit.scan(place)
    assert {finding.severity for finding in result.findings} == {Severity.NOTE}
    assert "KA612" in {finding.code for finding in result.findings}
    (named,) = (each.reason for each in result.not_audited if each.path == "payments-0")
    assert named.startswith(
        "its broker has it (replication-offset-checkpoint), and its directory is not among the inputs"
    )
    # a broker that does not have it either may have lost it
    for checkpoint in place.glob("b*/replication-offset-checkpoint"):
        checkpoint.unlink()
    severities = {finding.code: finding.severity for finding in kaudit.scan(place).findings}
    assert severities["KA612"] is Severity.WARNING


def test_a_directory_set_aside_is_said_to_be_of_a_topic_that_was_deleted(tmp_path):
    """By the controller's records, without them by its log, and of neither nothing is said."""
    place = copied("deleted-while-written", tmp_path) / "created-again"

    def said():
        found = [finding for finding in kaudit.scan(place).findings if finding.code == "KA011"]
        return {
            (finding.evidence["topic_deletion"] if "its topic was deleted" in finding.message else None)
            for finding in found
        }

    assert said() == {"RemoveTopicRecord in b1/__cluster_metadata-0"}
    for directory in place.glob("b*/__cluster_metadata-0"):
        shutil.rmtree(directory)
    (line,) = said()
    name, _, number = line.partition(":")
    assert "Replayed RemoveTopicRecord for topic alarms" in (place / name).read_text().splitlines()[int(number) - 1]
    (place / name).unlink()
    assert said() == {None}


def before_the_first_write(place):
    """Cut the new leader's batches off its log and its follower's, and drop what else shows its leader epoch: so it was right after the election."""
    for name in ("b2", "b3"):
        directory = place / name / "payments-0"
        (segment,) = directory.glob("*.log")
        content, position = segment.read_bytes(), 0
        while (head := struct.unpack_from(">qii", content, position))[2] == 0:  # base offset, size, leader epoch
            position += 12 + head[1]
        segment.write_bytes(content[:position])
        for path in directory.iterdir():
            if path != segment and path.name != "partition.metadata":
                path.unlink()
        (place / name / "replication-offset-checkpoint").unlink()


def test_who_leads_is_what_the_controller_says(tmp_path):
    place = copied("acks1-failover", tmp_path) / "old-leader-down"
    before_the_first_write(place)
    for path in place.glob("*.log"):
        path.unlink()

    def lost(result):
        findings = [finding for finding in result.findings if finding.topic == "payments"]
        return [(each.code, each.impact.records_lost_at_most) for each in findings if each.code == "KA601"]

    # as the old leader acknowledged, and nobody else has: 90 (truth.json); of the idempotent producer nothing was open
    brokers = [place / name for name in ("b1", "b2", "b3")]
    assert lost(kaudit.scan(place)) == lost(diff(*brokers).scan) == [("KA601", 90)]
    for directory in place.glob("b*/__cluster_metadata-0"):
        shutil.rmtree(directory)
    assert lost(kaudit.scan(place)) == lost(diff(*brokers).scan) == []  # a follower that lags looks the same


def test_the_clock_is_known_of_a_broker_whose_former_registration_left_the_replicas_in_sync():
    """Its broker epoch is the offset of the record in front of its registration's, which takes the former out (ClusterControlManager.registerBroker)."""
    summary = kaudit.scan(recorded("snapshots-restored") / "restored").log_events
    assert summary is not None
    assert {clock.broker_id for clock in summary.clocks} == {1, 2, 4}
    assert [log.broker_id for log in summary.unaligned] == [None]  # that of a client


def test_findings_that_share_a_block_name_what_would_be_certain():
    findings = kaudit.scan(recorded("leader-storm") / "over").findings
    (block,) = incident_sections(findings, RenderOptions(), many_inputs=False)
    said = " ".join(" ".join(block).split())
    assert "to be certain: the logs of producers without producer ids" in said
