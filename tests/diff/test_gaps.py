"""A batch that one copy lacks in the middle of its log: reported where nothing says that the log cleaner took it."""

import json
import tempfile
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaudit.audits.replicas import missing_records
from kaudit.cli.app import run
from tests.diff.replicas import TOPIC, Copy, broker, history
from tests.diff.test_broker_copies import after
from tests.diff.test_command import validate
from tests.diff.test_relations import run as compare_paths
from tests.report.test_json_schemas import DOCUMENT


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KAUDIT_ISOLATED", "1")
    monkeypatch.setenv("COLUMNS", "80")


def without(log: Copy, *numbers: int) -> Copy:
    """The log without these batches."""
    kept = log.copy()
    kept.batches = [batch for number, batch in enumerate(log.batches) if number not in numbers]
    return kept


def keyed(log: Copy) -> Copy:
    return replace(log, batches=[replace(batch, key=b"key") for batch in log.batches])


def never_cleaned(name: str) -> None:
    """The checkpoint of a log cleaner that cleaned nothing: brokers create it empty."""
    Path(name, "cleaner-offset-checkpoint").write_text("0\n0\n")


def compare(capsys, *options: str, **copies: Copy):
    for name, log in copies.items():
        log.write(Path(name))
    return judge(capsys, *options, *copies)


def judge(capsys, *arguments: str):
    code = run(["diff", "--output-format", "json", "--reproducible", *arguments])
    document = json.loads(capsys.readouterr().out)
    validate(DOCUMENT, document)
    return code, document["partitions"][0], document["findings"]


def test_a_batch_cut_out_of_one_replica_is_no_identity(capsys):
    log = history((0, 5))
    code, partition, findings = compare(capsys, b1=log, b2=without(log, 2), b3=log)
    assert (code, partition["relation"], partition["common_end_offset"]) == (1, "diverged", 4)
    assert partition["first_difference"] is None
    size = len(log.batches[0].encode())
    (gap,) = partition["gaps"]
    assert gap == {
        "first_offset": 4, "last_offset": 5, "missing_on": ["b2"], "held_by": ["b1", "b3"],
        "segment": 0, "position": 2 * size, "records": 2, "may_be_compaction": False,
    }  # fmt: skip
    (finding,) = findings
    assert (finding["code"], finding["severity"], finding["confidence"]) == ("KA601", "error", "certain")
    assert finding["message"] == "b2 lacks offsets 4..5, where b1 and b3 hold 2 records"
    assert (finding["replica"], finding["offset"], finding["last_offset"]) == ("b2", 4, 5)
    assert finding["position"] == 2 * size
    assert finding["impact"] == {"records_lost_at_least": 0, "records_lost_at_most": 2}


def test_a_segment_that_was_not_copied_is_one_finding_for_all_that_lack_it(capsys):
    log = replace(history((0, 6)), rolls=(4, 8))
    code, partition, findings = compare(capsys, b1=without(log, 2, 3), b2=log, b3=without(log, 2, 3))
    assert (code, partition["relations"]) == (1, {"b2": "diverged", "b3": "identical"})
    (finding,) = findings
    assert finding["message"] == "b1 and b3 lack offsets 4..7, where b2 holds 4 records"
    assert (finding["segment"], finding["position"]) == ("00000000000000000008.log", 0)


def test_copies_of_one_broker_differ_as_well(capsys):
    log = history((0, 4))
    for name, copy in {"old": log, "new": without(after(log, epoch=0, payload=b"more"), 1)}.items():
        broker(copy.write(Path(name)), 1)
    code, partition, (finding,) = judge(capsys, "old", "new")
    assert (code, finding["code"], finding["message"]) == (
        1, "KA601", "new lacks offsets 2..3, where old holds 2 records",
    )  # fmt: skip
    assert [change["relation"] for change in partition["moments"]] == ["diverged"]


def test_where_copies_hold_different_histories_nothing_is_compared_beyond(capsys):
    log = history((0, 3))
    ours, theirs = log.copy(), log.copy()
    for number in range(3):
        ours.append(2, 1, b"ours%d" % number)
        theirs.append(2, 2, b"theirs%d" % number)
    _, partition, findings = compare(capsys, b1=without(ours, 4), b2=theirs)
    assert partition["gaps"] == []
    assert {finding["code"] for finding in findings} == {"KA601"}
    assert {finding["offset"] for finding in findings} == {6}


