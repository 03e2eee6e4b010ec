"""A state that is not what was saved: the log is read, and the result is that of a full audit."""

import json
import os
import pickle
from pathlib import Path

import crc32c
import msgspec
import pytest
import zstandard
from msgspec.structs import replace

from kaudit import __version__, installation
from kaudit.installation import Build
from kaudit.partition.range_saver import MOST_FILES
from kaudit.reading.state_files import decode_index, encode_index, read_index
from kaudit.reading.struct_codec import FORMAT
from kaudit.scanning.options import Depth
from kaudit.scanning.plan import share_rate
from kaudit.source.local import LocalFileSystem
from kaudit.source.uri import Uri
from tests.logs import data
from tests.partition.audits import Audited
from tests.partition.test_changed_logs import append, segments, write

SEGFAULT = Path(__file__).parent.parent / "reading" / "data" / "column-chunk-dtype-segfault.bin"


@pytest.fixture
def saved(tmp_path):
    log, partition = write(tmp_path / "log" / "orders-0", 40, segment_starts=(20,))
    append(segments(partition)[-1], log.batches[-1].at(40), data(7, 0, 50).at(41))
    audited = Audited(tmp_path / "log", tmp_path / "state")
    assert audited.audit().new == 2
    return audited


def place(audited):
    (found,) = (audited.state / "partitions").iterdir()
    return found


def rows_file(audited):
    (found,) = place(audited).glob("rows-*")
    return found


def flip(file, at):
    content = bytearray(file.read_bytes())
    content[at] ^= 0x40
    file.write_bytes(content)


def with_rows(audited, packed):
    """Let the index name these rows, as somebody would who can write to the store."""
    rows_file(audited).write_bytes(packed)
    index = decode_index((place(audited) / "index").read_bytes())
    ranges = [replace(entry, at=0, length=len(packed), crc=crc32c.crc32c(packed)) for entry in index.ranges]
    (place(audited) / "index").write_bytes(encode_index(replace(index, ranges=ranges)))


@pytest.mark.parametrize("at", [0, 20, 60, -1])
def test_an_index_with_a_flipped_bit(saved, at):
    flip(place(saved) / "index", at)
    use = saved.audit()
    assert (use.damaged, use.new) == (1, 2)
    assert saved.audit().unchanged == 2


@pytest.mark.parametrize("size", [0, 5, 40])
def test_an_index_that_was_cut(saved, size):
    index = place(saved) / "index"
    index.write_bytes(index.read_bytes()[:size])
    assert saved.audit().damaged == 1
    assert saved.audit().unchanged == 2


def test_rows_with_a_flipped_bit(saved):
    flip(rows_file(saved), 30)
    assert saved.audit().damaged == 1
    use = saved.audit()
    assert (use.damaged, use.unchanged) == (0, 2)


def test_rows_that_are_gone(saved):
    rows_file(saved).unlink()
    assert saved.audit().damaged == 2
    assert saved.audit().damaged == 0


def test_rows_that_would_call_something(saved, tmp_path, capsys):
    class Call:
        def __reduce__(self):
            return print, ("called",)

    pickled = pickle.dumps((__version__, [Call()]))
    with_rows(saved, zstandard.ZstdCompressor().compress(pickled))  # as kaudit saved rows once
    assert saved.audit().damaged == 2
    assert "called" not in capsys.readouterr().out


def test_rows_that_claim_to_be_more_than_memory_holds(saved):
    index = decode_index((place(saved) / "index").read_bytes())
    first = index.ranges[0]
    packed = rows_file(saved).read_bytes()[first.at :][: first.length]
    outcomes = msgspec.msgpack.decode(zstandard.ZstdDecompressor().decompress(packed[2:]))
    runs = outcomes[0][0][4]
    assert runs[1] == [1]
    runs[1], runs[2] = [1 << 40], b""
    bomb = zstandard.ZstdCompressor().compress(msgspec.msgpack.encode(outcomes))
    with_rows(saved, FORMAT.to_bytes(2, "big") + bomb)
    assert saved.audit().damaged == 2


@pytest.mark.parametrize("prefix", [b"", FORMAT.to_bytes(2, "big")])
def test_rows_whose_dtype_once_made_numpy_read_any_memory(saved, prefix):
    with_rows(saved, prefix + SEGFAULT.read_bytes())
    assert saved.audit().damaged == 2


