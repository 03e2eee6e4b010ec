"""What a run leaves on disk, read back and held against the batches that its brokers stored, by the brokers' rules."""

import base64
import json
import struct
from itertools import accumulate

import pytest

from kaudit.broker.producer_state.producer_state_entry import DataBatch, MarkerBatch
from kaudit.formats.internal_topics.transaction_state import parse_transaction_record
from kaudit.formats.log.records import read_records
from kaudit.formats.sidefiles.checkpoints import parse_meta_properties, parse_offset_checkpoint
from kaudit.formats.sidefiles.indexes import parse_offset_index, parse_time_index, parse_transaction_index
from kaudit.model.coordinator import TransactionStatus
from kaudit.simulate.output.log_directory import write_run
from kaudit.simulate.output.truth import Truth
from kaudit.simulate.scenario.reading import parse_scenario
from kaudit.simulate.simulation import Simulation
from kaudit.source.file_kinds import FILE_KINDS, kind_by_name
from tests.simulate.test_faults import TRANSACTIONAL, fault, played, transactional

INTERVAL = 4096
"""index.interval.bytes by default."""


def written(simulation, directory):
    write_run(directory, simulation, Truth(simulation))
    return directory / "broker-1"


# -- indexes ------------------------------------------------------------------------------------------------------------


def columns(index, *names):
    return list(zip(*(getattr(index, name).tolist() for name in names), strict=True))


def test_an_offset_index_has_a_row_every_so_many_bytes_and_a_time_index_the_newest_record_so_far(tmp_path):
    """LogSegment.append: a row in front of a batch with more than index.interval.bytes since the last row."""
    # the clock goes back in between, so that the newest record is not always the last
    faults = fault("jump-producer-clock", at_ms=400, by_ms=-100)
    simulation = played(
        faults,
        config='"linger.ms" = 0, "batch.size" = 1000',
        topic='config = { "segment.bytes" = 20000 }',
        producer="records = 120\nevery_ms = 5\nrecord_bytes = 600",
    )
    partition = written(simulation, tmp_path / "run") / "orders-0"
    log = simulation.cluster.partitions["orders", 0].leader_log()
    assert len(log.segments) > 3
    counts: list[tuple[int, int]] = []
    for base, following in zip(log.segments, [*log.segments[1:], log.log_end], strict=True):
        batches = [batch for batch in log.batches if base <= batch.base_offset < following]
        starts = [0, *accumulate(len(batch.data) for batch in batches)]
        newest, since = (-1, base), 0
        rows: list[tuple[int, int]] = []
        times: list[tuple[int, int]] = []
        for batch, position in zip(batches, starts, strict=False):
            newest = max(newest, (batch.max_timestamp, batch.last_offset), key=lambda entry: entry[0])
            if position - since > INTERVAL:
                rows.append((batch.last_offset - base, position))
                since = position
                if not times or newest[0] > times[-1][0]:
                    times.append((newest[0], newest[1] - base))
        if not times or newest[0] > times[-1][0]:
            times.append((newest[0], newest[1] - base))  # when the segment is closed
        stem = partition / f"{base:020d}"
        assert stem.with_suffix(".log").stat().st_size == starts[-1]
        offsets = parse_offset_index(stem.with_suffix(".index").read_bytes())
        assert columns(offsets, "relative_offsets", "positions") == rows
        found = parse_time_index(stem.with_suffix(".timeindex").read_bytes())
        assert columns(found, "timestamps", "relative_offsets") == times
        counts.append((len(rows), len(times)))
    assert any(rows > times > 1 for rows, times in counts)


OVERLAPPING = """
[cluster]
version = "3.9.1"
[[topics]]
name = "orders"
config = {{ "segment.bytes" = 1500 }}
{producers}
"""


