"""Records of a topic that was deleted and created again."""

import pytest

from kaudit.checks.replicas.identities import recreated_topic
from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.model.severity import Severity
from kaudit.model.total_impact import total_impact
from kaudit.scanning.options import ScanOptions
from tests.checks.replicas.log_directories import log_directory

OLD, NEW = "oldaaaaaaaaaaaaaaaaaaa", "newaaaaaaaaaaaaaaaaaaa"
ASIDE = "orders-0.165517534ef64b60a9d2e342cbcffd1f-"


def findings(*places):
    return scan(ScanOptions([str(place) for place in places]), SilentProgress()).findings


@pytest.mark.parametrize("kind", ["delete", "stray"])
def test_what_is_set_aside_of_the_topic_before_is_counted(tmp_path, kind):
    b1 = log_directory(tmp_path / "b1", cluster="A", topic=NEW, records=2)
    log_directory(b1, ASIDE + kind, cluster="A", topic=OLD, records=7)
    found = findings(b1)
    (told,) = (finding for finding in found if finding.code == recreated_topic.code)
    assert (told.severity, told.topic, told.offset, told.last_offset) == (Severity.WARNING, "orders", 0, 6)
    assert (told.evidence.to_dict()["topic_id"], told.evidence.to_dict()["former_topic_id"]) == (NEW, OLD)
    assert told.next == [f"copy the directory before the broker removes it: {b1 / (ASIDE + kind)}"]
    total = total_impact(found)
    assert (total.records_lost_at_least, total.records_lost_at_most) == (0, 7)


def test_a_broker_that_was_down_may_hold_more(tmp_path):
    b1 = log_directory(tmp_path / "b1", cluster="A", topic=NEW, records=2)
    log_directory(b1, ASIDE + "delete", cluster="A", topic=OLD, records=5)
    b2 = log_directory(tmp_path / "b2", cluster="A", topic=OLD, records=9, broker=2)
    (told,) = (finding for finding in findings(b1, b2) if finding.code == recreated_topic.code)
    assert (told.last_offset, len(told.evidence.to_dict()["held_by"])) == (8, 2)


@pytest.mark.parametrize(
    ("topic", "aside", "cluster"), [(OLD, OLD, "A"), (NEW, OLD, "B"), (None, OLD, "A")], ids=["moved", "cluster", "no-id"]
)  # fmt: skip
def test_one_topic_is_not_recreated(tmp_path, topic, aside, cluster):
    b1 = log_directory(tmp_path / "b1", cluster="A", topic=topic)
    b2 = log_directory(tmp_path / "b2", "warm-0", cluster=cluster, topic="warmaaaaaaaaaaaaaaaaaa", broker=2)
    log_directory(b2, ASIDE + "delete", topic=aside)
    assert recreated_topic.code not in {finding.code for finding in findings(b1, b2)}
