"""Which producer ids of a partition are read again for two writers, and what two writers explain; logs written and audited."""

import random
from types import SimpleNamespace
from typing import Any

import pytest

from kaudit.model.producer_patterns import Chain, InterleavedWriters
from kaudit.partition import find_repeats as module
from kaudit.partition.find_repeats import shared_producer_ids
from kaudit.source.discover import discover
from kaudit.source.schemes import open_segment
from tests.logs import Log, data
from tests.properties.test_law import decode, replay_rows

RESTART_AND_GAP = "0-4 5-9 20-24 0-1c 2-3c 100-101 4 102 5 103 6 900"


def words(text, producer_id=7, epoch=0):
    """Batches like `0-4 5-9 0-4b`: sequences, and a letter for other records than the first of these sequences."""
    for word in text.split():
        first, _, last = word.rstrip("bc").partition("-")
        yield data(producer_id, epoch, int(first), int(last or first) - int(first) + 1, payload=word[-1:].encode())


def audited(tmp_path, *batches, holes=(), log_append_time=0):
    """The audit of a partition with these batches, as far as it is asked; a hole before the batches of these numbers."""
    log = Log()
    for number, batch in enumerate(batches):
        log.skip(100 if number in holes else 0)
        log.append(batch)
    log.write(tmp_path / "orders-0")
    (directory,) = discover([str(tmp_path / "orders-0")]).partitions
    audit = replay_rows(decode(log), [], holes_are_normal=False)
    counts = SimpleNamespace(log_append_time=log_append_time)
    seen = {"observations": audit.observations, "dropped_observations": 0, "compacted": False}
    part: Any = SimpleNamespace(directory=directory, counts=counts, **seen)
    return part, [batch.base_offset for batch in log.batches]


def found_in(part):
    return [(each.producer_id, each.producer_epoch) for each in shared_producer_ids(part, open_segment)]


def open_nothing(segment):
    raise AssertionError(segment)


def test_two_writers_and_the_observations_they_explain(tmp_path):
    """Neither the gap before both chains, nor the one behind them; what other producers did is theirs."""
    part, offsets = audited(tmp_path, *words(RESTART_AND_GAP), *words("0 1 1b 5", 8))
    (shared,) = shared_producer_ids(part, open_segment)
    assert (shared.producer_id, shared.producer_epoch, shared.grants) == (7, 0, 0)
    second = Chain(offsets[5], offsets[9], 100, 103, 3)
    assert shared.writers == InterleavedWriters(Chain(offsets[3], offsets[10], 0, 6, 5), second, 6, 0, 0)
    assert [each.offset for each in shared.observations] == [offsets[number] for number in (3, 5, 6, 8, 10)]
    assert {each.producer_id for each in shared.observations} == {7}


def test_a_chain_is_followed_from_the_oldest_batch_remembered_when_the_second_writer_began(tmp_path):
    part, offsets = audited(tmp_path, *words("0 1 2 3 4 5 6 100 7 101 8 102"))
    (shared,) = shared_producer_ids(part, open_segment)
    assert shared.writers.first == Chain(offsets[2], offsets[10], 2, 8, 7)
    assert shared.writers.second == Chain(offsets[7], offsets[11], 100, 102, 3)


@pytest.mark.parametrize(
    "texts",
    [
        ["0 1 100 2 101"],  # two anomalies
        ["0 100 1 101", "0 100 1 101"],  # two of each epoch
        ["0-1 5-6 10-11 15-16 20-21"],  # a client that counts wrongly
        ["0 1 2", "0 1"],
    ],
)
def test_nothing_is_read_again_for_fewer_anomalies_than_two_writers_make(tmp_path, texts):
    part, _ = audited(tmp_path, *(batch for epoch, text in enumerate(texts) for batch in words(text, epoch=epoch)))
    assert shared_producer_ids(part, open_nothing) == []


