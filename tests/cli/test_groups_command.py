"""`kaudit groups`: formats, the lag, what it cannot say."""

import json

import pytest

from kaudit.listings.groups import list_groups, list_partition
from kaudit.report.console import Console
from kaudit.report.text.groups import text
from kaudit.scanning.options import ScanOptions
from kaudit.source.schemes import open_segment
from tests.commits import GroupLog
from tests.logs import Log, data

SAMPLE = "samples/committed-offsets"


@pytest.fixture
def logs(tmp_path):
    GroupLog().members("billing", 3, "m").commit("billing", 2, 5, 3).write(tmp_path / "logs")
    log = Log()
    log.append(data(1, 0, 0, 9))
    log.write(tmp_path / "logs" / "orders-0")
    return tmp_path / "logs"


def in_turn(work):
    return [list_partition(task, ScanOptions([SAMPLE]), open_segment) for task in work]


def rows_of(outcome):
    return [json.loads(line) for line in outcome.out.splitlines()]


def test_what_a_group_has_committed_and_how_far_it_lags(kaudit, logs):
    group, member, offset, step = rows_of(kaudit("groups", logs, "--output-format", "jsonl"))
    assert (group["group"], group["generation"], group["members"], group["lag"], group["steps"]) == (
        "billing",
        3,
        1,
        6,
        1,
    )
    assert (member["member_id"], member["client_id"], member["partitions"]) == ("m", "client-m", 1)
    assert (offset["committed"], offset["log_end_offset"], offset["lag"], offset["member_id"]) == (3, 9, 6, "m")
    assert (step["kind"], step["committed_before"], step["committed"], step["member_id"]) == ("went back", 5, 3, "m")


def test_one_group_shows_each_of_its_commits(kaudit, logs):
    rows = rows_of(kaudit("groups", logs, "--group", "billing", "--output-format", "jsonl"))
    assert [row["committed"] for row in rows if row["row"] == "commit"] == [2, 5, 3]
    assert rows_of(kaudit("groups", logs, "--group", "other", "--output-format", "jsonl")) == []


def test_changes_of_one_group_stand_between_its_commits(kaudit, tmp_path):
    log = (
        GroupLog()
        .members("g", 1, "m")
        .commit("g", 5)
        .members("g", 2, "m", "n")
        .members("g", 2, "m", "n")
        .commit("g", 9)
    )
    rows = rows_of(kaudit("groups", log.write(tmp_path), "--group", "g", "--output-format", "jsonl"))
    changes = [
        (row["offset"], row["row"], row.get("generation")) for row in rows if row["row"] in ("commit", "generation")
    ]
    assert changes == [(0, "generation", 1), (1, "commit", 1), (2, "generation", 2), (4, "commit", 2)]
    assert "generation 2, 2 members" in kaudit("groups", tmp_path, "--group", "g").out


def test_the_page_has_a_lane_for_each_partition_and_marks_steps_back(kaudit, logs, tmp_path):
    page = tmp_path / "page.html"
    jsonl, both = (
        tmp_path / "rows",
        kaudit("groups", logs, "--output-format", f"html:{page}", "--output-format", "table"),
    )
    assert both.code == 0
    html = page.read_text("utf-8")
    assert html.count('<figure class="lane">') == 1
    assert html.count('class="back"') == 1
    assert "orders-0" in html
    assert "went back from 5 to 3 by member m" in html
    assert "script-src &#39;none&#39;" in html
    assert "committed 5" not in both.out  # commits are drawn, and listed of one group alone
    assert kaudit("groups", logs, "--output-format", f"jsonl:{jsonl}").code == 0


@pytest.mark.parametrize("commits", [0, 1, 5000])
def test_a_page_of_few_or_many_commits_is_small_and_has_its_ends(kaudit, tmp_path, commits):
    log = GroupLog().members("g", 1, "m").commit("g", *range(commits)).write(tmp_path / "logs")
    page = tmp_path / "page.html"
    assert kaudit("groups", log, "--output-format", f"html:{page}").code == 0
    assert page.stat().st_size < 60_000
    if commits == 5000:
        assert "5,000 commits of 0 to 4,999" in page.read_text("utf-8")


