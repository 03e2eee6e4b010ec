"""`kaudit diff` as a command: names, formats, exit codes, and input that is not as it should be."""

import json
import shutil
from dataclasses import replace

import jsonschema
import pyarrow.parquet
import pytest

from kaudit.cli.app import run
from kaudit.report.formats import FORMATS
from tests.diff.replicas import TOPIC, Copy, history
from tests.logs import BASE_TIMESTAMP, Batch
from tests.report.test_json_schemas import DOCUMENT, LINE, REGISTRY


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KAUDIT_ISOLATED", "1")
    monkeypatch.setenv("COLUMNS", "80")


def parted() -> tuple[Copy, Copy]:
    """One log up to offset 6, then two leaders."""
    log = history((0, 3))
    old, new = log.copy(), log.copy()
    old.append(2, 0, b"lost")
    new.append(1, 1, b"kept").append(3, 1, b"kept too")
    return old, new


def diff(*arguments) -> int:
    return run(["diff", *map(str, arguments)])


def document(capsys, *arguments):
    code = diff("--output-format", "json", "--reproducible", *arguments)
    return code, json.loads(capsys.readouterr().out)


def costs(finding):
    """The numbers of an impact, without what must not be done."""
    return {name: number for name, number in finding["impact"].items() if name != "cautions"}


def cautions(finding):
    return [(caution["act"], caution["target"]) for caution in finding["impact"].get("cautions", ())]


def test_diverged_replicas_fail_the_run_and_say_where(tmp_path, capsys):
    old, new = parted()
    code, report = document(capsys, old.write(tmp_path / "b1"), new.write(tmp_path / "b2"))
    assert code == 1
    (partition,) = report["partitions"]
    assert (partition["relation"], partition["common_end_offset"], partition["reference"]) == ("diverged", 6, "b2")
    assert partition["first_difference"]["offset"] == 6
    assert {name: batch["last_offset"] for name, batch in partition["first_difference"]["replicas"].items()} == {
        "b1": 7,
        "b2": 6,
    }
    assert partition["truncation_offset"] == {"b1": 6}
    assert partition["only_on"] == {
        "b1": {"first_offset": 6, "last_offset": 7},
        "b2": {"first_offset": 6, "last_offset": 9},
    }
    assert [finding["code"] for finding in report["findings"]] == ["KA601"]
    assert report["findings"][0]["replica"] == "b1"


def test_same_epoch_with_other_records_is_said_to_stay(tmp_path, capsys):
    log = history((3, 2))
    left, right = log.copy().append(2, 3, b"left"), log.copy().append(2, 3, b"right")
    code, report = document(capsys, left.write(tmp_path / "b1"), right.write(tmp_path / "b2"))
    assert code == 1
    (finding,) = report["findings"]
    assert finding["evidence"]["broker"].startswith("does not notice")
    assert report["partitions"][0]["truncation_offset"] == {"b2": 6}


def test_the_same_records_under_another_leader_epoch_are_a_note(tmp_path, capsys):
    log = history((0, 2))
    left, right = log.copy().append(2, 0, b"same"), log.copy().append(2, 1, b"same").append(2, 1, b"more")
    code, report = document(capsys, left.write(tmp_path / "b1"), right.write(tmp_path / "b2"))
    (finding,) = report["findings"]
    assert "the same records under another leader epoch" in finding["message"]
    assert (code, finding["severity"], finding["offset"]) == (0, "note", 4)
    assert costs(finding) == {"records_lost_at_least": 0, "records_lost_at_most": 0}
    assert report["partitions"][0]["relation"] == "diverged"


def test_other_records_behind_the_same_ones_under_another_leader_epoch_are_an_error(tmp_path, capsys):
    log = history((0, 2))
    left, right = log.copy().append(2, 0, b"same"), log.copy().append(2, 1, b"same").append(2, 1, b"new leader's")
    left.append(3, 0, b"old leader's")
    code, report = document(capsys, left.write(tmp_path / "b1"), right.write(tmp_path / "b2"))
    (finding,) = report["findings"]
    assert (code, finding["severity"], finding["offset"]) == (1, "error", 4)
    assert costs(finding) == {"records_lost_at_least": 3, "records_lost_at_most": 3}
    assert cautions(finding) == [("restart", "replica b1")]


