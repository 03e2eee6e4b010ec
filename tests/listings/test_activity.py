"""Columns of activity against a naive reading of the same batches, cut into chunks anywhere."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.listings.query import Query
from kaudit.scanning.options import ScanOptions
from tests.logs import BASE_TIMESTAMP, CONTROL, TRANSACTIONAL, Log, data, marker

EVENTS = st.lists(
    st.tuples(
        st.integers(0, 3),  # producer id
        st.integers(0, 3),  # epoch
        st.integers(0, 9),  # sequence
        st.integers(1, 3),  # records
        st.sampled_from(["data", "transactional", "commit", "abort"]),
        st.booleans(),  # a segment begins here
    ),
    min_size=1,
    max_size=40,
)


def built(events):
    log, starts = Log(), []
    for producer_id, epoch, sequence, count, kind, cut in events:
        if cut:
            starts.append(log.next_offset)
        if kind in ("commit", "abort"):
            log.append(marker(producer_id, epoch, commit=kind == "commit", coordinator_epoch=len(starts)))
        else:
            log.append(data(producer_id, epoch, sequence, count, transactional=kind == "transactional"))
    return log, tuple(starts)


def naive(log, starts):
    """What each producer did, and the state after adopting every batch, one batch at a time."""
    known: dict[int, Any] = {}
    coordinator = 0
    for batch in log.batches:
        coordinator += batch.base_offset in starts
        entry = known.setdefault(
            batch.producer_id,
            {
                "first_offset": batch.base_offset,
                "first_timestamp": batch.timestamp,
                "epochs": [],
                "batches": 0,
                "records": 0,
                "state": [None, -1, -1, -1, -1, -1],
            },
        )
        state = entry["state"]
        entry["last_offset"], entry["last_timestamp"] = batch.last_offset, batch.timestamp
        if not entry["epochs"] or batch.epoch > max(entry["epochs"]):
            entry["epochs"].append(batch.epoch)
        if state[0] != batch.epoch:
            state[:3] = [batch.epoch, -1, -1]
        if batch.attributes & CONTROL:
            state[4:] = [coordinator, -1]
        else:
            entry["batches"] += 1
            entry["records"] += batch.count
            state[1:3] = [batch.sequence + batch.count - 1, batch.last_offset]
            if batch.attributes & TRANSACTIONAL and state[5] == -1:
                state[5] = batch.base_offset
        state[3] = batch.timestamp
    return known


@settings(max_examples=60, deadline=None)
@given(EVENTS)
def test_activity_and_state_are_those_of_reading_one_batch_at_a_time(tmp_path_factory, events):
    log, starts = built(events)
    directory = log.write(tmp_path_factory.mktemp("log") / "t-0", segment_starts=starts)
    found = local.producers(ScanOptions(paths=[str(directory)], jobs=1), SilentProgress(), Query())
    listed = {}
    for producer in found.producers:
        (place,) = producer.partitions
        listed[producer.producer_id] = {
            "first_offset": place.first_offset,
            "last_offset": place.last_offset,
            "first_timestamp": place.first_timestamp,
            "last_timestamp": place.last_timestamp,
            "batches": place.batches,
            "records": place.records,
            "state": list(place.state.to_dict().values()),
            "epochs": (place.first_epoch, place.last_epoch, place.epochs),
        }
    expected = naive(log, starts)
    for entry in expected.values():
        entry["epochs"] = (entry["epochs"][0], max(entry["epochs"]), len(entry["epochs"]))
        epoch, sequence, offset, timestamp, coordinator, opened = entry["state"]
        entry["state"] = [epoch, sequence, offset, timestamp, coordinator, opened]
    assert listed == expected
    assert found.found == found.listed == len(expected)


def test_before_2_4_1_a_marker_does_not_renew_the_timestamp(tmp_path):
    log = Log()
    sent = log.append(data(1, 0, 0, transactional=True))
    ended = log.append(marker(1, 0))
    directory = log.write(tmp_path / "t-0")
    for version, expected in (("2.4.0", sent.timestamp), ("2.4.1", ended.timestamp)):
        options = ScanOptions(paths=[str(directory)], jobs=1, broker_version=version)
        (producer,) = local.producers(options, SilentProgress(), Query()).producers
        assert producer.partitions[0].state.last_timestamp == expected


@pytest.mark.parametrize(("version", "since_start"), [("1.1.0", None), ("2.4.0", None), ("2.4.1", 2)])
def test_before_2_4_1_a_marker_of_a_new_epoch_leaves_no_timestamp(tmp_path, version, since_start):
    """Snapshots of brokers 1.1.0 to 2.4.0 hold -1 then; KAFKA-9144."""
    log = Log()
    log.append(data(1, 0, 0, transactional=True))
    log.append(marker(1, 1, commit=False))
    options = ScanOptions(paths=[str(log.write(tmp_path / "t-0"))], jobs=1, broker_version=version)
    (producer,) = local.producers(options, SilentProgress(), Query()).producers
    state = producer.partitions[0].state
    expected = -1 if since_start is None else BASE_TIMESTAMP + since_start
    assert (state.producer_epoch, state.last_sequence, state.last_timestamp) == (1, -1, expected)


def test_a_partition_read_again_from_its_beginning_counts_once(tmp_path):
    log = Log()
    for sequence in range(6):
        log.append(data(1, 0, sequence))
    log.batches[2], log.batches[3] = log.batches[3], log.batches[2]
    directory = log.write(tmp_path / "t-0")
    (producer,) = local.producers(ScanOptions(paths=[str(directory)], jobs=1), SilentProgress(), Query()).producers
    assert (producer.batches, producer.records, producer.partitions[0].state.last_sequence) == (6, 6, 5)
