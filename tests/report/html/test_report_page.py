"""The page of real logs, beside what kafka-python reads of them and what their own checkpoint files say."""

from collections import defaultdict
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from kafka.record import MemoryRecords

from kaudit.cli.app import run
from kaudit.report.html.page_model import PageModel
from tests.html.page_reader import Page

SAMPLES = Path(__file__).parents[3] / "samples"
_LIMIT = 1_500_000


def page_text(tmp_path, *arguments):
    target = tmp_path / "page.html"
    run([*map(str, arguments), "--output-format", f"html:{target}", "-q", "--reproducible", "--jobs", "1"])
    return target.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def transactions(tmp_path_factory):
    return Page(page_text(tmp_path_factory.mktemp("page"), "scan", SAMPLES / "hanging-transaction"))


def batches(directory):
    """The batches of a partition as kafka-python reads them."""
    for file in sorted(directory.glob("*.log")):
        records = MemoryRecords(file.read_bytes())
        while records.has_next():
            batch = records.next_batch()
            yield batch, list(batch)


def test_lanes_hold_the_batches_of_each_producer_epoch(transactions):
    assert len(transactions.model["partitions"]) == 5
    for index, row in enumerate(transactions.model["partitions"]):
        expected: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
        markers = []
        directory = SAMPLES / "hanging-transaction" / f"{row['topic']}-{row['partition']}"
        for batch, records in batches(directory):
            producer = batch.producer_id, batch.producer_epoch
            if batch.is_control_batch:
                kind = int.from_bytes(records[0].key[2:4], "big")
                markers.append((*producer, batch.base_offset, kind))
            elif batch.producer_id >= 0:
                expected[producer][0] += 1
                expected[producer][1] += len(records)
        if not expected:
            assert row["columns"] is None
            continue
        tables = transactions.columns(index)
        lanes = list(zip(tables["lanes"]["producer_id"], tables["lanes"]["producer_epoch"], strict=True))
        seen: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
        runs = tables["runs"]
        for lane, count, records in zip(runs["lane"], runs["batches"], runs["records"], strict=True):
            seen[lanes[lane]][0] += count
            seen[lanes[lane]][1] += records
        assert seen == expected
        marks = tables["markers"]
        assert sorted(
            (*lanes[lane], offset, kind)
            for lane, offset, kind in zip(marks["lane"], marks["offset"], marks["type"], strict=True)
        ) == sorted(markers)


def test_transactions_end_where_their_markers_are(transactions):
    """s26-txn-commit-abort commits one transaction and aborts one; s29b-hanging-fixed-pid leaves its own open."""
    outcomes = {}
    for index, row in enumerate(transactions.model["partitions"]):
        if row["columns"] is not None:
            table = transactions.columns(index)["transactions"]
            outcomes[row["topic"]] = list(
                zip(table["first_offset"], table["last_offset"], table["outcome"], strict=True)
            )
            markers = transactions.columns(index)["markers"]["offset"]
            assert [last for _, last, outcome in outcomes[row["topic"]] if outcome] == sorted(markers)
    assert {outcome for _, _, outcome in outcomes["s26-txn-commit-abort"]} == {1, 2}
    assert [outcome for _, _, outcome in outcomes["s29b-hanging-fixed-pid"]][-1] == 0


@pytest.mark.parametrize("sample", ["hanging-transaction", "compacted", "clean"])
def test_offsets_and_leader_epochs_are_those_of_the_checkpoints(tmp_path, sample):
    page = Page(page_text(tmp_path, "scan", SAMPLES / sample))
    marks = checkpoint(SAMPLES / sample / "replication-offset-checkpoint")
    starts = checkpoint(SAMPLES / sample / "log-start-offset-checkpoint")
    seen = 0
    for row in page.model["partitions"]:
        place = row["topic"], row["partition"]
        assert row["high_watermark"] == str(marks[place])
        directory = SAMPLES / sample / f"{row['topic']}-{row['partition']}"
        first = min(int(segment.stem) for segment in directory.glob("*.log"))
        assert row["log_start_offset"] == str(max(starts.get(place, 0), first))
        file = directory / "leader-epoch-checkpoint"
        if file.exists() and not row["compacted"] and row["log_start_offset"] == "0":
            entries = [line.split() for line in file.read_text().splitlines()[2:]]
            assert [[str(entry["epoch"]), entry["start_offset"]] for entry in row["leader_epochs"]] == entries
            seen += bool(entries)
    assert seen or sample == "compacted"


def checkpoint(file):
    rows = [line.split() for line in file.read_text().splitlines()[2:]] if file.exists() else []
    return {(topic, int(partition)): int(offset) for topic, partition, offset in rows}