def test_what_a_divergence_costs_is_counted_on_the_copy_that_goes(tmp_path, capsys):
    log = history((0, 3))
    old, new = log.copy(), log.copy().append(1, 1, b"new")
    old.append(4, 0, b"acknowledged").append(2, 0, b"acknowledged by the leader alone")
    # a retry that the new leader took, at another offset
    again = Batch(count=3, base_offset=old.end, producer_id=7, epoch=0, sequence=0, payload=b"sent again")
    old.batches.append(again)
    new.batches.append(replace(again.at(new.end), leader_epoch=1))
    old.high_watermark = 9  # within the first of its own batches
    third = old.copy()
    paths = [log.write(tmp_path / name) for name, log in (("b1", old), ("b2", new), ("b3", third))]
    _, report = document(capsys, *paths)
    (finding,) = report["findings"]
    assert costs(finding) == {"records_lost_at_least": 6, "records_lost_at_most": 6}
    missing = finding["evidence"]["missing_on_reference"]["b1"]
    assert (missing["below_high_watermark"], missing["without_producer_id"], missing["elsewhere"]) == (3, 3, 3)


@pytest.mark.parametrize("mark", [None, 4, 5, 8])
def test_what_one_replica_alone_holds_is_an_error_below_the_high_watermark(tmp_path, capsys, mark):
    log = history((0, 4))
    short = log.copy()
    short.batches = short.batches[:2]
    log.high_watermark = mark
    short.high_watermark = None if mark is None else 2  # written down earlier: the highest counts
    code, report = document(capsys, log.write(tmp_path / "b1"), short.write(tmp_path / "b2"))
    alone = next(finding for finding in report["findings"] if finding["code"] == "KA603")
    below = mark is not None and mark > 4
    assert (alone["severity"], alone["offset"], alone["last_offset"]) == ("error" if below else "warning", 4, 7)
    assert code == (1 if below else 0)
    assert costs(alone) == {"records_lost_at_least": 0, "records_lost_at_most": 4}
    behind = next(finding for finding in report["findings"] if finding["code"] == "KA602")
    assert (behind["severity"], behind["replica"], behind["impact"]) == ("note", "b2", {"records_lost_at_most": 0})


@pytest.mark.parametrize(
    ("producer_ids", "lag_ms", "mark", "severity", "at_most"),
    [
        ((7, 7), 9_000, 4, "note", 0),
        ((7, -1), 9_000, 4, "warning", 2),  # without idempotence acks=1 is possible
        ((7, 7), 10_000, 4, "warning", 4),  # the other one may have left the in-sync replicas since
        ((7, 7), 9_000, None, "warning", 4),
        ((7, 7), 9_000, 6, "error", 2),
        ((7, -1), 9_000, 6, "error", 4),
        ((-1, 7), 9_000, 6, "error", 2),
    ],
)
def test_what_is_above_the_high_watermark_is_acknowledged_with_acks_1_only(
    tmp_path, capsys, producer_ids, lag_ms, mark, severity, at_most
):
    log = history((0, 2))
    short = log.copy()
    for number, producer_id in enumerate(producer_ids):
        log.append(2, 0, b"tail %d" % number, producer_id=producer_id, timestamp=BASE_TIMESTAMP + number * lag_ms)
    log.high_watermark = mark
    code, report = document(capsys, log.write(tmp_path / "b1"), short.write(tmp_path / "b2"))
    alone = next(finding for finding in report["findings"] if finding["code"] == "KA603")
    assert (alone["severity"], alone["offset"], alone["last_offset"]) == (severity, 4, 7)
    assert costs(alone) == {"records_lost_at_least": 0, "records_lost_at_most": at_most}
    assert cautions(alone) == ([("delete", "replica b1"), ("elect", "b2 (orders-0)")] if at_most else [])
    assert ("no acknowledgement" in alone["message"]) is (mark == 4 and lag_ms == 9_000)
    assert ("acks=1" in alone["message"]) is (producer_ids == (7, -1) and mark == 4)
    assert code == (1 if severity == "error" else 0)


def failed_over(start: int, *, copies: int = 1) -> tuple[list[Copy], Copy]:
    """Replicas of an old leader up to offset 8, and a new one that ends at 4 and whose epoch 1 begins at `start`."""
    old, new = history((0, 4)), history((0, 2))
    new.checkpoint = [(0, 0), (1, start)]
    return [old.copy() for _ in range(copies)], new