def test_a_transaction_index_names_aborted_transactions_and_what_was_open_behind_them(tmp_path):
    """TransactionIndex, ProducerStateManager.completeTxn: the last stable offset once the marker is written."""
    producers = "".join(
        f'[[producers]]\nname = "p{number}"\nrecords = 12\nevery_ms = {every}\n'
        f'transaction = {{ records = 3, outcomes = ["abort", "commit", "abort"], pause_ms = {every * 3} }}\n'
        f'config = {{ "linger.ms" = 0, "batch.size" = 100, "transactional.id" = "t{number}" }}\n'
        for number, every in enumerate((3, 7, 11))
    )
    simulation = Simulation(parse_scenario(OVERLAPPING.format(producers=producers), "overlapping"), 1).run()
    partition = written(simulation, tmp_path / "run") / "orders-0"
    log = simulation.cluster.partitions["orders", 0].leader_log()
    opened: dict[int, int] = {}
    expected = []
    for batch in log.batches:
        state = batch.state
        assert state is not None
        if isinstance(state, DataBatch):
            opened.setdefault(state.producer_id, state.base_offset)
        else:
            first = opened.pop(state.producer_id)
            if not state.commit:
                stable = min(opened.values(), default=state.offset + 1)
                expected.append((state.producer_id, first, state.offset, stable))
    assert any(stable <= offset for *_, offset, stable in expected)
    found = {}
    for base in log.segments:
        file = partition / f"{base:020d}.txnindex"
        rows = parse_transaction_index(file.read_bytes()).rows if file.exists() else ()
        assert rows or not file.exists()
        found[base] = [(row.producer_id, row.first_offset, row.last_offset, row.last_stable_offset) for row in rows]
    assert [row for rows in found.values() for row in rows] == expected
    for base, following in zip(log.segments, [*log.segments[1:], log.log_end], strict=True):
        assert all(base <= offset < following for _, _, offset, _ in found[base])


# -- kinds of files -----------------------------------------------------------------------------------------------------

NOT_WRITTEN = {
    "metadata_snapshot": "the controller's log of metadata is not simulated",
    "quorum_state": "the controllers' quorum is not simulated",
}
"""Kinds of files that no simulated broker writes, each with the reason."""


def test_a_run_writes_every_kind_of_file_but_those_that_are_left_out_for_a_reason(tmp_path):
    producers = (
        '[[producers]]\nname = "p"\nrecords = 12\ntransaction = { records = 3, outcomes = ["abort", "commit"] }\n'
        'config = { "linger.ms" = 0, "batch.size" = 100, "transactional.id" = "t" }\n'
    )
    simulation = Simulation(parse_scenario(OVERLAPPING.format(producers=producers), "aborting"), 1).run()
    directory = written(simulation, tmp_path / "run")
    names = {kind_by_name(path.name)[0].name for path in directory.rglob("*") if path.is_file()}
    assert names == {kind.name for kind in FILE_KINDS} - set(NOT_WRITTEN)


# -- what a log directory says of itself --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "meta", "directory_id", "topic_id", "shutdown"),
    [
        ("2.7.2", 0, False, False, ""),
        ("2.8.2", 0, False, True, ""),
        ("3.6.2", 1, False, True, ""),
        ("3.7.0", 1, True, True, '{"version":0,"brokerEpoch":1}'),
        ("4.2.0", 1, True, True, '{"version":0,"brokerEpoch":1}'),
    ],
)
def test_what_identifies_a_log_directory(tmp_path, version, meta, directory_id, topic_id, shutdown):
    """directory.id: KIP-858; topic ids: KIP-516; the broker's epoch in .kafka_cleanshutdown: KIP-966."""
    simulation = played("", version=version)
    broker = written(simulation, tmp_path / "run")
    found = parse_meta_properties((broker / "meta.properties").read_bytes())
    assert (found.version, found.node_id, found.directory_id is not None) == (meta, 1, directory_id)
    assert (broker / "orders-0" / "partition.metadata").exists() is topic_id
    assert (broker / ".kafka_cleanshutdown").read_text() == shutdown