def test_the_answer_stands_in_the_first_line_and_all_fits(kaudit):
    outcome = kaudit("groups", SAMPLE)
    assert outcome.code == 0
    assert (
        outcome.out.splitlines()[0]
        == "4 groups, 4 committed offsets; not only forward: billing (1 time) and 3 other groups"
    )
    shown = "".join(text(list_groups(ScanOptions([SAMPLE]), None, in_turn, commits=False), Console(width=80)))
    assert max(map(len, shown.splitlines())) <= 80


def test_every_format_has_the_same_rows(kaudit, logs, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    document = json.loads(kaudit("groups", logs, "--output-format", "json").out)
    assert document["schema"] == "kaudit.groups/1"
    assert kaudit("groups", logs, "--output-format", "parquet", "-o", tmp_path / "out").code == 0
    for kind in ("group", "member", "offset", "step"):
        (own,) = [row for row in document["rows"] if row["row"] == kind]
        (held,) = parquet.read_table(tmp_path / "out" / kind).to_pylist()
        assert {name: own[name] for name in own if name != "row"} == {name: held[name] for name in own if name != "row"}


def test_what_is_not_there_is_said(kaudit, logs):
    outcome = kaudit("groups", logs / "orders-0")
    assert outcome.out.startswith("0 groups, 0 committed offsets")
    assert "__consumer_offsets: not among the inputs" in outcome.err
    assert kaudit("groups", logs / "none").code == 2


HEAD = "Dumping __consumer_offsets-0/00000000000000000000.log\nLog starting offset: 0\n"
BATCH = (
    "baseOffset: {0} lastOffset: {0} count: 1 baseSequence: -1 lastSequence: -1 producerId: {1} producerEpoch: 0 partitionLeaderEpoch: 0 "
    "isTransactional: {2} isControl: {3} deleteHorizonMs: OptionalLong.empty position: 0 CreateTime: 1700000000000 size: 115 magic: 2 "
    "compresscodec: none crc: 1 isvalid: true\n| offset: {0} CreateTime: 1700000000000 keySize: 23 valueSize: 24 sequence: -1 headerKeys: [] {4}\n"
)
OLD_COMMIT = "key: offset_commit::group=g,partition=orders-0 payload: offset={}"
JSON_COMMIT = (
    'key: {{"type":"1","data":{{"group":"g","topic":"orders","partition":0}}}} '
    'payload: {{"version":"3","data":{{"offset":{},"leaderEpoch":1,"metadata":"","commitTimestamp":1}}}}'
)


def printed(tmp_path, *batches):
    text = tmp_path / "offsets.txt"
    lines = [BATCH.format(offset, *batch) for offset, batch in enumerate(batches)]
    text.write_text(HEAD + "".join(lines), encoding="utf-8")
    return text


@pytest.mark.parametrize("form", [OLD_COMMIT, JSON_COMMIT])
def test_commits_in_a_text_count_from_the_marker_of_their_transaction(kaudit, tmp_path, form):
    text = printed(
        tmp_path,
        (7, "true", "false", form.format(50)),
        (7, "true", "true", "endTxnMarker: COMMIT coordinatorEpoch: 0"),
        (7, "true", "false", form.format(90)),
        (7, "true", "true", "endTxnMarker: ABORT coordinatorEpoch: 0"),
        (-1, "false", "false", form.format(60)),
    )
    rows = rows_of(kaudit("groups", text, "--group", "g", "--output-format", "jsonl"))
    assert [(row["committed"], row["producer_id"]) for row in rows if row["row"] == "commit"] == [(50, 7), (60, None)]


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ("key: 00010001 payload: 0003", "no key as kafka-dump-log's decoders print it"),
        (OLD_COMMIT.format("many"), "no value as kafka-dump-log's decoders print it"),
        ('key: {"type":"1","data":{}} payload: {"version":"99","data":{}}', "version 99 of OffsetCommit"),
        ('key: {"type":"900","data":{}} payload: {}', "record type 900 of __consumer_offsets is not known"),
        ("", "the text does not print what is in the record"),
    ],
)
def test_what_a_text_does_not_print_is_one_line_with_its_place(kaudit, tmp_path, record, said):
    text = printed(tmp_path, (-1, "false", "false", OLD_COMMIT.format(5)), (-1, "false", "false", record))
    outcome = kaudit("groups", text)
    assert outcome.out.startswith("1 group, 1 committed offset")
    assert said in outcome.err
    assert "line 6" in outcome.err
    assert "--offsets-decoder prints the records" in outcome.err
