"""Producer ids of real clusters against the blocks that were really granted."""

import json
from typing import Any

import pytest

from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.listings.query import Query, SortKey
from kaudit.model.severity import Severity
from kaudit.scanning.options import ScanOptions


def listed(path, query=None, **options):
    scan_options = ScanOptions(paths=[str(path)], jobs=1, **options)
    return local.producers(scan_options, SilentProgress(), query or Query())


def graver_than_a_note(result):
    return [finding for finding in result.scan.findings if finding.severity is not Severity.NOTE]


@pytest.mark.parametrize("inside", [True, False], ids=["zookeeper inside the input", "zookeeper beside it"])
def test_every_id_of_the_capture_is_of_the_block_its_broker_held(evidence, inside):
    root = evidence.capture("zk-pid-blocks")
    result = listed(root if inside else root / "logdirs")
    assert graver_than_a_note(result) == []
    # The grants listed in tests/data/captures/zk-pid-blocks.md.
    holders = {0: 0, 1000: 1, 2000: 1, 3000: 0, 4000: 0, 5000: 1, 6000: 0, 7000: 1, 8000: 1}
    assert {block.start: block.broker for block in result.blocks} == holders
    blocks: dict[Any, Any] = {}
    for producer in result.producers:
        (grant,) = producer.grants
        assert grant.start <= producer.producer_id <= grant.end
        blocks.setdefault(grant.start, []).append(producer.producer_id)
    phases = json.loads((root / "truth.json").read_text())["pids_seen_per_phase"]
    seen = {value for ranges in phases.values() for first, last in ranges for value in range(first, last + 1)}
    assert {value for ids in blocks.values() for value in ids} == seen | {6079}
    assert sorted(blocks) == [0, 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000]


def test_the_transactional_id_of_the_capture_is_named(evidence):
    result = listed(evidence.capture("zk-pid-blocks"), Query(min_epochs=2))
    (producer,) = result.producers
    assert (producer.producer_id, producer.transactional_id) == (6079, "fixed-tid")
    place = producer.partitions[0]
    assert (place.topic, place.first_epoch, place.last_epoch, place.epochs) == ("fixed", 0, 3, 4)
    # two replicas of one partition: the totals count it once
    assert [entry.replica for entry in producer.partitions] == ["b0", "b1"]
    assert producer.batches == place.batches == 4


def test_a_flood_is_noted_with_its_figures(evidence):
    result = listed(evidence.capture("cross-session") / "logdirs", Query(summary_only=True), topics=("explosion",))
    (flood,) = [finding for finding in result.scan.findings if finding.code == "KA405"]
    # tests/data/captures/cross-session.md: 800 short-lived ids with two records each
    assert (flood.topic, flood.partition, flood.evidence["count"]) == ("explosion", 0, 800)
    ids = result.summary["ids"]
    assert (ids["found"], ids["records"], ids["alive"]) == (800, 1600, {"1d": 800, "7d": 800})
    assert result.listed == 0
    assert list(result.producers) == []
    # the blocks are read from the metadata log although --topic did not choose it
    assert result.summary["blocks"][0]["complete"] is True


@pytest.mark.parametrize("name", ["clients-mix", "retry-dup", "cross-session", "zk-pid-blocks", "legacy-formats"])
def test_captures_with_a_history_have_no_id_of_nobody(evidence, name):
    options = ScanOptions(paths=[str(evidence.capture(name))], jobs=2)
    found = local.scan(options, SilentProgress()).findings
    assert [finding for finding in found if finding.code in ("KA401", "KA402", "KA403", "KA404", "KA406")] == []


@pytest.mark.parametrize("version", ["3.9.1", "4.2.0"])
def test_the_blocks_of_a_metadata_log_equal_what_brokers_answered(evidence, version):
    result = listed(evidence.oracle(version, "logdir") / "pid1")
    assert [(block.start, block.end, block.broker) for block in result.blocks] == [
        (start, start + 999, 1) for start in range(0, 6000, 1000)
    ]
    assert result.summary["blocks"][0]["next"] == {"start": 6000, "end": 6999}
    assert graver_than_a_note(result) == []


def test_clusters_of_one_id_do_not_judge_each_other(evidence):
    # expiry, main and pid1 are three clusters, set up with the same cluster id
    result = listed(evidence.oracle("3.9.1", "logdir"))
    assert [finding for finding in result.scan.findings if finding.code == "KA402"] == []
    assert len(result.summary["blocks"]) >= 2


@pytest.mark.parametrize("version", ["1.1.1", "2.0.1", "2.8.2"])
def test_the_forged_znode_is_named_and_made_up_ids_are_found(evidence, version):
    zookeeper = str(evidence.oracle(version, "zk") / "pid-data")
    result = listed(evidence.oracle(version, "logdir") / "main", zookeeper=zookeeper)
    codes: dict[str, Any] = {}
    for finding in result.scan.findings:
        codes.setdefault(finding.code, []).append(finding)
    # A regressed znode, a value that is no JSON, a foreign version, the end of the range (oracle/README, pid_blocks.json).
    assert [finding.evidence["first_id"] for finding in codes["KA402"]] == [0, 1000, 2000]
    assert len(codes["KA403"]) == 2
    assert [finding.evidence["class"] for finding in codes["KA406"]] == ["near", "exhausted"]
    assert {900_001, 900_002, 900_003} <= {finding.producer_id for finding in codes["KA401"]}
    # an exhausted counter overflows: only then ids below 0 are looked for
    assert -2 in {finding.producer_id for finding in codes["KA401"]}
    doubled = {producer.producer_id for producer in result.producers if len(producer.grants) == 2}
    assert doubled
    assert all(0 <= producer_id <= 2999 for producer_id in doubled)


def test_order_and_filters(evidence):
    root = evidence.capture("zk-pid-blocks") / "logdirs"
    producers = list(listed(root).producers)
    everything = [producer.producer_id for producer in producers]
    assert everything == sorted(everything)
    backwards = listed(root, Query(reverse=True, limit=3))
    assert [producer.producer_id for producer in backwards.producers] == everything[:-4:-1]
    assert (backwards.found, backwards.listed) == (len(everything), 3)
    assert backwards.summary["ids"]["chosen"] == len(everything)  # the figures are of all that were chosen
    busiest = list(listed(root, Query(sort=SortKey.BATCHES, limit=2)).producers)
    assert busiest[0].producer_id == 6079
    assert busiest[0].batches >= busiest[1].batches
    oldest = list(listed(root, Query(sort=SortKey.FIRST)).producers)
    assert [producer.first_timestamp for producer in oldest] == sorted(producer.first_timestamp for producer in oldest)
    noted = listed(root, Query(with_findings=True, sort=SortKey.FINDINGS))
    assert [producer.producer_id for producer in noted.producers] == [6079]
    assert listed(root, Query(min_batches=2)).listed == 1
    assert listed(root, Query(max_batches=1)).listed == len(everything) - 1
    latest = max(producer.last_timestamp for producer in producers)
    young = listed(root, Query(max_age_ms=0), now_ms=latest)
    assert {producer.last_timestamp for producer in young.producers} == {latest}
    assert listed(root, Query(min_age_ms=1), now_ms=latest).listed == len(everything) - young.listed
    assert listed(root, since_ms=latest).listed == young.listed