@pytest.mark.parametrize("missing", [(0,), (0, 1), (4,), (3, 4)])
def test_a_later_start_and_an_earlier_end_are_no_gaps(capsys, missing):
    log = history((0, 5))
    _, partition, findings = compare(capsys, b1=log, b2=without(log, *missing))
    assert partition["gaps"] == []
    assert all(finding["code"] in ("KA602", "KA603") for finding in findings)


# what says that a topic is, or may be, compacted


def test_the_option_the_checkpoint_and_the_topic_say_that_it_is_compacted(capsys):
    log = history((0, 5))
    assert compare(capsys, "--compacted", b1=log, b2=without(log, 2))[::2] == (0, [])
    Path("b1", "cleaner-offset-checkpoint").write_text(f"0\n1\n{TOPIC} 0 8\n")
    code, partition, findings = judge(capsys, "b1", "b2")
    assert (code, partition["relation"], findings) == (0, "identical", [])


def test_traces_of_the_cleaner_in_either_copy_speak_for_it(capsys):
    log = history((0, 5))
    thinned = without(log, 2)
    thinned.batches[0] = replace(thinned.batches[0], kept=1)
    code, partition, findings = compare(capsys, b1=log, b2=thinned)
    assert (code, partition["relation"], findings) == (0, "identical", [])


def test_offsets_that_no_copy_has_speak_for_it(capsys):
    log = without(history((0, 6)), 1)
    code, partition, findings = compare(capsys, b1=log, b2=without(log, 2))
    assert (code, partition["relation"], findings) == (0, "identical", [])


def test_one_removed_batch_of_keyed_records_and_no_checkpoint_may_be_compaction(capsys):
    log = keyed(history((0, 5)))
    code, partition, (finding,) = compare(capsys, b1=log, b2=without(log, 2))
    assert (code, partition["gaps"][0]["may_be_compaction"]) == (0, True)
    assert (finding["code"], finding["severity"], finding["confidence"]) == ("KA601", "warning", "possible")
    (innocent,) = [entry["cause"] for entry in finding["explanations"] if entry["innocent"]]
    assert "--compacted" in innocent


def test_a_cleaner_that_never_cleaned_the_log_did_not_take_keyed_records_either(capsys):
    log = keyed(history((0, 5)))
    for name, copy in {"b1": log, "b2": without(log, 2)}.items():
        copy.write(Path(name))
        never_cleaned(name)
    code, _, (finding,) = judge(capsys, "b1", "b2")
    assert (code, finding["severity"]) == (1, "error")


MIXED = [b"key", None]
"""Keys of a log of two batches in a gap: the second has a record without one."""


def gap_between(keys: list[bytes | None], payload: bytes = b"") -> tuple[Copy, Copy]:
    """A log with a batch for each of these keys, and one that lacks them."""
    log = keyed(history((0, 1)))
    for key in keys:
        log.append(2, 0, payload or b"p", key=key)
    log.append(2, 0, b"end", key=b"key")
    return log, without(log, *range(1, len(keys) + 1))


@pytest.mark.parametrize(
    ("keys", "rolls", "may_be_compaction"),
    [
        ([b"key", b"key"], (), True),
        (MIXED, (), False),
        (MIXED, (4,), False),
        (MIXED[::-1], (4,), False),
        ([b"key"], (), True),
    ],
)
def test_a_record_without_a_key_anywhere_in_the_gap_was_not_compacted(capsys, keys, rolls, may_be_compaction):
    log, cut = gap_between(keys)
    _, partition, _ = compare(capsys, b1=replace(log, rolls=rolls), b2=cut)
    (gap,) = partition["gaps"]
    assert (gap["records"], gap["may_be_compaction"]) == (2 * len(keys), may_be_compaction)


def test_records_around_the_gap_say_nothing_of_it(capsys):
    log = history((0, 5))
    log.batches[2] = replace(log.batches[2], key=b"key")
    _, partition, _ = compare(capsys, b1=log, b2=without(log, 2))
    assert partition["gaps"][0]["may_be_compaction"] is True


