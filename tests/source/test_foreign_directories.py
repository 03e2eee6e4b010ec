"""Directories of other programs are named, with the way that works, and are neither audited nor called damaged."""

import pytest

from kaudit.cli.app import run
from tests.engines.faulty_logs import healthy

REDPANDA = "a log of Redpanda, which stores batches in a format of its own: audit kafka://HOST:PORT/orders instead"
AUTOMQ = "objects of AutoMQ, which hold pieces of many partitions: audit kafka://HOST:PORT/TOPIC instead"
WARPSTREAM = "objects of WarpStream, whose agents keep no logs: audit kafka://HOST:PORT/TOPIC instead"


def made(root, *names):
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(bytes(range(100)))
    return root


CASES = [
    ("kafka/orders/3_24", REDPANDA, ["kafka/orders/3_24/0-1-v1.log", "kafka/orders/3_24/0-1-v1.base_index"]),
    ("002fef90/kafka/orders/0_24", REDPANDA, ["002fef90/kafka/orders/0_24/194-257-1055502-1-v1.log.1"]),
    ("4d2a0000/_kafka_cluster", AUTOMQ, ["4d2a0000/_kafka_cluster/41684"]),
    ("warpstream", WARPSTREAM, ["warpstream/vci_0a1b/00/file"]),
]


@pytest.mark.parametrize(("directory", "text", "files"), CASES)
def test_one_line_and_the_exit_code_of_nothing_to_audit(tmp_path, capsys, directory, text, files):
    made(tmp_path, *files)
    assert run(["scan", str(tmp_path)]) == 3
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"kaudit: nothing to audit under {tmp_path}: {tmp_path}/{directory}: {text}\n")


@pytest.mark.parametrize(("directory", "text", "files"), CASES)
def test_beside_a_log_they_are_not_read(tmp_path, capsys, directory, text, files):
    healthy(made(tmp_path, *files) / "orders-0")
    assert run(["scan", str(tmp_path)]) == 0
    assert f"{text}; not read" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("name", ["00000001/x/1", "4d2a0000/x/41685", "12345678/x/y", "kafka/orders/3/0-1-v1.log"])
def test_other_names_are_theirs_not(tmp_path, capsys, name):
    healthy(made(tmp_path, name) / "orders-0")
    assert run(["scan", str(tmp_path)]) == 0
    assert "AutoMQ" not in (out := capsys.readouterr().out)
    assert "Redpanda" not in out
