"""What a person asks about is found by its name, in any writing, and by whole words, best first."""

import re

import pytest

from kaudit.bugs.registry import BUGS
from kaudit.bugs.reports import reports
from kaudit.checks.registry import CHECKS
from kaudit.explanations.catalogue import Kind, entries, terms
from kaudit.explanations.lookup import look_up, nearest
from kaudit.explanations.mentions import MOST
from kaudit.explanations.see_also import see_also


def ids(asked: str) -> list[str]:
    return [entry.id for entry in look_up(asked).entries]


@pytest.mark.parametrize(
    ("asked", "first"),
    [
        ("ka104", "KA104"),
        ("Sequence-Gap", "KA104"),
        ("kafka#12671", "KAFKA-12671"),
        ("KAFKA-20785", "KAFKA-20785"),
        ("apache/kafka#23204", "KAFKA-20785"),
        ("https://github.com/apache/kafka/pull/23204", "KAFKA-20785"),
        ("https://issues.apache.org/jira/browse/KAFKA-20785", "KAFKA-20785"),
        ("apache/kafka#20534", "KAFKA-19690"),
        ("FLINK-39218", "FLINK-39218"),
        ("apache/iceberg#13995", "iceberg-17551"),
        ("librdkafka#3297", "librdkafka-3297"),
        ("debezium/dbz#2004", "dbz-2004"),
        ("45", "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        ("error code 45", "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        ("errorCode=45", "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        ("error code: -1", "UNKNOWN_SERVER_ERROR"),
        ("val=-192", "_MSG_TIMED_OUT"),
        ("OUT_OF_ORDER_SEQUENCE_NUMBER", "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        ("org.apache.kafka.common.errors.OutOfOrderSequenceException", "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        ("org.apache.kafka.common.errors.OutOfOrderSequenceException:", "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        ("invalidtxnstateexception", "INVALID_TXN_STATE"),
        ("NotLeaderForPartitionException", "NOT_LEADER_OR_FOLLOWER"),
        ("TimeoutException", "REQUEST_TIMED_OUT"),
        ("lso", "last stable offset"),
        ("last  stable offset", "last stable offset"),
        ("ISR", "in-sync replicas"),
        ("in sync replica", "in-sync replicas"),
        ("zombies", "zombie"),
        ("fence", "fenced"),
        ("PID expiry", "PID expiry"),
        ("high watermark", "high watermark"),
        ("producer snapshot", "producer snapshot"),
        ("idempotence window", "idempotence window"),
        ("timeline entry", "timeline entry"),
    ],
)
def test_a_name_in_any_writing(asked, first):
    found = look_up(asked)
    assert found.exact
    assert found.entries[0].id == first


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("sequence desynchronization", "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        ("ISR shrink", "isr_shrunk event"),
        ("shrinking ISR from", "isr_shrunk event"),
        ("invalid messages during compaction", "keyless_removed event"),
        ("beginning cleaning", "log_cleaning event"),
        ("truncating to offset", "truncated event"),
        ("cimpl.KafkaException", "exception of a client library"),
        ("KafkaJSNumberOfRetriesExceeded", "exception of a client library"),
    ],
)
def test_messages_are_found_by_their_words_and_classes_that_any_error_may_be_in_by_name(asked, found):
    assert found in ids(asked)


@pytest.mark.parametrize("kind", Kind)
def test_everything_is_found_by_each_of_its_names(kind):
    own = [entry for entry in entries() if entry.kind is kind]
    assert own
    checks = {check.name for check in CHECKS.values()}
    for entry in own:
        for name in {*entry.names, f"  {entry.id} "} - checks:
            found = look_up(name)
            word = name.strip().isalpha() and name.strip().islower() and kind is Kind.ERROR
            assert word or (found.exact and found.entries[0].id == entry.id), name


def test_a_ticket_is_no_pull_request_of_that_number():
    assert "apache/kafka#15230" in reports()["KAFKA-14616"].also
    assert ids("apache/kafka#15230")[0] == "KAFKA-14616"
    assert not look_up("KAFKA-15230").exact


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("ka6", [code for code in CHECKS if code.startswith("KA6")]),
        ("torn", ["KA308"]),
        ("transaction PARTITIONS torn", ["KA308"]),
        ("", []),
        ("  ", []),
        ("zebra", []),
        ("...", []),
    ],
)
def test_families_and_words(asked, found):
    assert ids(asked) == found
    assert not look_up(asked).exact


def test_words_are_whole_words():
    with_also = {code for code, check in CHECKS.items() if "also" in check.page().lower()}
    about_lso = {code for code, check in CHECKS.items() if re.search(r"\blso\b", check.page(), re.IGNORECASE)}
    assert with_also - about_lso
    assert not (with_also - about_lso) & {entry.id for entry in look_up("lso offsets").entries}
    assert ids("als") == []


def test_names_come_before_titles_and_texts_come_last():
    found = ids("duplicate")
    assert found[0] == "KA101"
    assert {"KA101", "KA102", "KA702", "DUPLICATE_SEQUENCE_NUMBER"} <= set(found)
    in_texts = ids("KIP-664")
    assert "KA301" in in_texts
    assert all("kip-664" not in CHECKS[code].summary for code in in_texts if code in CHECKS)


def test_what_mentions_a_name_is_related_to_it():
    found = [entry.id for entry in see_also("INVALID_TXN_STATE")]
    assert {"KAFKA-20785", "KAFKA-19690", "KA303"} <= set(found)
    assert len(found) <= MOST
    assert see_also("NONE") == []


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("InvalidTxnStat", "did you mean INVALID_TXN_STATE"),
        ("sequense-gap", "did you mean sequence-gap"),
        ("kafka-1267", "kafka-1267 is not a known bug; did you mean KAFKA-12671"),
        ("elastic/beats#123", "is not a known bug"),
        ("zzzzzzzz", "nothing is known about zzzzzzzz ("),
    ],
)
def test_what_is_unknown_is_answered_in_one_line(asked, said):
    assert not look_up(asked).entries
    assert said in nearest(asked)
    assert "\n" not in nearest(asked)


def test_terms_stand_once():
    names = [name.lower() for term in terms() for name in (term.name, *term.also)]
    assert len(set(names)) == len(names)
    assert all(term.meaning.strip() == term.meaning and not term.meaning.endswith(".") for term in terms())


def test_reports_are_no_known_bugs():
    assert not set(reports()) & set(BUGS)
    tickets = [name for report in reports().values() for name in (report.id, *report.also)]
    assert len(set(tickets)) == len(tickets)
    assert all(address.startswith("https://") for report in reports().values() for address in report.sources)