def test_rows_of_another_range(saved):
    index = decode_index((place(saved) / "index").read_bytes())
    first = index.ranges[0]
    with_rows(saved, rows_file(saved).read_bytes()[first.at :][: first.length])
    assert saved.audit().damaged == 1


def test_a_state_of_another_build_with_the_same_format_is_used(saved, monkeypatch):
    # the same version, made from another commit
    monkeypatch.setattr(installation, "build_of", lambda: Build("0123456789ab"))
    monkeypatch.setattr("kaudit.__version__", "99.0.0")
    use = saved.audit()
    assert (use.notice, use.unchanged) == (None, 2)


def test_a_state_of_another_format_is_replaced(saved):
    manifest, index = saved.state / "kaudit-state.json", place(saved) / "index"
    written = {"depth": "crc", "kaudit": "kaudit 0.1.0", "schema": "kaudit.state/1"}
    manifest.write_bytes(json.dumps(written).encode())
    index.write_bytes(b"kaudit-state-1\n" + index.read_bytes()[15:])
    use = saved.audit()
    assert use.notice == f"its format is kaudit.state/1, this kaudit reads kaudit.state/{FORMAT}"
    assert (use.new, use.damaged) == (2, 0)
    use = saved.audit()
    assert (use.notice, use.unchanged) == (None, 2)


def test_a_state_of_another_depth(saved):
    deeper = Audited(saved.state.parent / "log", saved.state, depth=Depth.RECORDS)
    assert deeper.audit().notice == "it is of --depth crc, this is --depth records"
    assert deeper.audit().unchanged == 2


def test_a_damaged_manifest(saved):
    (saved.state / "kaudit-state.json").write_bytes(b"\x00")
    assert saved.audit().notice == "its manifest is damaged"


@pytest.mark.parametrize("last", ["rows", "index"])
def test_a_run_that_is_killed_while_it_saves(saved, monkeypatch, last):
    put = LocalFileSystem.put

    def killed(self, uri, content):
        if uri.last.startswith(last):
            raise KeyboardInterrupt
        put(self, uri, content)

    partition = saved.state.parent / "log" / "orders-0"
    append(segments(partition)[-1], data(7, 0, 60).at(42))
    with monkeypatch.context() as patch:
        patch.setattr(LocalFileSystem, "put", killed)
        with pytest.raises(KeyboardInterrupt):
            saved.audit()
    for file in place(saved).iterdir():
        os.utime(file, (1, 1))  # long ago: whoever wrote it is not about to name it
    use = saved.audit()
    assert (use.unchanged, use.grown, use.damaged) == (1, 1, 0)
    found = read_index(Uri.parse(str(place(saved))))
    assert found is not None
    assert {file.name for file in place(saved).iterdir()} == {"index", *found[0].names}
    assert len(list(place(saved).glob("rows-*"))) == 2


def test_a_store_that_is_full(saved, monkeypatch):
    def full(self, uri, content):
        raise OSError(28, "No space left on device")

    append(segments(saved.state.parent / "log" / "orders-0")[-1], data(7, 0, 60).at(42))
    with monkeypatch.context() as patch:
        patch.setattr(LocalFileSystem, "put", full)
        assert saved.audit().not_saved == ("No space left on device", 1)
    assert saved.audit().grown == 1


def test_another_run_that_saves_between_planning_and_reading(saved, monkeypatch):
    active = segments(saved.state.parent / "log" / "orders-0")[-1]
    append(active, data(7, 0, 60).at(42))
    other = Audited(saved.state.parent / "log", saved.state)

    def share_after_another_run(jobs, readers):
        monkeypatch.setattr("kaudit.engines.local.share_rate", share_rate)
        assert other.audit().grown == 1
        return share_rate(jobs, readers)

    monkeypatch.setattr("kaudit.engines.local.share_rate", share_after_another_run)
    saved.audit()
    use = saved.audit()
    assert (use.unchanged, use.damaged) == (2, 0)


def test_rows_in_many_files_go_into_one(saved):
    active = segments(saved.state.parent / "log" / "orders-0")[-1]
    for number in range(MOST_FILES + 3):
        append(active, data(7, 0, 60 + number).at(42 + number))
        assert saved.audit().grown == 1
    assert 2 <= len(list(place(saved).glob("rows-*"))) <= MOST_FILES
    assert saved.audit().unchanged == 2