@pytest.mark.parametrize("copies", [1, 2])
def test_what_a_newer_leader_that_wrote_nothing_yet_began_without_has_diverged(tmp_path, capsys, copies):
    old, new = failed_over(4, copies=copies)
    paths = [log.write(tmp_path / f"b{number}") for number, log in enumerate([*old, new], 1)]
    code, report = document(capsys, *paths)
    (partition,), (finding,) = report["partitions"], report["findings"]
    name = f"b{copies + 1}"
    assert (partition["relation"], partition["reference"], partition["first_difference"]) == ("diverged", name, None)
    # LeaderEpochFileCache.endOffsetFor: epoch 0 ends where epoch 1 begins
    assert partition["truncation_offset"] == {f"b{number}": 4 for number in range(1, copies + 1)}
    assert (code, finding["code"], finding["replica"]) == (1, "KA601", "b1")
    assert (finding["offset"], finding["last_offset"]) == (4, 7)
    assert finding["evidence"]["broker"].startswith("truncates b1 to offset 4 when it follows")
    assert "drops its offsets 4..7" in finding["evidence"]["broker"]


def test_without_leader_epochs_a_follower_goes_by_its_high_watermark(tmp_path, capsys):
    # before 0.11 batches have none, and KIP-101 does not apply
    log = history((-1, 2))
    left, right = log.copy().append(2, -1, b"left").append(2, -1, b"more"), log.copy().append(2, -1, b"right")
    code, report = document(capsys, left.write(tmp_path / "b1"), right.write(tmp_path / "b2"))
    (partition,), (finding,) = report["partitions"], report["findings"]
    assert (code, finding["code"], finding["replica"], finding["offset"]) == (1, "KA601", "b2", 4)
    assert (partition["relation"], partition["reference"]) == ("diverged", "b1")
    assert (partition["leader_epochs"], partition["truncation_offset"]) == ({"b1": [], "b2": []}, {"b2": None})
    assert finding["evidence"]["broker"] == (
        "has no leader epochs to go by: b2 truncates to its high watermark when it follows b1"
    )


def test_a_follower_without_leader_epochs_is_cut_nowhere_by_them(tmp_path, capsys):
    # b1 has an epoch, b2 none: the longer history with epochs is what is compared with
    old, new = history((-1, 3)), history((2, 3))
    code, report = document(capsys, old.write(tmp_path / "b1"), new.write(tmp_path / "b2"))
    (partition,) = report["partitions"]
    assert (partition["reference"], partition["truncation_offset"]) == ("b2", {"b1": None})
    assert code == 1


def test_a_leader_epoch_beyond_the_end_of_its_log_is_ignored(tmp_path, capsys):
    # the checkpoint was copied later than the log: brokers drop such an entry when they load the log
    (old,), new = failed_over(8)
    _, report = document(capsys, old.write(tmp_path / "b1"), new.write(tmp_path / "b2"))
    assert (report["partitions"][0]["relation"], report["partitions"][0]["reference"]) == ("behind", "b1")
    assert [finding["code"] for finding in report["findings"]] == ["KA603", "KA602"]


def test_a_batch_with_a_broken_crc_is_damage_of_that_replica_not_a_divergence(tmp_path, capsys):
    log = history((0, 4))
    left, right = log.write(tmp_path / "b1"), log.write(tmp_path / "b2")
    segment = right / f"{TOPIC}-0" / f"{0:020d}.log"
    content = bytearray(segment.read_bytes())
    content[len(log.batches[0].encode()) + 70] ^= 1
    segment.write_bytes(content)
    code, report = document(capsys, left, right)
    assert code == 1
    assert [(finding["code"], finding["replica"], finding["offset"]) for finding in report["findings"]] == [
        ("KA001", "b2", 2)
    ]
    assert report["partitions"][0]["relation"] == "identical"


def test_a_torn_tail_is_reported_as_such_and_not_as_a_lagging_replica(tmp_path, capsys):
    log = history((0, 4))
    left, right = log.write(tmp_path / "b1"), log.write(tmp_path / "b2")
    segment = right / f"{TOPIC}-0" / f"{0:020d}.log"
    segment.write_bytes(segment.read_bytes()[:-10])
    _, report = document(capsys, left, right)
    assert {finding["code"] for finding in report["findings"]} == {"KA002", "KA603"}


def test_segments_rolled_elsewhere_and_an_older_log_start_are_silent(tmp_path, capsys):
    left, right = history((0, 3), (2, 3)), history((0, 3), (2, 3))
    left.rolls = (4, 8)
    right.batches = right.batches[2:]
    right.rolls = (6,)
    code, report = document(capsys, left.write(tmp_path / "b1"), right.write(tmp_path / "b2"))
    assert (code, report["findings"], report["partitions"][0]["relation"]) == (0, [], "identical")


