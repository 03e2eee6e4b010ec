"""Copies of one broker at different times: what it appended and what it cut off, never a divergence."""

import json
import os
import shutil
import tempfile
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaudit.cli.app import run
from kaudit.model.replicas import OffsetRange
from tests.diff.replicas import TOPIC, Copy, broker, history
from tests.diff.test_command import validate
from tests.diff.test_relations import run as compare_paths
from tests.logs import BASE_TIMESTAMP, Log, data
from tests.report.test_json_schemas import DOCUMENT


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KAUDIT_ISOLATED", "1")
    monkeypatch.setenv("COLUMNS", "80")


def compare(capsys, **copies: tuple[int, Copy]):
    """Write these copies (broker id, log) by name, compare them; the exit code, the document, and the table."""
    for name, (number, log) in copies.items():
        broker(log.write(Path(name)), number)
    code = run(["diff", "--output-format", "json", "--reproducible", *copies])
    document = json.loads(capsys.readouterr().out)
    validate(DOCUMENT, document)
    assert run(["diff", "-v", *copies]) == code
    return code, document, capsys.readouterr().out


def after(log: Copy, *, epoch: int, payload: bytes, ms: int = 60_000) -> Copy:
    """The log with one more batch, `ms` later."""
    return log.copy().append(2, epoch, payload, timestamp=BASE_TIMESTAMP + ms)


def test_what_a_broker_appended_is_no_finding(capsys):
    log = history((0, 3))
    code, report, text = compare(capsys, new=(1, after(log, epoch=0, payload=b"more")), old=(1, log))
    assert (code, report["findings"]) == (0, [])
    assert report["moments"][0]["replicas"] == ["old", "new"]
    (partition,) = report["partitions"]
    (change,) = partition["moments"]
    assert (partition["relation"], partition["reference"], partition["relations"]) == ("appended", None, {})
    assert (change["relation"], change["common_end_offset"], change["truncated"]) == ("appended", 6, None)
    assert "old and new are broker 1 at different times" in text
    assert "between copies of one broker: 1 appended" in text


def test_what_a_broker_truncated_is_lost_where_producers_went_on_without_it(capsys):
    log = history((0, 3))
    old, new = log.copy().append(5, 0, b"the old leader's"), after(log, epoch=1, payload=b"the new leader's")
    code, report, text = compare(capsys, old=(1, old), new=(1, new))
    (finding,) = report["findings"]
    assert (code, finding["code"], finding["severity"], finding["confidence"]) == (1, "KA603", "error", "likely")
    assert (finding["replica"], finding["offset"], finding["last_offset"]) == ("old", 6, 10)
    assert finding["impact"] == {"records_lost_at_least": 5, "records_lost_at_most": 5}
    (change,) = report["partitions"][0]["moments"]
    assert (change["relation"], change["truncated"]) == ("truncated", {"first_offset": 6, "last_offset": 10})
    assert set(change["first_difference"]["replicas"]) == {"old", "new"}
    assert "diverged" not in text
    assert all(len(line) <= 80 for line in text.splitlines() if "kaudit inspect" not in line)


def test_below_the_brokers_own_high_watermark_it_is_an_error(capsys):
    log = history((0, 3))
    old, new = log.copy().append(5, 0, b"the old leader's"), after(log, epoch=1, payload=b"the new leader's")
    old.high_watermark, new.high_watermark = 8, 6
    code, report, _ = compare(capsys, old=(1, old), new=(1, new))
    (finding,) = report["findings"]
    assert (code, finding["severity"], finding["confidence"]) == (1, "error", "certain")
    assert finding["impact"] == {"records_lost_at_least": 5, "records_lost_at_most": 5}


