"""KA516: objects in remote storage that are missing, cut off, or cannot be decoded; copies that are whole give nothing."""

import pytest

from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.scanning.options import ScanOptions
from tests.engines.faulty_logs import healthy
from tests.remote_storage import AivenPlugin, LocalTieredStorage, move, split

ZSTD_FRAME = b"\x28\xb5\x2f\xfd"


@pytest.fixture
def tiered(tmp_path):
    def make(plugin):
        return move(split(healthy(tmp_path / "data" / "orders-0")), tmp_path / "remote", plugin)

    return make


def reported(tmp_path):
    options = ScanOptions([str(tmp_path / "data")], remote=str(tmp_path / "remote"), jobs=1)
    result = scan(options, SilentProgress())
    return [each for each in result.findings if each.code == "KA516"], {each.code for each in result.findings}


@pytest.mark.parametrize("plugin", [LocalTieredStorage(), AivenPlugin(), AivenPlugin(compression=True)])
def test_whole_copies_are_silent(tmp_path, tiered, plugin):
    tiered(plugin)
    found, codes = reported(tmp_path)
    # LocalTieredStorage always has a snapshot, and this log has none
    assert {each.message.rpartition(".")[2] for each in found} <= {"snapshot: it is missing"}
    assert codes <= {"KA516"}


@pytest.mark.parametrize("compression", [False, True])
def test_an_object_that_was_cut_off(tmp_path, tiered, compression):
    copy = tiered(AivenPlugin(compression=compression))[1]
    size = copy.stat().st_size
    copy.write_bytes(copy.read_bytes()[:-20])
    found, codes = reported(tmp_path)
    assert {each.file for each in found} == {str(copy)}
    (cut,) = [each for each in found if each.position == size - 20]
    assert cut.message.endswith(f"it has {size - 20:,} bytes, and its manifest says {size:,}")
    assert len(found) == 1 + compression  # the chunk cannot be decoded either
    assert codes & {"KA002", "KA003"}


def test_a_chunk_that_cannot_be_decoded(tmp_path, tiered):
    copy = tiered(AivenPlugin(chunk_size=1500, compression=True))[1]
    content = bytearray(copy.read_bytes())
    starts = [at for at in range(len(content)) if content.startswith(ZSTD_FRAME, at)]
    content[starts[2] + 6 : starts[2] + 40] = bytes(34)
    copy.write_bytes(content)
    found, codes = reported(tmp_path)
    (chunk,) = found
    assert (chunk.file, chunk.position) == (str(copy), starts[2])
    assert f"chunk 2, bytes {starts[2]:,} to {starts[3]:,} of the object, holds bytes 3,000 to 4,500" in chunk.message
    assert "cannot be decoded: zstd" in chunk.message
    assert "KA003" in codes


def test_a_bit_flipped_before_it_was_compressed_is_placed_in_its_chunk(tmp_path, tiered):
    plugin = AivenPlugin(chunk_size=1500, compression=True)
    directory = split(healthy(tmp_path / "data" / "orders-0"))
    (segment, *_) = sorted(directory.glob("*.log"))
    content = bytearray(segment.read_bytes())
    content[3100] ^= 1
    segment.write_bytes(content)
    copy = move(directory, tmp_path / "remote", plugin)[0]
    found, codes = reported(tmp_path)
    (chunk,) = found
    frames = [at for at in range(copy.stat().st_size) if copy.read_bytes().startswith(ZSTD_FRAME, at)]
    # the batch may begin in the chunk before
    assert chunk.position in frames[1:3]
    assert chunk.message.endswith("of the segment, in which batches are damaged")
    assert codes & {"KA001", "KA003", "KA006", "KA007"}


def test_missing_and_short_indexes(tmp_path, tiered):
    copies = tiered(AivenPlugin())
    copies[0].with_suffix(".indexes").unlink()
    indexes = copies[1].with_suffix(".indexes")
    size = indexes.stat().st_size
    indexes.write_bytes(indexes.read_bytes()[:-1])
    found, _ = reported(tmp_path)
    assert [(each.file, each.position) for each in found] == [
        (str(copies[0].with_suffix(".indexes")), None),
        (str(indexes), size - 1),
    ]


def test_a_missing_file_of_local_tiered_storage(tmp_path, tiered):
    copies = tiered(LocalTieredStorage())
    copies[0].with_suffix(".timeindex").unlink()
    found, _ = reported(tmp_path)
    assert str(copies[0].with_suffix(".timeindex")) in {each.file for each in found}
