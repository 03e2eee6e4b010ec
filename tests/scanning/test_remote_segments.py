"""A log whose first segments are in remote storage is audited as it is with all of them on the disk."""

import os
import shutil
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key as generate_rsa_key
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from msgspec.structs import replace

from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.errors import NothingToAuditError, UsageError
from kaudit.model.severity import Severity
from kaudit.scanning.options import Depth, ScanOptions
from tests.engines import faulty_logs
from tests.live_brokers.accidents.judged import recorded
from tests.live_brokers.accidents.truth import truths
from tests.logs import Log, data, marker
from tests.remote_storage import AivenPlugin, LocalTieredStorage, Segment, dated, move, split, starts_of
from tests.source.encrypted_chunks import KEY

WRITTEN = 1_700_100_000
PLUGINS: dict[str, Callable[[], AivenPlugin | LocalTieredStorage]] = {
    "local": LocalTieredStorage,
    "chunks": AivenPlugin,
    "small chunks": lambda: AivenPlugin(chunk_size=100),
    "zstd": lambda: AivenPlugin(compression=True),
    "zstd, small chunks": lambda: AivenPlugin(chunk_size=100, compression=True),
    "one chunk": lambda: AivenPlugin(chunk_size=1 << 30, compression=True),
    "encrypted, small chunks": lambda: AivenPlugin(chunk_size=100, key=KEY),
    "encrypted zstd": lambda: AivenPlugin(compression=True, key=KEY),
}
FAULTS = ("healthy", "wrapping", "gap", "duplicates", "zombie", "hanging", "corrupt")


def audited(*paths, **more):
    return scan(ScanOptions([str(path) for path in paths], jobs=1, **more), SilentProgress())


def found(result):
    """What an audit says of the log, but for the names of files: not what it says of objects (KA516)."""
    return (
        [
            (each.code, each.severity, each.fingerprint, each.offset, each.last_offset, each.message)
            for each in of_log(result)
        ],
        replace(result.summary, findings={}, statuses={}),
        [(entry.log_start_offset, entry.log_end_offset, entry.offsets, entry.ranges) for entry in result.coverage],
    )


def of_log(result):
    return [each for each in result.findings if each.code != "KA516"]


@pytest.fixture
def tiered(tmp_path):
    """Return a copy of a partition with its first segments in remote storage, the storage, and the objects of the logs."""

    def make(whole: Path, plugin, *, kept: int = 1):
        here, there = tmp_path / "tiered" / "data", tmp_path / "tiered" / "remote"
        shutil.copytree(whole.parent, here)
        copies = move(here / whole.name, there, plugin, kept=kept)
        dated(tmp_path, WRITTEN)
        return here, there, copies

    return make


@pytest.fixture(scope="session")
def other_key(tmp_path_factory):
    file = tmp_path_factory.mktemp("keys") / "key2.pem"
    key = generate_rsa_key(65537, 2048)
    file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()))
    return str(file)


@pytest.fixture
def whole(tmp_path):
    """A log of four segments, with transactions of both outcomes, an epoch bump and a repeated batch."""
    log = Log()
    for number in range(120):
        log.append(data(100, 0, number, payload=b"x" * 100))
        log.append(data(500, 0, number, transactional=True, payload=b"y" * 50))
        if number % 10 == 9:
            log.append(marker(500, 0, commit=number % 20 == 9))
        if number == 40:
            log.append(log.batches[-2])
    return split(log.write(tmp_path / "whole" / "orders-0"))


@pytest.mark.parametrize("plugin", PLUGINS)
@pytest.mark.parametrize("name", FAULTS)
def test_one_log_wherever_its_segments_lie(tmp_path, tiered, name, plugin):
    directory = getattr(faulty_logs, name)(tmp_path / "whole" / "orders-0")
    here, there, _ = tiered(split(directory), PLUGINS[plugin]())
    assert len(starts_of(here / "orders-0")) == 1
    result = audited(here, remote=str(there), remote_keys=[str(KEY)])
    assert found(result) == found(audited(directory.parent))
    assert sorted(each.code for each in of_log(result)) == faulty_logs.FAULTS[getattr(faulty_logs, name)]


