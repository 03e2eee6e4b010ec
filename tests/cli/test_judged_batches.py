"""A report that names what it judged, held against the log later: what is the same, what is not, and what is only newer or older."""

import json
import os
import struct
from dataclasses import replace

import crc32c
import pytest

from kaudit.cli.exits import ExitCode
from tests.logs import Batch, Log

WIDTH = 1024


def log_of(batches: int, payload: bytes = b"x", first: int = 0) -> Log:
    """Batches of 100 records each."""
    log = Log(next_offset=first)
    for _ in range(batches):
        log.append(Batch(count=100, payload=payload))
    return log


@pytest.fixture
def site(tmp_path):
    """A log of 10,000 offsets in five segments, and a small one."""
    log_of(100).write(tmp_path / "site" / "orders-0", segment_starts=(2000, 4000, 6000, 8000))
    log_of(3).write(tmp_path / "site" / "orders-1")
    return tmp_path / "site"


@pytest.fixture
def report(kaudit, site, tmp_path):
    path = tmp_path / "report.json"
    outcome = kaudit("scan", "-q", "--digests", "--output-format", f"json:{path}", site)
    assert (outcome.code, outcome.out) == (ExitCode.OK, "")
    return path


def verified(kaudit, report, *paths):
    """The exit code, and what is said of each partition."""
    outcome = kaudit("diff", "-q", "--output-format", "json", report, *paths)
    document = json.loads(outcome.out)
    assert document["schema"] == "kaudit.verification/1"
    return outcome.code, {entry["partition"]: entry for entry in document["partitions"]}


def offsets(*ranges):
    return [{"first_offset": first, "last_offset": last} for first, last in ranges]


def test_the_same_log(kaudit, site, report):
    code, found = verified(kaudit, report, site)
    assert code == ExitCode.OK
    assert {entry["verdict"] for entry in found.values()} == {"unchanged"}
    assert found[0]["unchanged"] == offsets((0, 9999))
    outcome = kaudit("diff", report, site)
    assert "orders-0 unchanged: offsets 0..9999 are what the report audited." in outcome.out
    assert f"2 partitions unchanged, by the digests of {report}" in " ".join(outcome.out.split())


def changed_byte(content, at):
    content[at + 70] ^= 1


def changed_record(content, at):
    """Another payload, and the CRC that belongs to it: a valid batch."""
    content[at + 70] ^= 1
    size = 12 + int.from_bytes(content[at + 8 : at + 12], "big")
    content[at + 17 : at + 21] = struct.pack(">I", crc32c.crc32c(bytes(content[at + 21 : at + size])))


def changed_leader_epoch(content, at):
    content[at + 12 : at + 16] = struct.pack(">i", 7)