def test_the_end_of_a_log_that_is_gone_is_truncated_too(tmp_path, capsys):
    # nothing was written since: the times of the files order the copies
    for name, log, at in (("a", history((0, 3)), 2_000_000_000), ("b", history((0, 4)), 1_900_000_000)):
        broker(log.write(tmp_path / name), 1)
        os.utime(tmp_path / name / f"{TOPIC}-0/{0:020d}.log", (at, at))
    assert run(["diff", "--output-format", "json", "a", "b"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["moments"][0]["replicas"] == ["b", "a"]
    (finding,) = document["findings"]
    assert (finding["code"], finding["replica"], finding["offset"], finding["last_offset"]) == ("KA603", "b", 6, 7)
    assert "page cache" in finding["explanations"][0]["cause"]


def test_the_same_records_fetched_again_are_not_lost(capsys):
    log = history((0, 3))
    old, new = log.copy().append(2, 0, b"same"), log.copy().append(2, 1, b"same")
    code, report, _ = compare(capsys, old=(1, old), new=(1, after(new, epoch=1, payload=b"more")))
    assert (code, report["findings"]) == (0, [])
    assert report["partitions"][0]["moments"][0]["missing"]["records"] == 0


def test_what_a_replica_still_holds_is_not_lost(capsys):
    log = history((0, 3))
    full = log.copy().append(5, 0, b"on both")
    new = after(log, epoch=1, payload=b"the new leader's")
    code, report, _ = compare(capsys, old=(1, full), new=(1, new), other=(2, full))
    # the second broker has not been truncated yet: that is a divergence, and the broker's own change is none besides
    assert (code, [finding["code"] for finding in report["findings"]]) == (1, ["KA601"])
    (partition,) = report["partitions"]
    assert (partition["relation"], partition["relations"]) == ("diverged", {"other": "diverged"})
    assert [change["earlier"] for change in partition["moments"]] == ["old"]


def only_on(capsys, **copies: tuple[int, Copy]) -> dict[str, tuple[int, int]]:
    _, report, _ = compare(capsys, **copies)
    (partition,) = report["partitions"]
    return {name: (held["first_offset"], held["last_offset"]) for name, held in partition["only_on"].items()}


def test_what_earlier_copies_alone_hold_is_named_once(capsys):
    """Of copies that hold the same it is on the one that holds most of it, of equal ones on the last."""
    log = history((0, 3))
    new = after(log, epoch=1, payload=b"the new leader's")
    gone = log.copy().append(5, 0, b"gone")
    equal = {"old1": (1, gone), "new1": (1, new), "old2": (2, gone), "new2": (2, new)}
    assert only_on(capsys, **equal) == {"old2": (6, 10)}
    more = gone.copy().append(1, 0, b"gone, too")
    longer = {"first1": (1, more), "then1": (1, new), "first2": (2, gone), "then2": (2, new)}
    assert only_on(capsys, **longer) == {"first1": (6, 11)}


def test_what_a_later_copy_of_the_same_broker_holds_is_not_on_the_earlier_one_alone(capsys):
    log = history((0, 3))
    more = after(log, epoch=0, payload=b"more")
    assert only_on(capsys, old=(1, log), new=(1, more), other=(2, log)) == {"new": (6, 7)}
    assert only_on(capsys, early=(1, log), late=(1, more)) == {}


def test_a_partition_that_a_copy_in_between_lacks(capsys):
    """The broker got another partition before it got this one back."""
    log = history((0, 3))
    copies = {
        "first": log,
        "between": after(log, epoch=0, payload=b"b"),
        "last": after(log, epoch=0, payload=b"c", ms=90_000),
    }
    for name, copy in copies.items():
        broker(copy.write(Path(name)), 1)
        if name == "between":
            Path(name, f"{TOPIC}-0").rename(Path(name, "payments-0"))
        else:
            shutil.copytree(Path(name, f"{TOPIC}-0"), Path(name, "payments-0"))
    assert run(["diff", "--output-format", "json", *copies]) == 1  # records of "between" are lost
    document = json.loads(capsys.readouterr().out)
    changes = {part["topic"]: part["moments"] for part in document["partitions"]}
    assert [(change["earlier"], change["later"]) for change in changes[TOPIC]] == [("first", "last")]
    assert [(change["earlier"], change["later"]) for change in changes["payments"]] == [
        ("first", "between"),
        ("between", "last"),
    ]


def test_retention_between_two_copies_is_no_truncation(capsys):
    log = history((0, 6))
    new = after(log, epoch=0, payload=b"more")
    new.batches = new.batches[3:]
    code, report, _ = compare(capsys, old=(1, log), new=(1, new))
    assert (code, report["findings"], report["partitions"][0]["relation"]) == (0, [], "appended")


def test_what_only_an_earlier_copy_holds_besides_parts_no_replicas(capsys):
    log = history((0, 4))
    new = after(log, epoch=0, payload=b"more")
    new.batches = [batch for number, batch in enumerate(new.batches) if number != 1]
    _, report, _ = compare(capsys, old=(1, log), new=(1, new), other=(2, new))
    (partition,) = report["partitions"]
    assert [(gap["missing_on"], gap["held_by"]) for gap in partition["gaps"]] == [(["new", "other"], ["old"])]
    assert (partition["relation"], partition["common_end_offset"]) == ("identical", 10)


@st.composite
def copies_over_time(draw: st.DrawFn) -> dict[str, tuple[int, int, Copy]]:
    """Copies of brokers by name: the broker, the time, and a log that is the history up to somewhere, then its own."""
    log = history((0, 6))
    made: dict[str, tuple[int, int, Copy]] = {}
    for number in range(1, draw(st.integers(1, 3)) + 1):
        for time in range(draw(st.integers(1, 3))):
            copy = log.copy()
            copy.batches = copy.batches[: draw(st.integers(1, 6))]
            for more in range(draw(st.sampled_from((0, 0, 1, 2)))):
                copy.append(draw(st.integers(1, 3)), 10 * number + time, b"%d of b%d-%d" % (more, number, time))
            made[f"b{number}-{time}"] = number, time, copy
    return {name: made[name] for name in draw(st.permutations(sorted(made)))}


@settings(max_examples=80, deadline=None)
@given(copies_over_time())
def test_what_became_of_each_copy_and_what_it_alone_holds(made):
    held = {
        name: {
            at: (batch.payload, at) for batch in copy.batches for at in range(batch.base_offset, batch.last_offset + 1)
        }
        for name, (_, _, copy) in made.items()
    }
    by_broker = {number: sorted(name for name in made if made[name][0] == number) for number in (1, 2, 3)}
    newest = {names[-1] for names in by_broker.values() if names}
    with tempfile.TemporaryDirectory() as root:
        paths = [Path(root, name) for name in made]
        for path, (number, time, copy) in zip(paths, made.values(), strict=True):
            broker(copy.write(path), number)
            os.utime(path / f"{TOPIC}-0/{0:020d}.log", (1_900_000_000 + time, 1_900_000_000 + time))
        if len(made) == 1:
            return
        (found,) = compare_paths(*paths).partitions
    assert {(change.earlier, change.later) for change in found.copy_changes} == {
        pair for names in by_broker.values() for pair in pairwise(names)
    }
    for change in found.copy_changes:
        earlier, later = held[change.earlier], held[change.later]
        gone = [offset for offset, batch in earlier.items() if later.get(offset) != batch]
        assert change.truncated == (OffsetRange(min(gone), max(gone)) if gone else None)
        assert change.relation.value == (
            "truncated" if gone else "appended" if len(later) > len(earlier) else "identical"
        )
        assert change.common_end_offset == (min(gone) if gone else len(earlier))
    expected = {}
    for place, name in enumerate(made):
        others = newest - {name}
        if name not in newest:
            own = by_broker[made[name][0]]
            others |= set(own[own.index(name) + 1 :])
            # of earlier copies that hold the same, the one that holds most has it, of equal ones the last
            others |= {
                other
                for at, other in enumerate(made)
                if other not in newest and (len(held[other]), at) > (len(held[name]), place)
            }
        alone = [at for at, batch in held[name].items() if all(held[other].get(at) != batch for other in others)]
        if alone and others:
            expected[name] = OffsetRange(min(alone), max(alone))
    assert found.only_on == expected
    if len(newest) == 1:
        worst = {change.relation.value for change in found.copy_changes}
        assert found.relation is not None
        assert found.relation.value == next(name for name in ("truncated", "appended", "identical") if name in worst)


def test_a_topic_created_again_between_the_copies_is_another_log(tmp_path, capsys):
    log = history((0, 2))
    new = Copy().append(2, 0, b"another topic", timestamp=BASE_TIMESTAMP + 60_000)
    log.high_watermark = 4
    for name, copy in (("old", log), ("new", new)):
        broker(copy.write(tmp_path / name), 1)
        text = f"version: 0\ntopic_id: {name:a<22}\n"
        (tmp_path / name / f"{TOPIC}-0/partition.metadata").write_text(text)
    assert run(["diff", "--output-format", "json", "old", "new"]) == 0
    found = json.loads(capsys.readouterr().out)["findings"]
    assert [(each["code"], each["severity"]) for each in found] == [("KA606", "warning")]
    assert "deleted and created again" in found[0]["explanations"][0]["cause"]


@pytest.mark.parametrize(
    ("ids", "code"),
    [({"cluster": "other"}, "KA604"), ({"directory": "second"}, "KA605")],
    ids=["cluster", "disk"],
)
def test_copies_of_different_logs_are_not_compared(capsys, ids, code):
    """Volumes of two clusters with the same records, and two disks of one broker: neither is a replica of the other."""
    log = history((0, 3))
    for name, own in (("one", {"cluster": "cluster", "directory": "first"}), ("two", ids)):
        broker(log.write(Path(name)), 1, **({"cluster": "cluster", "directory": "first"} | own))
    run(["diff", "--output-format", "json", "--reproducible", "one", "two"])
    document = json.loads(capsys.readouterr().out)
    validate(DOCUMENT, document)
    assert [finding["code"] for finding in document["findings"]] == [code]
    assert [(each["relation"], each["reference"]) for each in document["partitions"]] == [("separate", None)] * 2
    for style in ("table", "concise", "markdown"):
        run(["diff", "--output-format", style, "one", "two"])
        text = capsys.readouterr().out
        assert "identical" not in text.replace("identical up to", "")
        assert "KA601" not in text
    run(["scan", "--output-format", "json", "."])
    assert [found["code"] for found in json.loads(capsys.readouterr().out)["findings"]] == [code]


def not_compared(brokers: dict[str, tuple[int, str]], partitions: dict[str, list[str]]) -> list[tuple[str, str]]:
    """What a diff of brokers (number, cluster) with these partitions has not compared, and the beginning of why."""
    log = Log()
    log.append(data(7, 0, 0))
    for name, (number, cluster) in brokers.items():
        for partition in partitions[name]:
            log.write(Path(name) / partition)
        broker(Path(name), number, cluster=cluster)
    found = compare_paths(*map(Path, brokers)).scan.not_audited
    assert not any(each.unreadable for each in found)
    return [(each.path, each.reason.partition(":")[0]) for each in found]


@pytest.mark.parametrize(("count", "named"), [(1, "a-0"), (2, "a-0 and 1 more"), (3, "a-0 and 2 more")])
def test_partitions_that_are_not_compared_are_counted_once_each(count, named):
    own = [f"a-{number}" for number in range(count)]
    two_clusters = {"one": (1, "cluster"), "two": (1, "other")}
    assert not_compared(two_clusters, {"one": own, "two": own}) == [(named, "copies of different logs")]
    one_cluster = {"three": (1, "cluster"), "four": (2, "cluster")}
    assert not_compared(one_cluster, {"three": ["b-0", *own], "four": ["b-0"]}) == [
        (named, "on one of the replicas only")
    ]