@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_real_log_with_its_indexes_and_snapshots(tmp_path, tiered, plugin):
    """All of them are compared with the log: those that were uploaded with the segments, too."""
    (directory,) = recorded("timestamps-in-seconds").glob("**/expired/b1/future-0")
    whole = tmp_path / "whole" / "future-0"
    shutil.copytree(directory, whole)
    here, there, _ = tiered(whole, PLUGINS[plugin]())
    result = audited(here, remote=str(there), remote_keys=[str(KEY)])
    assert len(result.segments) == len(starts_of(whole)) > 4
    assert found(result) == found(audited(whole.parent))
    alone = audited(remote=str(there), remote_keys=[str(KEY)])
    assert len(alone.segments) == len(starts_of(whole)) - 1
    assert {each.code for each in alone.findings} <= {"KA616"}


@pytest.mark.parametrize("name", ["tiered", "tiered-4.3"])
def test_what_real_brokers_moved_is_one_log_with_what_they_kept(name, tmp_path):
    """Healthy brokers, one of which was killed meanwhile: no finding, and the records that clients were told of (LocalTieredStorage)."""
    place = recorded(name)
    for moment in truths()[name].moments:
        truth = moment.topics["orders"]
        result = audited(place / moment.name, topics=["orders"], remote=str(place / f"remote-{moment.name}"))
        assert [each.code for each in result.findings if each.severity is not Severity.NOTE] == []
        assert not any("was not read" in entry.reason for entry in result.not_audited)
        (whole,) = [
            entry for entry in result.coverage if entry.log_start_offset == 0 and not entry.offsets.get("remote")
        ]
        # those of the aborted transaction are on the disk, and no consumer is given them
        assert whole.offsets["data"] == truth.acknowledged + truth.failed == truth.read + truth.failed


@pytest.mark.parametrize("name", ["tiered-holes", "tiered-holes-4.3"])
def test_what_real_brokers_lost_between_remote_and_local_is_missing(name, tmp_path):
    place = recorded(name)
    seen = 0
    for moment in truths()[name].moments:
        there = place / f"remote-{moment.name}"
        if not list(there.rglob("orders-*/*.log")):
            continue  # they had been put aside for a while
        result = audited(place / moment.name, topics=["orders"], remote=str(there))
        lost = sum(each.last_offset - each.offset + 1 for each in result.findings if each.code == "KA008")
        assert lost == moment.topics["orders"].lost
        seen += lost > 0
    assert seen > 0


def test_of_offsets_that_are_in_both_the_local_ones_are_read(whole, tiered):
    here, there, copies = tiered(whole, AivenPlugin(), kept=3)
    for copy in copies[1:]:
        copy.write_bytes(b"not what it was")
    result = audited(here, remote=str(there))
    assert found(result) == found(audited(whole.parent))


def test_a_copy_that_goes_on_after_the_first_local_offset_ends_there(whole, tiered, tmp_path):
    """After a change of leaders segments begin elsewhere than they did on the broker that copied them."""
    starts = starts_of(whole)
    for plugin in (AivenPlugin(compression=True), LocalTieredStorage()):
        here, there, _ = tiered(whole, plugin)
        longer = Segment.of(whole, starts[-2], starts[-1] + 12)
        content = (whole / f"{starts[-1]:020d}.log").read_bytes()
        for _ in range(3):
            length = 12 + int.from_bytes(content[8:12], "big")
            longer.files["log"] += content[:length]
            content = content[length:]
        shutil.rmtree(there)
        for start, following in pairwise(starts[:-1]):
            plugin.copy(Segment.of(whole, start, following), there, "orders", 0)
        plugin.copy(longer, there, "orders", 0)
        dated(there, WRITTEN)
        assert found(audited(here, remote=str(there))) == found(audited(whole.parent))
        shutil.rmtree(tmp_path / "tiered")


def test_segments_that_were_copied_twice_are_read_once(whole, tiered):
    here, there, _ = tiered(whole, plugin := AivenPlugin())
    starts = starts_of(whole)
    plugin.copy(Segment.of(whole, starts[0], starts[1]), there, "orders", 0, again="after a failover")
    shorter = Segment.of(whole, starts[1], starts[2])
    first = 12 + int.from_bytes(shorter.files["log"][8:12], "big")
    inside = Segment(
        starts[1] + 1, starts[2] - 1, {**shorter.files, "log": shorter.files["log"][first:]}, shorter.topic_id
    )
    plugin.copy(inside, there, "orders", 0)
    dated(there, WRITTEN)
    assert found(audited(here, remote=str(there))) == found(audited(whole.parent))