def test_offsets_below_a_log_start_are_not_compared(tmp_path, capsys):
    left, right = history((0, 1), (0, 3)), history((0, 1), (0, 3))
    left.batches[0] = type(left.batches[0])(**{**vars(left.batches[0]), "payload": b"other"})
    paths = left.write(tmp_path / "b1"), right.write(tmp_path / "b2")
    assert diff(*paths) == 1
    capsys.readouterr()
    (tmp_path / "b2" / "log-start-offset-checkpoint").write_text(f"0\n1\n{TOPIC} 0 2\n")
    assert diff(*paths) == 0


def test_a_partition_on_one_replica_only_is_no_finding(tmp_path, capsys):
    for name in ("b1", "b2"):
        history((0, 2)).write(tmp_path / name)
        (tmp_path / name / f"{TOPIC}-0").rename(tmp_path / name / f"{name}-0")
        history((0, 2)).write(tmp_path / name)
    code, report = document(capsys, "b1", "b2")
    assert code == 0
    assert [(part["topic"], part["relation"], part["missing_on"]) for part in report["partitions"]] == [
        ("b1", "missing", ["b2"]),
        ("b2", "missing", ["b1"]),
        (TOPIC, "identical", []),
    ]
    assert report["not_audited"][0]["path"] == "b1-0 and 1 more"


def test_directories_with_nothing_in_common_are_exit_3_and_say_what_they_have(tmp_path, capsys):
    for name in ("b1", "b2"):
        history((0, 2)).write(tmp_path / name)
    (tmp_path / "b1" / f"{TOPIC}-0").rename(tmp_path / "b1" / "alone-0")
    assert diff("b1", "b2") == 3
    output = capsys.readouterr()
    assert "no two of these have a partition in common: b1 has alone-0; b2 has orders-0" in output.err
    code, report = document(capsys, "b1", "b2")
    assert (code, report["partitions"], report["incomplete"]) == (3, [], True)


@pytest.mark.parametrize("common", [True, False])
def test_a_directory_that_cannot_be_listed_is_exit_4(tmp_path, capsys, monkeypatch, common):
    from kaudit.source.local import LocalFileSystem

    history((0, 2)).write(tmp_path / "b1")
    history((0, 2)).write(tmp_path / "b2")
    real = LocalFileSystem.entries
    closed = ("orders-0",) if common else ("b2",)

    def entries(self, place):
        if place.name in closed and "b2" in str(place):
            raise PermissionError(13, "Permission denied", str(place))
        return real(self, place)

    monkeypatch.setattr(LocalFileSystem, "entries", entries)
    code, report = document(capsys, "b1", "b2")
    assert (code, report["findings"], report["incomplete"]) == (4, [], True)
    assert any("Permission denied" in entry["reason"] for entry in report["not_audited"])


def test_an_empty_replica_is_behind(tmp_path, capsys):
    code, report = document(capsys, history((0, 2)).write(tmp_path / "b1"), Copy().write(tmp_path / "b2"))
    assert code == 0
    assert report["partitions"][0]["end_offset"] == {"b1": 4, "b2": 0}
    assert report["partitions"][0]["common_end_offset"] == 0


def test_names_are_the_shortest_suffix_or_as_said(tmp_path, capsys):
    for side in ("left/kafka", "right/kafka", "third"):
        history((0, 1)).write(tmp_path / side)
    _, report = document(capsys, "left/kafka", "right/kafka", "--name", "new=third", "third")
    assert [replica["name"] for replica in report["replicas"]] == ["left/kafka", "right/kafka", "new"]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["b1"], "two or more directories"),
        (["b1", "nowhere"], "no such file or directory: nowhere"),
        (["b1", "b1"], "given twice"),
        (["b1", "b1/../b1"], "given twice"),
        (["--name", "x", "b1", "b2"], "write NAME=DIR"),
        (["--name", "x=b3", "b1", "b2"], "b3 is not among the directories"),
        (["--name", "b2=b1", "b1", "b2"], "same name"),
        ([".", "b1"], "twice"),
        (["--output-format", "nonsense", "b1", "b2"], "no such format"),
    ],
)
def test_wrong_use_is_reported_in_one_line(tmp_path, capsys, arguments, word):
    for name in ("b1", "b2"):
        history((0, 1)).write(tmp_path / name)
    assert diff(*arguments) == 2
    output = capsys.readouterr()
    assert word in output.err
    assert output.err.count("\n") == 1
    assert not output.out