def test_three_anomalies_are_enough_to_read_but_not_to_name_two_writers(tmp_path):
    part, _ = audited(tmp_path, *words("0 1 100 2 3 200"))
    with pytest.raises(AssertionError):
        shared_producer_ids(part, open_nothing)
    assert found_in(part) == []


@pytest.mark.parametrize("text", ["0 100 200 50", "0 1 2 2 2 2 3", "0 100 0b 1 0c 1 300"])
def test_nothing_is_read_again_where_no_batch_goes_on_from_where_the_sequences_left_off(tmp_path, text):
    part, _ = audited(tmp_path, *words(text))
    assert len(part.observations) >= 3
    assert shared_producer_ids(part, open_nothing) == []
    part.compacted = True  # observations that missing offsets explain are left out there
    with pytest.raises(AssertionError):
        shared_producer_ids(part, open_nothing)


def test_reading_all_again_finds_no_more(tmp_path, monkeypatch):
    draw, found = random.Random(3), 0
    for number in range(150):
        places = [0, draw.choice([0, 3, 50, 2**31 - 3])]
        batches = []
        for _ in range(draw.randint(4, 14)):
            writer = draw.random() < 0.4
            places[writer] = max(places[writer] + draw.choice([0, 0, 0, 0, -1, -2, 5]), 0) % 2**31
            epoch = int(draw.random() < 0.1)
            batches.append(data(7, epoch, places[writer], 1, payload=draw.choice([b"a", b"a", b"b"])))
            places[writer] = (places[writer] + 1) % 2**31
        part, _ = audited(tmp_path / str(number), *batches)
        own = shared_producer_ids(part, open_segment)
        with monkeypatch.context() as patched:
            patched.setattr(module, "_came_back", lambda _, chosen: chosen)
            assert shared_producer_ids(part, open_segment) == own
        found += len(own)
    assert found > 10


def test_gaps_that_missing_offsets_explain_are_no_anomalies(tmp_path):
    part, _ = audited(tmp_path, *words("0 50 120 170"), holes=(1, 2, 3))
    assert len(part.observations) == 3
    assert shared_producer_ids(part, open_nothing) == []


def test_neither_are_stale_batches(tmp_path):
    batches = [*words("0", epoch=3), *words("4 9 12", epoch=2)]
    part, _ = audited(tmp_path, *batches)
    assert len(part.observations) == 3
    assert shared_producer_ids(part, open_nothing) == []


def test_so_many_are_read_again(tmp_path, monkeypatch):
    chains = "0 100 1 101 2 102"
    part, _ = audited(tmp_path, *words(chains, 9), *words(chains, 7), *words(chains, 8))
    assert found_in(part) == [(7, 0), (8, 0), (9, 0)]
    for limit in (1, 2):
        monkeypatch.setattr(module, "MAX_SUSPECTS", limit)
        assert found_in(part) == [(7, 0), (8, 0), (9, 0)][:limit]


@pytest.mark.parametrize(
    ("text", "rewritten", "second", "likely"),
    [
        ("0 0b 1 1b 2 2b 3 3b", 4, 4, False),
        ("0-1 2 0-1b 3 2-4b 4", 1, 2, False),
        ("0-1 2 0-1b 3 2-4b 5b 4", 1, 3, True),
        ("0 1 2 50 3 51 4 52 5 53", 0, 4, True),
    ],
)
def test_under_log_append_time_many_equal_sequences_are_copies_of_one_writer(tmp_path, text, rewritten, second, likely):
    """The broker changes the CRC of a batch sent again: it is not known as a copy."""
    part, _ = audited(tmp_path / "create", *words(text))
    found = shared_producer_ids(part, open_segment)
    assert [(each.writers.rewritten, each.writers.second.batches) for each in found] == [(rewritten, second)]
    part, _ = audited(tmp_path / "append", *words(text), log_append_time=1)
    assert len(shared_producer_ids(part, open_segment)) == likely