def test_the_state_after_a_batch_is_the_batch(tmp_path):
    """A broker that loads a log takes over every batch (ProducerStateEntry.addBatch): its epoch, its end."""
    page = Page(page_text(tmp_path, "scan", SAMPLES / "duplicates"))
    seen = 0
    for finding in page.model["findings"]:
        table = finding["evidence"]
        if table is None or table["marked"] is None:
            continue
        row = dict(zip(table["headings"], table["rows"][table["marked"]], strict=True))
        after = dict(map(tuple, finding["state_after"]))
        assert after["last sequence"] == row["sequence"].split("..")[-1]
        assert after["last offset"] == row["offset"].split("..")[-1]
        assert after["producer epoch"] == row["epoch"]
        seen += 1
    assert seen == 5


def test_a_gap_shows_the_sequence_before_and_after_it(tmp_path):
    """s50-inject-seq-gap, read from its batch headers: sequences 0, 1, then 5 at offset 2."""
    page = Page(page_text(tmp_path, "scan", SAMPLES / "duplicates"))
    gap = next(found for found in page.model["findings"] if found["code"] == "KA104")
    before, after = dict(map(tuple, gap["state_before"])), dict(map(tuple, gap["state_after"]))
    sequences = [batch.base_sequence for batch, _ in batches(SAMPLES / "duplicates" / "s50-inject-seq-gap-0")]

    assert sequences[:3] == [0, 1, 5]
    assert (before["last sequence"], before["last offset"]) == ("1", "1")
    assert (after["last sequence"], after["last offset"]) == ("5", "2")
    window = "remembered batches (sequences @ offset)"
    assert (before[window], after[window]) == ("0..0 @ 0, 1..1 @ 1", "0..0 @ 0, 1..1 @ 1, 5..5 @ 2")


@pytest.mark.parametrize("sample", sorted(path.name for path in SAMPLES.iterdir() if path.is_dir()))
def test_the_page_of_a_sample_is_small_and_of_its_schema(tmp_path, sample):
    text = page_text(tmp_path, "scan", SAMPLES / sample)
    page = Page(text)

    assert len(text.encode()) < _LIMIT
    assert msgspec.convert(page.model, PageModel).overview.left_out == []
    shown = {row["columns"]["id"] for row in page.model["partitions"] if row["columns"] is not None}
    assert shown == {name for name in page.by_id if str(name).startswith("columns-")}


class _Cells(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.inside = False
        self.cells: set[str] = set()

    def handle_starttag(self, tag, attrs):
        self.inside = tag == "td"

    def handle_data(self, data):
        if self.inside:
            self.cells.add(data)


def test_without_scripts_the_findings_and_partitions_are_in_tables(tmp_path):
    text = page_text(tmp_path, "scan", SAMPLES / "zombie")
    plain = text[text.index("<noscript>") : text.index("</noscript>")]
    read = _Cells()
    read.feed(plain)

    for finding in Page(text).model["findings"]:
        assert {finding["fingerprint"], finding["code"], finding["message"]} <= read.cells
    assert {row["topic"] for row in Page(text).model["partitions"]} <= read.cells


def test_replicas_stand_beside_one_another(tmp_path):
    names = {"left": SAMPLES / "replicas" / "b1", "right": SAMPLES / "replicas" / "b2"}
    named = [option for name, path in names.items() for option in ("--name", f"{name}={path}")]
    page = Page(page_text(tmp_path, "diff", *named, *names.values())).model

    assert page["kind"] == "diff"
    assert {row["replica"] for row in page["partitions"]} == set(names)
    for row in page["partitions"]:
        marks = checkpoint(names[row["replica"]] / "replication-offset-checkpoint")
        assert row["high_watermark"] == str(marks[row["topic"], row["partition"]])
    assert page["differences"]["rows"]


def test_a_timeline_shows_the_producers_asked_for(tmp_path):
    page = Page(page_text(tmp_path, "timeline", SAMPLES / "producer-ids", "--producer-id", 1697))
    lanes = [page.columns(index)["lanes"] for index, row in enumerate(page.model["partitions"]) if row["columns"]]

    assert {number for lane in lanes for number in lane["producer_id"]} == {1697}


def test_the_listing_of_producers_is_on_their_page(tmp_path):
    page = Page(page_text(tmp_path, "producers", SAMPLES / "zombie")).model
    counted: dict[str, int] = defaultdict(int)
    for directory in sorted((SAMPLES / "zombie").glob("*-0")):
        for batch, _ in batches(directory):
            counted[str(batch.producer_id)] += not batch.is_control_batch

    listed: dict[str, int] = defaultdict(int)
    for row in page["producers"]:
        listed[row["producer_id"]] += row["batches"]
    assert listed == {number: count for number, count in counted.items() if number != "-1"}