@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_segment_that_is_missing_there_is_a_hole(whole, tiered, plugin):
    here, there, copies = tiered(whole, PLUGINS[plugin]())
    for file in copies[1].parent.glob(f"{copies[1].name[:-4]}*"):
        file.unlink()
    starts = starts_of(whole)
    result = audited(here, remote=str(there), remote_keys=[str(KEY)])
    (hole,) = [each for each in result.findings if each.code == "KA008"]
    assert (hole.offset, hole.last_offset) == (starts[1], starts[2] - 1)


def test_a_flipped_bit_is_found_in_the_object_at_its_byte(whole, tiered):
    here, there, copies = tiered(whole, AivenPlugin(chunk_size=1000))
    content = bytearray(copies[1].read_bytes())
    batch = 12 + int.from_bytes(content[8:12], "big")
    content[batch + 70] ^= 1
    copies[1].write_bytes(content)
    (damage,) = [each for each in audited(here, remote=str(there)).findings if each.code == "KA001"]
    assert (damage.file, damage.position) == (str(copies[1]), batch)
    assert damage.segment == f"{starts_of(whole)[1]:020d}.log"
    # recovery reads the broker's disk alone: it would cut off the same damage there
    assert damage.impact.bytes_truncated is None
    on_disk = whole / damage.segment
    content = bytearray(on_disk.read_bytes())
    content[batch + 70] ^= 1
    on_disk.write_bytes(content)
    (damage,) = [each for each in audited(whole.parent).findings if each.code == "KA001"]
    assert damage.impact.bytes_truncated


def test_a_chunk_that_cannot_be_decoded_costs_its_own_batches_alone(whole, tiered):
    here, there, copies = tiered(whole, AivenPlugin(chunk_size=2000, compression=True))
    content = bytearray(copies[1].read_bytes())
    content[content.index(b"\x28\xb5\x2f\xfd", 10) + 12 : -1][:20] = b""
    second = content.index(b"\x28\xb5\x2f\xfd", 10)
    content[second + 8 : second + 40] = bytes(32)
    copies[1].write_bytes(content)
    result = audited(here, remote=str(there))
    lost = sum(each.last_offset - each.offset + 1 for each in result.findings if each.code == "KA003")
    of_segment = starts_of(whole)[2] - starts_of(whole)[1]
    assert 0 < lost < of_segment / 2
    assert not [entry for entry in result.not_audited if entry.unreadable]


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (lambda file: file.unlink(), "is missing: the upload did not finish, or somebody deleted it"),
        (lambda file: file.write_bytes(b"{"), "is damaged: not a manifest in JSON"),
        (lambda file: file.write_bytes(b'{"version":"1"}'), "is damaged: Object missing required field"),
    ],
)
def test_without_its_manifest_a_compressed_segment_is_not_read(whole, tiered, harm, reason):
    here, there, copies = tiered(whole, AivenPlugin(compression=True))
    harm(copies[1].with_suffix(".rsm-manifest"))
    result = audited(here, remote=str(there))
    (unread,) = [each for each in result.findings if each.code == "KA012"]
    assert f"its manifest {copies[1].stem}.rsm-manifest {reason}" in unread.message
    assert unread.file == f"{copies[1]}!"
    assert result.incomplete


def test_encrypted_segments_are_said_to_be(whole, tiered, other_key):
    here, there, copies = tiered(whole, AivenPlugin(key=KEY))
    for keys, expected in (
        (
            [],
            "encrypted with key key1 (AES-GCM): scan --remote with --remote-key FILE, its private RSA key, decrypts it",
        ),
        ([other_key], f"encrypted with key key1 (AES-GCM), whose private key is not in {other_key}"),
    ):
        result = audited(here, remote=str(there), remote_keys=keys)
        assert result.incomplete
        said = {entry.path: entry.reason for entry in result.not_audited if entry.unreadable}
        assert {path for path in said if path.endswith(".log!")} == {f"{copy}!" for copy in copies}
        assert set(said.values()) == {expected}