@pytest.mark.parametrize("change", [changed_byte, changed_record, changed_leader_epoch])
def test_what_was_changed_is_said(kaudit, site, report, change):
    segment = site / "orders-0" / f"{4000:020d}.log"
    content = bytearray(segment.read_bytes())
    change(content, len(content) // 20 * 5)  # the batch of offsets 4500 to 4599
    segment.write_bytes(content)
    code, found = verified(kaudit, report, site)
    assert code == ExitCode.FINDINGS
    assert (found[0]["verdict"], found[1]["verdict"]) == ("differs", "unchanged")
    assert found[0]["differing"] == offsets((4 * WIDTH, 5 * WIDTH - 1))
    assert found[0]["unchanged"] == offsets((0, 4 * WIDTH - 1), (5 * WIDTH, 9999))
    assert found[0]["damaged"] is (change is changed_byte)
    outcome = kaudit("diff", report, site)
    assert outcome.out.startswith(
        "orders-0 differs: not what the report audited, somewhere in each of offsets 4096..5119;"
    )
    assert kaudit("diff", "--exit-zero", report, site).code == ExitCode.OK


def test_what_was_written_since_is_no_difference(kaudit, site, report):
    with (site / "orders-0" / f"{8000:020d}.log").open("ab") as file:
        file.write(log_of(5, b"new", first=10_000).encode())
    code, found = verified(kaudit, report, site)
    assert (code, found[0]["verdict"]) == (ExitCode.OK, "unchanged")
    assert found[0]["grown"] == {"first_offset": 10_000, "last_offset": 10_499}
    assert "10000..10499 written since" in kaudit("diff", report, site).out


def test_what_retention_removed_since_is_no_difference(kaudit, site, report):
    (site / "orders-0" / f"{0:020d}.log").unlink()
    code, found = verified(kaudit, report, site)
    assert (code, found[0]["verdict"]) == (ExitCode.OK, "unchanged")
    assert found[0]["removed"] == {"first_offset": 0, "last_offset": 1999}
    # a digest of removed records and of some that are left
    assert found[0]["not_compared"] == offsets((2000, 2 * WIDTH - 1))
    assert found[0]["unchanged"] == offsets((2 * WIDTH, 9999))
    assert "0..1999 removed since, the log begins at 2000" in " ".join(kaudit("diff", report, site).out.split())


def test_nothing_is_proven_where_retention_removed_too_much(kaudit, site, report):
    for base in (0, 2000, 4000, 6000, 8000):
        (site / "orders-0" / f"{base:020d}.log").unlink()
    log_of(3, first=20_000).write(site / "orders-0")
    code, found = verified(kaudit, report, site)
    assert (code, found[0]["verdict"]) == (ExitCode.OK, "unproven")
    assert found[0]["removed"] == {"first_offset": 0, "last_offset": 9999}


def test_a_log_that_was_empty_and_still_is(kaudit, tmp_path):
    log_of(0).write(tmp_path / "site" / "orders-0")
    log_of(3).write(tmp_path / "site" / "orders-1")
    report = tmp_path / "report.json"
    kaudit("scan", "-q", "--digests", "--output-format", f"json:{report}", tmp_path / "site")
    code, found = verified(kaudit, report, tmp_path / "site")
    assert (code, found[0]["verdict"], found[0]["unchanged"]) == (ExitCode.OK, "unchanged", [])


def test_a_log_that_ends_before_what_was_judged_has_lost_it(kaudit, site, report):
    (site / "orders-0" / f"{8000:020d}.log").unlink()
    code, found = verified(kaudit, report, site)
    assert (code, found[0]["verdict"]) == (ExitCode.FINDINGS, "differs")
    assert (found[0]["lost"], found[0]["differing"]) == ({"first_offset": 8000, "last_offset": 9999}, [])
    assert "the log ends at 8000, offsets 8000..9999 are gone" in " ".join(kaudit("diff", report, site).out.split())


def test_a_partition_that_is_not_there_is_not_proven(kaudit, site, report):
    (site / "orders-1" / f"{0:020d}.log").unlink()
    (site / "orders-1").rmdir()
    code, found = verified(kaudit, report, site)
    assert (code, found[1]["verdict"]) == (ExitCode.FINDINGS, "missing")
    code, found = verified(kaudit, report, "--partition", 0, site)
    assert (code, list(found)) == (ExitCode.OK, [0])


@pytest.mark.parametrize("dirty", [6000, 3000])
def test_what_the_log_cleaner_may_have_rewritten_is_distinguished_from_the_rest(kaudit, site, report, dirty):
    (site / "cleaner-offset-checkpoint").write_text(f"0\n1\norders 0 {dirty}\n")
    log = log_of(100)
    segment = site / "orders-0" / f"{4000:020d}.log"
    # a cleaned batch: some of its records are gone
    own = [replace(batch, kept=3) if batch.base_offset == 4500 else batch for batch in log.batches[40:60]]
    segment.write_bytes(b"".join(batch.encode() for batch in own))
    code, found = verified(kaudit, report, site)
    what = "cleaned" if dirty == 6000 else "differing"
    assert found[0][what] == offsets((4 * WIDTH, 5 * WIDTH - 1))
    assert (code, found[0]["verdict"]) == (
        (ExitCode.OK, "cleaned") if dirty == 6000 else (ExitCode.FINDINGS, "differs")
    )


def test_a_log_that_was_compacted_when_it_was_judged_is_judged_whole(kaudit, site, tmp_path):
    (site / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 6000\n")
    path = tmp_path / "compacted.json"
    kaudit("scan", "-q", "--digests", "--output-format", f"json:{path}", site)
    code, found = verified(kaudit, path, site)
    assert (code, found[0]["unchanged"]) == (ExitCode.OK, offsets((0, 9999)))


def test_several_replicas_are_distinguished_by_their_names(kaudit, tmp_path):
    for name, payload in (("b1", b"x"), ("b2", b"y")):
        log_of(3, payload).write(tmp_path / "brokers" / name / "orders-0")
    path = tmp_path / "both.json"
    brokers = [tmp_path / "brokers" / name for name in ("b1", "b2")]
    kaudit("scan", "-q", "--digests", "--output-format", f"json:{path}", *brokers)
    outcome = kaudit("diff", path, *brokers)
    assert (outcome.code, "2 partitions unchanged" in outcome.out) == (ExitCode.OK, True)
    brokers[0].rename(tmp_path / "brokers" / "other")
    outcome = kaudit("diff", path, tmp_path / "brokers" / "other")
    assert (outcome.code, outcome.out) == (ExitCode.USAGE, "")
    assert "orders-0: the report audited b1, b2, and here lie other" in outcome.err


def test_a_file_that_cannot_be_read_is_no_difference(kaudit, site, report, monkeypatch):
    refused, real = str(site / "orders-0" / f"{4000:020d}.log"), os.open

    def guarded(path, *rest, **more):
        if str(path) == refused:
            raise PermissionError(13, "Permission denied", refused)
        return real(path, *rest, **more)

    monkeypatch.setattr(os, "open", guarded)
    outcome = kaudit("diff", "-q", "--output-format", "json", report, site)
    found = json.loads(outcome.out)["partitions"][0]
    assert (outcome.code, found["verdict"], found["differing"]) == (ExitCode.UNREADABLE, "unproven", [])


@pytest.mark.parametrize("form", ["table", "markdown", "html", "jsonl"])
def test_every_report_names_them(kaudit, site, report, form):
    digest = json.loads(report.read_text())["digests"]["partitions"][0]["digest"]
    for arguments in (["scan", "--digests", site], ["report", report]):
        assert digest in kaudit(*arguments, "--output-format", form).out.replace("\n    ", "")
    assert digest not in kaudit("scan", "--output-format", form, site).out


def test_a_saved_report_stays_what_it_is(kaudit, report):
    again = json.loads(kaudit("report", "--output-format", "json", report).out)
    assert again["digests"] == json.loads(report.read_text())["digests"]


def test_tables_have_a_row_for_each_partition(kaudit, site, report, tmp_path):
    import pyarrow.parquet

    kaudit("scan", "--digests", "--output-format", "parquet", "-o", tmp_path / "tables", site)
    rows = pyarrow.parquet.read_table(tmp_path / "tables" / "digests").to_pylist()
    document = json.loads(report.read_text())["digests"]
    assert [row | {"ranges": json.loads(row["ranges"])} for row in rows] == [
        entry | {"algorithm": document["algorithm"]} for entry in document["partitions"]
    ]
    kaudit("scan", "--output-format", "parquet", "-o", tmp_path / "without", site)
    assert not (tmp_path / "without" / "digests").exists()


def test_reports_without_digests_and_damaged_ones_are_one_line(kaudit, site, report, tmp_path):
    document = json.loads(report.read_text())
    partition = document["digests"]["partitions"][0]
    other = "0" * 64
    damaged = {
        "has no digests of the audited batches": {**document, "digests": None},
        "the digest of orders-0 is not that of its ranges": _with(document, {**partition, "digest": other}),
        "damaged kaudit.scan/1 document": _with(document, {**partition, "start_offset": -1}),
        "has digests of sha/9": {**document, "digests": {"algorithm": "sha/9", "partitions": []}},
        "a partition replica has two digests": _with(document, partition, partition),
        "is not that of its ranges": _with(document, {**partition, "ranges": None}),
    }
    for says, changed in damaged.items():
        path = tmp_path / "damaged.json"
        path.write_text(json.dumps(changed))
        outcome = kaudit("diff", path, site)
        assert (outcome.code, outcome.out) == (ExitCode.USAGE, "")
        assert says in outcome.err


def _with(document, *partitions):
    return {**document, "digests": {**document["digests"], "partitions": partitions}}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["scan", "--digests", "--depth", "headers", "SITE"], "--digests needs CRCs that were checked"),
        (["diff", "--depth", "headers", "REPORT", "SITE"], "--depth headers proves nothing"),
        (["diff", "REPORT", "REPORT"], "a saved report is compared with directories"),
        (["diff", "--name", "x=SITE", "REPORT", "SITE"], "a saved report is compared with directories"),
        (["diff", "--topic", "payments", "REPORT", "SITE"], "nothing to verify: the report names no digest"),
        (["diff", "REPORT", "nowhere"], "no such file or directory"),
        (["diff", "--fingerprint", "REPORT", "SITE"], "a kaudit.scan/1 document, not kaudit.fingerprint/1"),
        (["diff", "--output-format", "sarif", "REPORT", "SITE"], "table or json"),
    ],
)
def test_wrong_arguments_are_one_line(kaudit, site, report, arguments, says):
    given = [each.replace("SITE", str(site)).replace("REPORT", str(report)) for each in arguments]
    outcome = kaudit(*given)
    assert outcome.code in (ExitCode.USAGE, ExitCode.NOTHING_TO_AUDIT)
    assert says in outcome.err