def test_all_partitions_of_a_topic_have_its_id_and_no_other_topic_does(tmp_path):
    simulation = transactional("", topic="partitions = 2", version="3.9.1")
    broker = written(simulation, tmp_path / "run")
    ids = {}
    for name in ("orders-0", "orders-1", "__transaction_state-0"):
        version, topic_id = (broker / name / "partition.metadata").read_text().splitlines()
        assert version == "version: 0"
        ids[name] = topic_id.removeprefix("topic_id: ")
        assert len(base64.urlsafe_b64decode(f"{ids[name]}==")) == 16  # a Uuid
        assert len(ids[name]) == 22
    assert ids["orders-0"] == ids["orders-1"] != ids["__transaction_state-0"]


def checkpoint(path):
    return {(row.topic, row.partition): row.offset for row in parse_offset_checkpoint(path.read_bytes()).rows}


@pytest.mark.parametrize("killed", [False, True])
def test_checkpoints_of_a_log_directory(tmp_path, killed):
    """A broker that was killed has flushed up to its newest segment at least (LogManager.checkpointLogRecoveryOffsets)."""
    faults = fault("delete-records", at_ms=300, partition='"orders-0"', before_offset=7)
    simulation = played(
        faults + (fault("kill-broker", at_ms=600, broker=1) if killed else ""),
        topic='partitions = 2\nconfig = { "segment.bytes" = 1024 }',
        producer="records = 40\nevery_ms = 5",
    )
    broker = written(simulation, tmp_path / "run")
    logs = {key: partition.logs[1] for key, partition in simulation.cluster.partitions.items()}
    assert checkpoint(broker / "log-start-offset-checkpoint") == {("orders", 0): 7}
    assert checkpoint(broker / "replication-offset-checkpoint") == {key: log.log_end for key, log in logs.items()}
    flushed = {key: log.segments[-1] if killed else log.log_end for key, log in logs.items()}
    assert checkpoint(broker / "recovery-point-offset-checkpoint") == flushed
    assert (broker / ".kafka_cleanshutdown").exists() is not killed
    snapshots = {int(path.stem) for path in (broker / "orders-1").glob("*.snapshot")}
    own = logs["orders", 1]
    assert snapshots == {*own.segments[1:], *(() if killed else (own.log_end,))}


# -- the transaction log ------------------------------------------------------------------------------------------------


def states(simulation):
    """What the coordinator wrote of its one transactional id, in order."""
    log = simulation.cluster.partitions["__transaction_state", 0].leader_log()
    for batch in log.batches:
        # a batch of format 2 without a producer: attributes, producer id and epoch, base sequence
        assert struct.unpack_from(">h", batch.data, 21) + struct.unpack_from(">qhi", batch.data, 43) == (0, -1, -1, -1)
        (entry,) = read_records(batch.data)
        read = parse_transaction_record(entry.key, entry.value)
        assert (read.transactional_id, read.value is not None) == ("t", True)
        yield read.value


@pytest.mark.parametrize(("version", "raises"), [("2.0.1", 0), ("3.9.1", 0), ("4.2.0", 1)])
def test_the_transaction_log_has_each_state_of_each_transaction(version, raises):
    """TransactionMetadata: Empty, Ongoing with its partitions, Prepare and Complete; KIP-890 raises the epoch at the end."""
    simulation = transactional("", version=version, topic="partitions = 2")
    (app,) = simulation.applications.values()
    found = list(states(simulation))
    first = found[0]
    assert (first.status_id, first.partitions or (), first.start_timestamp) == (TransactionStatus.EMPTY, (), -1)
    epoch, at = first.producer_epoch, simulation.clock.base
    seen: list[TransactionStatus] = []
    for value in found:
        assert (value.producer_id, value.timeout_ms) == (first.producer_id, 60_000)
        assert at <= value.last_update_timestamp <= simulation.clock.timestamp
        at = value.last_update_timestamp
        named = {(group.topic, number) for group in value.partitions or () for number in group.partitions}
        status = TransactionStatus(value.status_id)
        if status is TransactionStatus.ONGOING:
            assert value.producer_epoch == epoch
            assert named
            added, begun = named, value.start_timestamp
            assert simulation.clock.base < begun <= at
        elif status in (TransactionStatus.PREPARE_COMMIT, TransactionStatus.PREPARE_ABORT):
            epoch += raises
            assert (value.producer_epoch, named, value.start_timestamp) == (epoch, added, begun)
        elif status is not TransactionStatus.EMPTY:
            assert (value.producer_epoch, named, value.start_timestamp) == (epoch, set(), begun)
        if not seen or seen[-1] is not status:
            seen.append(status)
    commit = [TransactionStatus.ONGOING, TransactionStatus.PREPARE_COMMIT, TransactionStatus.COMPLETE_COMMIT]
    abort = [TransactionStatus.ONGOING, TransactionStatus.PREPARE_ABORT, TransactionStatus.COMPLETE_ABORT]
    assert seen == [TransactionStatus.EMPTY, *commit, *abort, *commit]
    assert [end.value for _, _, end in app.transactions] == ["committed", "aborted", "committed"]
    markers = [
        batch.state
        for partition in simulation.cluster.partitions.values()
        for batch in partition.leader_log().batches
        if isinstance(batch.state, MarkerBatch)
    ]
    assert {marker.producer_epoch for marker in markers} <= set(range(first.producer_epoch, epoch + 1))


