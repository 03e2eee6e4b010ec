"""The names of replicas, and directories that have nothing to compare: each message whole."""

import pytest

from kaudit.engines.progress import SilentProgress
from kaudit.engines.replicas import diff, name_replicas
from kaudit.errors import NothingToAuditError, UsageError
from kaudit.scanning.options import ScanOptions
from tests.diff.replicas import TOPIC, history


@pytest.mark.parametrize(("paths", "names", "expected"), [
    (["/data/b1", "/data/b2"], {}, ["b1", "b2"]),
    (["/b1/data", "/b2/data"], {}, ["b1/data", "b2/data"]),
    (["/b1/x/data", "/b2/x/data", "/b3/x/other"], {}, ["b1/x/data", "b2/x/data", "b3/x/other"]),
    (["/b1/data", "/b2/data"], {"/b2/data": "second"}, ["data", "second"]),
    (["/data", "/b2/data"], {}, ["data", "b2/data"]),  # as short as the path is
    (["/b1", "/b2"], {"/b1": "one", "/b2": "two"}, ["one", "two"]),
    ([], {}, []),
])  # fmt: skip
def test_a_replica_is_called_by_the_shortest_end_of_its_path_that_no_other_has(paths, names, expected):
    found = name_replicas(paths, names)
    assert [(replica.name, replica.path) for replica in found] == list(zip(expected, paths, strict=True))


@pytest.mark.parametrize(("paths", "names", "says"), [
    (["/b1", "/b1"], {}, "a replica is given twice: compare different directories"),
    (["/b1", "/b2"], {"/b1": "b2"}, "two replicas have the same name: give each its own with --name NAME=PATH"),
])  # fmt: skip
def test_two_replicas_need_two_names(paths, names, says):
    with pytest.raises(UsageError, match=f"^{says}$"):
        name_replicas(paths, names)


def compared(*paths):
    options = ScanOptions([str(path) for path in paths])
    return diff(options, name_replicas(options.paths, {}), SilentProgress())


def test_without_a_partition_in_common_it_is_said_what_each_has(tmp_path):
    one, two = (history((0, 2)).write(tmp_path / name) for name in ("b1", "b2"))
    (two / f"{TOPIC}-0").rename(two / f"{TOPIC}-1")
    with pytest.raises(NothingToAuditError) as raised:
        compared(one, two)
    assert str(raised.value) == (
        f"nothing to compare: no two of these have a partition in common: {one} has {TOPIC}-0; {two} has {TOPIC}-1; "
        f"'kaudit diff --by records {one} {two}' compares a source's topics with their copies, record by record"
    )
    history((0, 2)).write(tmp_path / "more")
    (tmp_path / "more" / f"{TOPIC}-0").rename(two / f"{TOPIC}-2")
    with pytest.raises(NothingToAuditError, match=f"{two} has {TOPIC}-1 and 1 more; 'kaudit diff"):
        compared(one, two)


def test_without_a_segment_there_is_nothing_to_compare(tmp_path):
    paths = [tmp_path / "b1", tmp_path / "b2"]
    for path in paths:
        (path / f"{TOPIC}-0").mkdir(parents=True)
    with pytest.raises(NothingToAuditError) as raised:
        compared(*paths)
    assert str(raised.value) == f"nothing to compare under {paths[0]}, {paths[1]}: no segment was found"
