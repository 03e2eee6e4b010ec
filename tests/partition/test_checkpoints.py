"""What the first ranges of a partition came to, saved: it is used where it holds, and changes nothing."""

import pickle

import pytest

from kaudit import __version__
from kaudit.partition import range_saver
from kaudit.reading.shuffle_codec import pack
from tests.crafted_sample import snapshot
from tests.logs import BASE_TIMESTAMP, data, marker
from tests.partition.audits import Audited
from tests.partition.test_changed_logs import append, segments, write
from tests.partition.test_damaged_state import flip, place


@pytest.fixture
def resumed(monkeypatch):
    """Counts how often a partition went on from a checkpoint."""
    found = []
    resume = range_saver.RangeSaver.resume

    def counted(self, fetch_run):
        replay = resume(self, fetch_run)
        found.append(replay.log_end_offset)
        return replay

    monkeypatch.setattr(range_saver, "is_less_to_load", lambda checkpoint, rows: True)
    monkeypatch.setattr(range_saver.RangeSaver, "resume", counted)
    return found


@pytest.fixture
def saved(tmp_path, resumed):
    log, partition = write(tmp_path / "log" / "orders-0", 40, segment_starts=(10, 20, 30))
    append(
        segments(partition)[-1], log.batches[-1].at(40), data(7, 0, 50).at(41), data(8, 0, 0, transactional=True).at(42)
    )
    audited = Audited(tmp_path / "log", tmp_path / "state", chunk_bytes=3000)
    audited.audit()
    assert resumed == []
    return audited


def partition_of(audited):
    return audited.state.parent / "log" / "orders-0"


def checkpoint_of(audited):
    (found,) = place(audited).glob("checkpoint-*")
    return found


def test_an_audit_goes_on_from_where_the_last_one_ended(saved, resumed):
    active = segments(partition_of(saved))[-1]
    for number in range(3):
        append(active, data(7, 0, 51 + number).at(43 + number))
        assert saved.audit().grown == 1
    append(active, marker(8, 0).at(46), data(7, 0, 60).at(47))
    saved.audit()
    assert resumed == [43, 44, 45, 46]
    checkpoint_of(saved)  # one, the last


def test_a_transaction_that_only_a_snapshot_before_it_shows_stays_open(saved, resumed):
    partition = partition_of(saved)
    (partition.parent / "log-start-offset-checkpoint").write_text("0\n1\norders 0 10\n")
    (partition / f"{20:020d}.snapshot").write_bytes(snapshot([(50, 0, 0, 5, 0, BASE_TIMESTAMP, -1, 5)]))
    saved.audit()
    for number in range(2):
        append(segments(partition)[-1], data(7, 0, 51 + number).at(43 + number))
        assert saved.audit().grown == 1
        assert [each.offset for each in saved.full().findings if "snapshot" in each.evidence] == [5]
    assert resumed == [43, 44]


def test_a_torn_batch_at_the_end_is_not_in_it(saved, resumed):
    active, torn = segments(partition_of(saved))[-1], data(7, 0, 51, payload=b"z" * 300).at(43).encode()
    with active.open("ab") as file:
        file.write(torn[:100])
    saved.audit()
    with active.open("ab") as file:
        file.write(torn[100:])
    saved.audit()
    assert resumed == [43, 43]


@pytest.mark.parametrize("change", ["head", "closed", "cut", "snapshot", "log start", "cleaner"])
def test_it_does_not_hold_for_another_log(saved, resumed, change):
    partition = partition_of(saved)
    first, second, *_, active = segments(partition)
    if change == "head":
        first.unlink()
    elif change == "closed":
        second.write_bytes(second.read_bytes())
    elif change == "cut":
        active.write_bytes(active.read_bytes()[:-80])
    elif change == "snapshot":
        (partition / f"{20:020d}.snapshot").write_bytes(b"\x00" * 6)
    elif change == "log start":
        (partition.parent / "log-start-offset-checkpoint").write_text("0\n1\norders 0 3\n")
    else:
        (partition.parent / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 30\n")
    saved.audit()
    assert resumed == []
    saved.audit()
    assert len(resumed) == 1


@pytest.mark.parametrize("kind", ["flipped", "cut", "gone", "hostile", "other"])
def test_a_damaged_one_costs_putting_together(saved, resumed, kind, monkeypatch, capsys):
    class Call:
        def __reduce__(self):
            return print, ("called",)

    checkpoint = checkpoint_of(saved)
    if kind == "flipped":
        flip(checkpoint, 50)
    elif kind == "cut":
        checkpoint.write_bytes(checkpoint.read_bytes()[:-1])
    elif kind == "gone":
        checkpoint.unlink()
    else:
        content = pickle.dumps(Call()) if kind == "hostile" else pack((__version__, []))
        monkeypatch.setattr("kaudit.partition.range_saver.read_packed", lambda *_: content)
    use = saved.audit()
    assert (use.damaged, use.unchanged) == (1, 4)
    assert resumed == []
    assert "called" not in capsys.readouterr().out


@pytest.mark.parametrize(("chunk_bytes", "made"), [(1 << 20, 0), (100, 1)])
def test_one_is_made_of_many_ranges_however_few_their_rows(tmp_path, chunk_bytes, made):
    write(tmp_path / "log" / "orders-0", 40)
    audited = Audited(tmp_path / "log", tmp_path / "state", chunk_bytes=chunk_bytes)
    audited.audit()
    assert len(list(place(audited).glob("checkpoint-*"))) == made


@pytest.mark.parametrize(("ranges", "made"), [(2, 0), (3, 1)])
def test_one_is_made_of_three_ranges(tmp_path, ranges, made):
    _, partition = write(tmp_path / "log" / "orders-0", 40)
    (segment,) = segments(partition)
    audited = Audited(tmp_path / "log", tmp_path / "state", chunk_bytes=-(-segment.stat().st_size // ranges))
    audited.audit()
    assert len(list(place(audited).glob("checkpoint-*"))) == made


@pytest.mark.parametrize(
    ("checkpoint_bytes", "rows_bytes", "less"),
    [
        *((0, 196_607, False), (0, 196_608, True), (196_608, 196_608, True)),
        *((200_000, 199_999, False), (200_000, 200_000, True)),
    ],
)
def test_rows_of_as_many_bytes_as_three_ranges_and_the_checkpoint_are_worth_one(checkpoint_bytes, rows_bytes, less):
    assert range_saver.is_less_to_load(checkpoint_bytes, rows_bytes) is less
