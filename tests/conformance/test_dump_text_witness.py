"""Texts of internal topics, made with kafka-dump-log's decoders, give an audit what their segments give."""

import re
import shutil
from collections import Counter

import pytest
from msgspec.structs import replace

from kaudit.audits.coordinator.transaction_state_reader import CoordinatorReader
from kaudit.audits.producer_ids.block_sources import read_metadata_log
from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.scanning.options import ScanOptions
from kaudit.scanning.versions import feature_levels
from kaudit.source.discover import discover
from kaudit.source.schemes import open_segment
from tests.formats.archives import ORACLES


def headers(text):
    return re.findall(r"^Dumping (.*)$", text.read_text(errors="replace"), re.MULTILINE)


def internal(paths, topic):
    return [entry for entry in discover([str(path) for path in paths]).partitions if entry.topic == topic]


def copies(root, names, target):
    for name in names:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / name, target / name)
    return target


def coordinator_view(directories):
    reader = CoordinatorReader(open_segment)
    names = reader.names(directories, lambda _: True)
    view = reader.view(directories, names)
    entries = {
        producer_id: (
            entry.transactional_id,
            entry.offset,
            entry.value.producer_epoch,
            entry.value.status,
            entry.value.timeout_ms,
            entry.value.last_update_timestamp,
            {(topic.topic, number) for topic in entry.value.partitions or () for number in topic.partitions},
        )
        for producer_id, entry in view.entries.items()
    }
    return names, entries, view.present, view.complete, reader.unreadable


@pytest.mark.parametrize("version", ORACLES)
def test_the_coordinators_view_is_that_of_the_segments(evidence, version, tmp_path):
    text = evidence.oracle(version, "dumps") / "txnstate.txt"
    own = copies(evidence.oracle(version, "logdir") / "main", headers(text), tmp_path)
    printed = coordinator_view(internal([text], "__transaction_state"))
    assert printed == coordinator_view(internal([own], "__transaction_state"))
    names, entries, present, complete, unreadable = printed
    assert len(names) > 10
    assert len(entries) > 5
    assert (present, complete, unreadable) == (True, True, [])


@pytest.mark.parametrize("version", ["3.9.1", "4.2.0"])
def test_the_blocks_of_a_metadata_log_are_those_of_its_segment(evidence, version, tmp_path):
    text = evidence.oracle(version, "dumps") / "cluster-metadata.txt"
    own = copies(evidence.oracle(version, "logdir") / "main", headers(text), tmp_path)
    (printed,), (binary,) = internal([text], "__cluster_metadata"), internal([own], "__cluster_metadata")
    ours, theirs = read_metadata_log(printed, open_segment), read_metadata_log(binary, open_segment)
    assert (ours.problems, ours.unreadable) == ([], [])
    assert len(ours.history.entries) >= 1
    assert [replace(entry, source="") for entry in ours.history.entries] == [
        replace(entry, source="") for entry in theirs.history.entries
    ]
    assert ours.history.observed_until_ms == theirs.history.observed_until_ms
    assert ours.extent == theirs.extent
    levels = feature_levels([printed], open_segment)
    assert levels == feature_levels([binary], open_segment)
    assert levels["metadata.version"] > 20


def codes(*paths, version):
    options = ScanOptions([str(path) for path in paths], jobs=1, broker_version=version, now_ms=1_800_000_000_000)
    return Counter(finding.code for finding in local.scan(options, SilentProgress()).findings)


@pytest.mark.parametrize("version", ["2.8.2", "3.9.1", "4.2.0"])
def test_a_marker_that_contradicts_the_printed_decision(evidence, version, tmp_path):
    dumps = evidence.oracle(version, "dumps")
    states, segments = dumps / "txnstate.txt", dumps / "segments-print-deep.txt"
    assert not {"KA306", "KA307", "KA308"} & set(codes(states, segments, version=version))
    turned = tmp_path / "turned.txt"
    turned.write_bytes(segments.read_bytes().replace(b"endTxnMarker: COMMIT", b"endTxnMarker: ABORT"))
    assert codes(states, turned, version=version)["KA306"] > 0


def test_an_illegal_transition_in_a_text(evidence, tmp_path):
    states = evidence.oracle("3.9.1", "dumps") / "txnstate.txt"
    turned = tmp_path / "turned.txt"
    turned.write_bytes(states.read_bytes().replace(b"state=PrepareCommit", b"state=Empty"))
    assert codes(turned, version="3.9.1")["KA307"] > 0


def test_a_text_without_the_decoders_output_is_said_to_be_unreadable(evidence):
    text = next((evidence.capture("txn-mix-2.8.2") / "dumps").glob("*__transaction_state-0__*.deep.txt"))
    names, _, present, complete, unreadable = coordinator_view(internal([text], "__transaction_state"))
    assert (names, present, complete) == ({}, True, False)
    assert "--transaction-log-decoder" in unreadable[0]