def test_what_the_coordinator_decides_while_its_log_has_no_leader_is_written_when_it_has_one_again():
    down = fault("kill-broker", at_ms=150, broker=1, restart_after_ms=2500)
    simulation = played(down, producer="records = 6\nevery_ms = 5\ntransaction = { records = 2 }", config=TRANSACTIONAL)
    found = [TransactionStatus(value.status_id) for value in states(simulation)]
    assert found[-1] is TransactionStatus.COMPLETE_COMMIT
    ends = [status for status in found if status is TransactionStatus.COMPLETE_COMMIT]
    assert len(ends) == len(simulation.cluster.transactions.ended)


def test_a_run_says_what_it_was_made_of(tmp_path):
    simulation = transactional("")
    run = written(simulation, tmp_path / "run").parent
    truth = json.loads((run / "truth.json").read_text())
    assert (truth["schema"], truth["seed"], truth["attempts_end_because"]) == ("kaudit.simulate/1", 1, None)
    base = simulation.clock.base
    (orders,) = [entry for entry in truth["partitions"] if entry["topic"] == "orders"]
    log = simulation.cluster.partitions["orders", 0].leader_log()
    assert orders["replicas"]["1"] == {
        "log_start_offset": 0, "log_end_offset": 9, "high_watermark": 9, "leader_epochs": [[0, 0]],
    }  # fmt: skip
    assert [(entry["leader"], entry["at"]) for entry in orders["elections"]] == [(1, base)]
    reported = [(entry["first_number"], entry["last_number"], entry["reported"]) for entry in truth["transactions"][:3]]
    assert reported == [(0, 1, "committed"), (2, 3, "aborted"), (4, 5, "committed")]
    assert [(entry["outcome"], entry["by_timeout"]) for entry in truth["transactions"][3:]] == [
        ("committed", False), ("aborted", False), ("committed", False),
    ]  # fmt: skip
    by_offset = {offset: entry for entry in truth["records"] for offset in entry["offsets"]}
    for batch in log.batches:
        if batch.sent is not None:
            for step, number in enumerate(batch.sent.numbers):
                entry = by_offset[batch.base_offset + step]
                assert (entry["number"], entry["acknowledged_offset"]) == (number, batch.base_offset + step)
                assert entry["sent_at"] == batch.sent.timestamps[step]
    assert by_offset[0]["acknowledged_offset"] == 0


def test_records_of_one_batch_have_offsets_of_their_own(tmp_path):
    simulation = played("", config='"linger.ms" = 5', producer="records = 6\nburst = 3\nevery_ms = 300")
    run = written(simulation, tmp_path / "run").parent
    records = json.loads((run / "truth.json").read_text())["records"]
    assert [(entry["number"], entry["offsets"], entry["acknowledged_offset"]) for entry in records] == [
        (number, [number], number) for number in range(6)
    ]
    assert len(simulation.cluster.partitions["orders", 0].leader_log().batches) == 2