def test_keys_are_looked_for_in_so_many_batches_of_such_a_size(capsys, monkeypatch):
    log, cut = gap_between([*MIXED, b"key"])
    monkeypatch.setattr(missing_records, "_MOST_UNPACKED", 2)
    assert compare(capsys, b1=log, b2=cut)[1]["gaps"][0]["may_be_compaction"] is False
    monkeypatch.setattr(missing_records, "_MOST_UNPACKED", 1)
    assert judge(capsys, "b1", "b2")[1]["gaps"][0]["may_be_compaction"] is True
    assert compare(capsys, b5=replace(log, rolls=(4,)), b6=cut)[1]["gaps"][0]["may_be_compaction"] is True
    others = dict(zip(("b3", "b4"), gap_between([None, b"key"]), strict=True))
    assert compare(capsys, **others)[1]["gaps"][0]["may_be_compaction"] is False
    monkeypatch.setattr(missing_records, "_MOST_UNPACKED", 9)
    size = max(len(log.batches[number].encode()) for number in (1, 2))
    monkeypatch.setattr(missing_records, "_LARGEST_UNPACKED", size)
    assert judge(capsys, "b1", "b2")[1]["gaps"][0]["may_be_compaction"] is False
    monkeypatch.setattr(missing_records, "_LARGEST_UNPACKED", len(log.batches[2].encode()) - 1)
    assert judge(capsys, "b1", "b2")[1]["gaps"][0]["may_be_compaction"] is True


def test_damage_is_reported_as_damage(capsys):
    log = history((0, 5))
    directories = [log.write(Path(name)) / f"{TOPIC}-0" for name in ("b1", "b2")]
    segment = directories[1] / f"{0:020d}.log"
    content = bytearray(segment.read_bytes())
    content[2 * len(log.batches[0].encode()) + 70] ^= 1
    segment.write_bytes(content)
    _, partition, findings = judge(capsys, "b1", "b2")
    assert partition["gaps"] == []
    assert [finding["code"] for finding in findings] == ["KA001"]


# any batches taken from any copies: what is lacking follows from sets of offsets


@st.composite
def thinned(draw: st.DrawFn) -> list[Copy]:
    log = Copy()
    for number in range(draw(st.integers(3, 10))):
        log.append(draw(st.integers(1, 3)), 0, b"m%d" % number)
    copies = []
    for _ in range(draw(st.integers(2, 4))):
        numbers = draw(st.sets(st.sampled_from(range(len(log.batches))), max_size=len(log.batches) - 1))
        copy = without(log, *numbers)
        copy.rolls = tuple(draw(st.sets(st.sampled_from([batch.base_offset for batch in copy.batches]))))
        copies.append(copy)
    return copies


def lacking(copies: list[Copy]) -> set[tuple[str, int, int]]:
    """(copy, first, last) of the offsets that a copy lacks and another holds; none where nobody holds a whole gap."""
    held = [
        {offset for batch in copy.batches for offset in range(batch.base_offset, batch.last_offset + 1)}
        for copy in copies
    ]
    found = set()
    for number, mine in enumerate(held):
        missing = sorted(set(range(min(mine), max(mine))) - mine)
        for _, members in groupby(enumerate(missing), key=lambda entry: entry[1] - entry[0]):
            gap = {offset for _, offset in members}
            others = [*held[:number], *held[number + 1 :]]
            if not any(gap & set(range(min(theirs), max(theirs) + 1)) for theirs in others):
                continue
            filled = set().union(*(gap & theirs for theirs in others))
            if not filled:
                return set()
            found.add((f"b{number}", min(filled), max(filled)))
    return found


@settings(max_examples=150, deadline=None)
@given(thinned())
def test_what_is_lacking_is_what_was_taken_out(copies):
    with tempfile.TemporaryDirectory() as place:
        paths = [copy.write(Path(place, f"b{number}")) for number, copy in enumerate(copies)]
        result = compare_paths(*paths)
    (partition,) = result.partitions
    listed = {(name, gap.first_offset, gap.last_offset) for gap in partition.gaps for name in gap.missing_on}
    assert listed == lacking(copies)
    if listed and partition.relation is not None:
        assert partition.relation.value == "diverged"
    assert len([finding for finding in result.scan.findings if finding.code == "KA601"]) == len(partition.gaps)