def test_each_segment_is_decrypted_with_the_key_of_the_ring_that_is_its_own(whole, tiered, other_key):
    """Keys are rotated: older segments stay encrypted with the older one."""
    here, there, _ = tiered(whole, AivenPlugin(key=Path(other_key)))
    starts = starts_of(whole)
    AivenPlugin(key=KEY).copy(Segment.of(whole, starts[1], starts[2]), there, "orders", 0)
    dated(there, WRITTEN)
    result = audited(here, remote=str(there), remote_keys=[str(KEY), other_key])
    assert found(result) == found(audited(whole.parent))


def test_a_changed_byte_of_an_encrypted_object_costs_its_chunk_alone(whole, tiered):
    here, there, copies = tiered(whole, AivenPlugin(chunk_size=2000, key=KEY))
    content = bytearray(copies[1].read_bytes())
    content[2028 + 500] ^= 1
    copies[1].write_bytes(content)
    result = audited(here, remote=str(there), remote_keys=[str(KEY)])
    (damaged,) = [each for each in result.findings if each.code == "KA516"]
    assert (damaged.file, damaged.position) == (str(copies[1]), 2028)
    assert "chunk 1, bytes 2,028 to 4,056 of the object" in damaged.message
    assert "AES-GCM does not authenticate it" in damaged.message
    assert 0 < sum(each.last_offset - each.offset + 1 for each in result.findings if each.code == "KA003") < 60


def test_a_changed_byte_of_an_encrypted_index_is_named(whole, tiered):
    here, there, copies = tiered(whole, AivenPlugin(key=KEY))
    indexes = copies[1].with_suffix(".indexes")
    content = bytearray(indexes.read_bytes())
    content[20] ^= 1
    indexes.write_bytes(content)
    result = audited(here, remote=str(there), remote_keys=[str(KEY)])
    (unread,) = [entry for entry in result.not_audited if entry.unreadable]
    assert unread.path == f"{indexes}!/{starts_of(whole)[1]:020d}.index"
    assert unread.reason.startswith("bytes 0 to ")
    assert unread.reason.endswith("AES-GCM does not authenticate it: its bytes are not those that were encrypted")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"no key", "it holds no private RSA key in PEM"),
        (None, "No such file or directory"),
        ("encrypted", "it is protected by a password: write it without one"),
        ("public", "it holds no private RSA key in PEM"),
        ("elliptic", "it holds no private RSA key in PEM"),
    ],
)
def test_what_is_no_key(whole, tiered, tmp_path, content, reason):
    here, there, _ = tiered(whole, AivenPlugin(key=KEY))
    file = tmp_path / "key.pem"
    rsa = load_pem_private_key(KEY.read_bytes(), None)
    pkcs8 = (Encoding.PEM, PrivateFormat.PKCS8)
    written = {
        "encrypted": lambda: rsa.private_bytes(*pkcs8, BestAvailableEncryption(b"secret")),
        "public": lambda: rsa.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        "elliptic": lambda: generate_private_key(SECP256R1()).private_bytes(*pkcs8, NoEncryption()),
    }
    if content is not None:
        file.write_bytes(written[content]() if content in written else content)
    with pytest.raises(UsageError) as caught:
        audited(here, remote=str(there), remote_keys=[str(file)])
    assert str(caught.value) == f"--remote-key {file}: {reason}"


def test_a_key_without_a_location_and_without_the_extra(whole, tiered, monkeypatch):
    here, there, _ = tiered(whole, AivenPlugin(key=KEY))
    with pytest.raises(UsageError, match="--remote-key needs --remote"):
        audited(here, remote_keys=[str(KEY)])
    monkeypatch.setitem(sys.modules, "kaudit.source.decryption", None)
    with pytest.raises(UsageError, match=r"--remote-key .*key1.pem: decrypting needs an extra: .*\[decryption\]"):
        audited(here, remote=str(there), remote_keys=[str(KEY)])