@pytest.mark.parametrize("partition", [None, f"{TOPIC}-0"])
def test_nothing_to_compare_is_exit_3_and_a_valid_document(tmp_path, capsys, partition):
    for name in ("b1", "b2"):
        (tmp_path / name).mkdir()
        if partition is not None:
            (tmp_path / name / partition).mkdir()
            (tmp_path / name / partition / "leader-epoch-checkpoint").write_text("0\n0\n")
    code, report = document(capsys, "b1", "b2")
    assert (code, report["schema"], report["partitions"], report["incomplete"]) == (3, "kaudit.diff/1", [], True)
    assert {entry["reason"] for entry in report["not_audited"]} == {
        "nothing to compare under b1, b2: no segment was found"
    }


def test_a_segment_that_fails_to_be_read_claims_nothing_about_the_rest(tmp_path, capsys, monkeypatch):
    from kaudit.engines import local as engine

    history((0, 3)).write(tmp_path / "b1")
    history((0, 3)).write(tmp_path / "b2")
    real = vars(engine)["open_segment"]

    def failing(segment):
        if "b2" in segment.path:
            raise PermissionError(13, "Permission denied", segment.path)
        return real(segment)

    monkeypatch.setattr(engine, "open_segment", failing)
    code, report = document(capsys, "b1", "b2")
    assert (code, report["findings"], report["partitions"], report["incomplete"]) == (4, [], [], True)


def test_a_text_has_no_bytes_to_compare(tmp_path, capsys, evidence):
    text = min((evidence.capture("retry-dup") / "dumps").glob("*nonidem-dup*.log.*.txt"))
    paths = [shutil.copy(text, tmp_path / name) for name in ("b1.txt", "b2.txt")]
    code, report = document(capsys, *paths)
    assert (code, report["findings"], report["partitions"], report["incomplete"]) == (4, [], [], True)
    assert {entry["path"]: entry["reason"] for entry in report["not_audited"]} == dict.fromkeys(
        map(str, paths), "text of kafka-dump-log: replicas are compared by their bytes"
    )


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_reports_it_and_exits_alike(tmp_path, capsys, name):
    old, new = parted()
    paths = old.write(tmp_path / "b1"), new.write(tmp_path / "b2")
    if name == "parquet":
        assert diff("--output-format", "parquet", "--output", tmp_path / "tables", *paths) == 1
        rows = pyarrow.parquet.read_table(next((tmp_path / "tables" / "comparisons").glob("*.parquet"))).to_pylist()
        assert [
            (row["replica"], row["relation"], row["first_difference"], row["only_last_offset"]) for row in rows
        ] == [
            ("b1", "diverged", 6, 7),
            ("b2", None, 6, 9),
        ]
        return
    assert diff("--output-format", name, *paths) == 1
    output = capsys.readouterr()
    assert "replicas-diverged" in output.out or "KA601" in output.out
    if name == "json":
        validate(DOCUMENT, json.loads(output.out))
    if name == "jsonl":
        lines = [json.loads(line) for line in output.out.splitlines()]
        assert [line["type"] for line in lines] == ["partition", "finding", "summary"]
        for line in lines:
            validate(LINE, line)


def validate(schema, value) -> None:
    jsonschema.Draft202012Validator(schema, registry=REGISTRY).validate(value)


def test_a_baseline_knows_what_was_accepted(tmp_path, capsys):
    old, new = parted()
    paths = old.write(tmp_path / "b1"), new.write(tmp_path / "b2")
    _, report = document(capsys, *paths)
    print_of = report["findings"][0]["fingerprint"]
    (tmp_path / "known.json").write_text(
        json.dumps(
            {"schema": "kaudit.baseline/1", "entries": [{"fingerprint": print_of, "code": "KA601", "summary": "known"}]}
        )
    )
    assert diff("--baseline", "known.json", *paths) == 0


def test_the_text_wraps_at_80_and_shows_both_copies(tmp_path, capsys, monkeypatch):
    old, new = parted()
    old.write(tmp_path / "b1")
    new.write(tmp_path / "b2")
    monkeypatch.chdir(tmp_path)
    diff("-v", "b1", "b2")
    text = capsys.readouterr().out
    assert all(len(line) <= 80 for line in text.splitlines() if "kaudit inspect" not in line)
    assert "> on b1" in text
    assert "> on b2" in text
    assert "b1 to 6" in text
