"""Segments in remote storage are audited alike by both engines, and by each as the whole log is on a disk."""

import pytest

import kaudit
from tests.engines.conftest import as_reported
from tests.engines.faulty_logs import corrupt, duplicates, hanging, healthy
from tests.partition.test_continued_producers import gaps, in_epochs
from tests.partition.test_continued_producers import tiered as tiered_log
from tests.remote_log import write_records
from tests.remote_storage import AivenPlugin, LocalTieredStorage, dated, move, split
from tests.scanning.test_remote_choice import Tiered, other

LOGS = {"healthy-0": healthy, "twice-0": duplicates, "open-0": hanging, "hurt-0": corrupt}
WRITTEN = 1_700_100_000


@pytest.fixture(params=["chunks", "zstd", "files"])
def tiered(request, tmp_path):
    """Logs with their first segments in remote storage, one of them with a chunk that cannot be decoded."""
    plugins = {"chunks": AivenPlugin(), "zstd": AivenPlugin(chunk_size=1000, compression=True)}
    plugin = plugins.get(request.param, LocalTieredStorage())
    for name, make in LOGS.items():
        directory = split(make(tmp_path / "data" / name))
        copies = move(directory, tmp_path / "remote", plugin)
        if name == "healthy-0":
            content = bytearray(copies[0].read_bytes())
            content[60:90] = bytes(30)
            copies[0].write_bytes(content)
    dated(tmp_path, WRITTEN)
    return tmp_path / "data", str(tmp_path / "remote")


@pytest.mark.jvm
def test_spark_finds_what_is_found_here(local, spark, spark_session, tiered):
    here, there = tiered
    expected = local.scan(here, remote=there)
    assert {"KA101", "KA301"} < {each.code for each in expected.findings}
    assert as_reported(spark.scan(here, remote=there)) == as_reported(expected)
    framed = kaudit.scan(here, remote=there, engine="spark", spark=spark_session)
    assert [(each.fingerprint, each.message) for each in framed.findings] == [
        (each.fingerprint, each.message) for each in expected.findings
    ]


@pytest.mark.jvm
def test_segments_are_chosen_and_producers_go_on_alike(local, spark, tmp_path):
    """By the records about them, one of which is older and has other records; and by a snapshot, where they are not read."""
    log = Tiered(tmp_path, LocalTieredStorage())
    log.copy(other(0, 30), again="first attempt")
    log.copy_all()
    write_records(log.here, log.records)
    start = tiered_log(in_epochs(gaps()), 20, tmp_path / "continued")
    dated(tmp_path, WRITTEN)
    chosen = local.scan(log.here, remote=str(log.there))
    assert any("1 whose copies have not finished" in entry.reason for entry in chosen.not_audited)
    assert as_reported(spark.scan(log.here, remote=str(log.there))) == as_reported(chosen)
    continued = local.scan(tmp_path / "continued")
    assert any(f"{start:020d}.snapshot" in entry.reason for entry in continued.not_audited)
    assert as_reported(spark.scan(tmp_path / "continued")) == as_reported(continued)


def test_lists_have_what_the_whole_log_has(local, tiered, tmp_path):
    """Of the logs whose copies are whole: one has a chunk that cannot be decoded."""
    here, there = tiered
    (tmp_path / "whole").mkdir()
    for name, make in LOGS.items():
        split(make(tmp_path / "whole" / name))
    dated(tmp_path / "whole", WRITTEN)
    topics = {"topics": [name.removesuffix("-0") for name in LOGS if name != "healthy-0"]}
    listed = [
        local.producers(path, remote=remote, **topics) for path, remote in ((here, there), (tmp_path / "whole", None))
    ]
    ids, expected = ([entry.producer_id for entry in each.producers] for each in listed)
    assert ids == expected
    assert len(ids) > 1