def test_a_topic_that_was_made_anew_is_another_log(whole, tiered):
    here, there, _ = tiered(whole, AivenPlugin())
    (here / "orders-0" / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n")
    result = audited(here, remote=str(there))
    assert len(result.segments) == 1
    assert any("the topic was made anew" in entry.reason for entry in result.not_audited)


def test_of_two_topics_with_one_name_the_newer_is_read_where_no_id_is_here(whole, tiered):
    here, there, _ = tiered(whole, AivenPlugin())
    old = Segment.of(whole, 0, starts_of(whole)[1])
    old.topic_id = "AAAAAAAAAAAAAAAAAAAAAQ"
    for file in AivenPlugin().copy(old, there, "orders", 0).parent.iterdir():
        os.utime(file, (WRITTEN - 1000, WRITTEN - 1000))
    result = audited(here, remote=str(there))
    assert found(result) == found(audited(whole.parent))
    assert any("has topic id AAAAAAAAAAAAAAAAAAAAAQ too" in entry.reason for entry in result.not_audited)


def test_partitions_that_are_not_among_the_inputs_are_counted(whole, tiered):
    here, there, _ = tiered(whole, AivenPlugin())
    AivenPlugin().copy(Segment.of(whole, 0, starts_of(whole)[1]), there, "orders", 7)
    result = audited(here, remote=str(there))
    assert {(entry.topic, entry.partition) for entry in result.partitions} == {("orders", 0)}
    assert any(entry.reason.startswith("1 partitions there are not among the inputs") for entry in result.not_audited)


def test_a_path_whose_first_segments_are_elsewhere_holds_what_was_asked_for(whole, tiered):
    here, there, _ = tiered(whole, AivenPlugin())
    shutil.copytree(here / "orders-0", here / "bills-0")
    result = audited(here, remote=str(there), topics=["orders"], require_all=True)
    assert {entry.topic for entry in result.partitions} == {"orders"}


def test_a_location_without_segments(whole, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(UsageError, match="no copied segment was found"):
        audited(whole, remote=str(empty))
    with pytest.raises(UsageError, match="no such file or directory"):
        audited(whole, remote=str(tmp_path / "nowhere"))
    with pytest.raises(UsageError, match="gs://bucket/x: Google Cloud Storage is read by its S3 interface"):
        audited(whole, remote="gs://bucket/x")
    with pytest.raises(UsageError, match="abfs://bucket/x: Azure Blob Storage is not read"):
        audited(whole, remote="abfs://bucket/x")


def test_the_copies_given_as_a_log_are_named(whole, tiered):
    _, there, _ = tiered(whole, LocalTieredStorage())
    with pytest.raises(NothingToAuditError, match="give this location with --remote"):
        audited(there)


@pytest.mark.parametrize("plugin", ["chunks", "zstd"])
def test_in_s3(whole, tiered, s3_server, plugin):
    here, there, copies = tiered(whole, PLUGINS[plugin]())
    s3_server.upload(there, "tier")
    dated(here, int(4e9))  # of a store's objects the time is that of their upload
    dated(whole.parent, int(4e9))
    s3_server.requests.clear()
    assert found(audited(here, remote="s3://kafka/tier", depth=Depth.RECORDS)) == found(
        audited(whole.parent, depth=Depth.RECORDS)
    )
    assert {request.key for request in s3_server.requests if request.kind == "GET"} == {
        f"tier/{file.relative_to(there)}" for copy in copies for file in copy.parent.glob(f"{copy.stem}.*")
    }
    assert {request.kind for request in s3_server.requests} == {"GET", "HEAD", "LIST"}


def test_a_topic_that_was_compacted_before(tiered, tmp_path):
    """KAFKA-15388: its segments lack offsets, also their last ones; brokers go on in the next segment, and nothing is missing."""
    log = Log()
    for number in range(40):
        log.append(data(100, 0, 4 * number, 4, payload=b"%d" % number))
    # the active segment is never cleaned
    cleaned, active = log.batches[:24], log.batches[24:]
    log.batches[:] = [*(replace_kept(batch, 2) for batch in cleaned if batch.base_offset % 16), *active]
    directory = split(log.write(tmp_path / "whole" / "orders-0"))
    here, there, _ = tiered(directory, LocalTieredStorage())
    result = audited(here, remote=str(there))
    assert found(result) == found(audited(directory.parent))
    assert of_log(result) == []
    assert result.coverage[0].offsets.get("missing", 0) == 0


def replace_kept(batch, kept):
    """The batch as the log cleaner leaves it, with so many of its records."""
    return batch.__class__(**{**batch.__dict__, "kept": kept})
