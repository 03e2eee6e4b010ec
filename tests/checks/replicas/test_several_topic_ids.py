"""KA606: a topic that was deleted and created again."""

import kaudit
from kaudit.checks.replicas.identities import several_topic_ids
from kaudit.model.impact import Impact
from tests.checks.findings import recorded_findings
from tests.checks.replicas.log_directories import log_directory
from tests.live_brokers.accidents.judged import recorded

OLD, NEW = "Xq1TzHq6Qn6m2t6m8f3cNA", "Zq1TzHq6Qn6m2t6m8f3cNA"


def test_several_topic_ids_are_found_among_the_partitions_of_a_broker(tmp_path):
    log_directory(tmp_path, "orders-0", topic=OLD)
    log_directory(tmp_path, "orders-1", topic=NEW)
    assert recorded_findings(several_topic_ids, str(tmp_path)) == [("warning", "orders", None, None)]


def test_several_topic_ids_are_not_found_where_topics_or_clusters_differ(tmp_path):
    log_directory(tmp_path / "b1", "orders-0", topic=OLD, cluster="A")
    log_directory(tmp_path / "b1", "users-0", topic=NEW, cluster="A")
    log_directory(tmp_path / "b2", "orders-0", topic=NEW, cluster="B")
    assert recorded_findings(several_topic_ids, str(tmp_path)) == []


def test_what_only_topics_before_may_have_held_is_at_most_lost(tmp_path):
    log_directory(tmp_path / "b1", topic=NEW, cluster="A", records=2)
    log_directory(tmp_path / "b2", topic=OLD, cluster="A", broker=2, records=9)
    (found,) = [each for each in kaudit.scan(tmp_path).findings if each.code == several_topic_ids.code]
    assert found.impact == Impact(records_lost_at_least=0, records_lost_at_most=9)


def test_what_a_directory_set_aside_shows_is_counted_once(tmp_path):
    moment = recorded("recreated-topic") / "replica-down"
    found = {finding.code: finding.impact for finding in kaudit.scan(moment).findings}
    assert (found["KA606"], found["KA613"]) == (Impact(), Impact(records_lost_at_least=0, records_lost_at_most=150))
