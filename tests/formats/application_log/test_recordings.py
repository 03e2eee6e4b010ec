"""What real brokers and clients wrote: the events of logs that were recorded while it was known what happened.

tests/data/client-logs: each client, idempotent, sent three records to a topic of its own; then five records were appended
under its producer id, so that its fourth was out of sequence. Then a second producer of one transactional id fenced the
first, and the broker did not answer for a while. The layouts are those of the frameworks named.
"""

import lzma
import tarfile
from pathlib import Path

import pytest

from kaudit.audits.log_events.incidents import logged_incidents
from kaudit.formats.application_log.patterns import read_patterns
from kaudit.formats.application_log.pieces import LogCounts
from kaudit.formats.application_log.reader import read_events
from kaudit.model.application_logs import Client, LogEvent
from kaudit.model.logged_incidents import Consequence, Outcome
from tests.client_logs.cases import CASES, Case

DATA = Path(__file__).parents[2] / "data"
SERVER_LOGS = sorted((DATA / "server-logs").glob("*/*.server-logs.tar.xz"))


def client_log(name: str) -> tuple[list[LogEvent], LogCounts]:
    counts = LogCounts()
    data = lzma.decompress((DATA / "client-logs" / f"{name}.log.xz").read_bytes())
    return list(read_events([data], "client", path=name, counts=counts)), counts


PRODUCER_IDS: dict[str, tuple[Client, int]] = {
    "java-2.4-reload4j": ("java", 6),
    "java-3.9-jul": ("java", 10),
    "java-3.9-log4j2-json": ("java", 4),
    "java-3.9-logback-ecs": ("java", 3),
    "java-3.9-logback-spring": ("java", 8),
    "java-3.9-slf4j-simple": ("java", 9),
    "librdkafka-2.16": ("librdkafka", 1),
    "kafkajs-2.2": ("kafkajs", 2),
    "franz-go-1.22": ("franz-go", 6),
    "sarama-1.60": ("sarama", 7),
}


@pytest.mark.parametrize("name", PRODUCER_IDS)
def test_the_producer_id_that_the_client_was_given(name: str) -> None:
    client, producer_id = PRODUCER_IDS[name]
    events, counts = client_log(name)
    assert {event.client for event in events} == {client}
    assigned = [event for event in events if event.event == "producer_id_assigned" and event.producer_id is not None]
    assert (assigned[0].producer_id, assigned[0].producer_epoch) == (producer_id, 0)
    assert counts.unknown_lines <= 4  # what the runtime wrote in between


@pytest.mark.parametrize("name", sorted(set(PRODUCER_IDS) - {"sarama-1.60"}))
def test_the_refused_sequence(name: str) -> None:
    """Sarama logs no refusal of a batch."""
    events, _ = client_log(name)
    refused = [event for event in events if event.event == "out_of_order_sequence"]
    assert refused
    assert {event.error for event in refused} == {"OUT_OF_ORDER_SEQUENCE_NUMBER"}
    assert {event.producer_id for event in refused} <= {PRODUCER_IDS[name][1], None}
    assert {event.base_sequence for event in refused} <= {3, None}


@pytest.mark.parametrize("name", sorted(set(PRODUCER_IDS) - {"sarama-1.60", "kafkajs-2.2"}))
def test_the_fenced_producer(name: str) -> None:
    events, _ = client_log(name)
    assert {"INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"} & {event.error for event in events}


@pytest.mark.parametrize("release", ["3.9.1", "4.1.1"])
def test_a_streams_thread_that_was_fenced_and_began_anew(release: str) -> None:
    """A process of Streams (exactly_once_v2) stood still for longer than its transaction's timeout, and then went on."""
    events, _ = client_log(f"streams-{release}")
    assert {event.client for event in events} == {"java"}
    told = [(event.event, event.producer_epoch) for event in events if event.producer_epoch is not None or event.error]
    fenced = [place for place, (kind, _) in enumerate(told) if kind == "fenced_producer"]
    assert len(fenced) == 1
    assigned = [(place, epoch) for place, (kind, epoch) in enumerate(told) if kind == "producer_id_assigned"]
    (first, begun), (second, anew) = assigned
    assert first < fenced[0] < second
    assert begun is not None
    assert anew is not None
    assert begun < anew
    # what was in its transaction is processed again: the log shows that nobody has to do anything
    (incident,) = logged_incidents(events, {})
    assert (incident.consequence, incident.outcome) == (Consequence.FENCED, Outcome.SUPERSEDED)
    (incident,) = logged_incidents(
        events[: events.index(next(each for each in events if each.event == "fenced_producer")) + 1], {}
    )
    assert incident.outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("case", [case for case in CASES if not case.transactional], ids=lambda case: case.name)
def test_a_task_of_connect_says_what_its_producer_was_answered(case: Case) -> None:
    """And that it gave up, where its producer did: it is killed, and sends the records again when somebody starts it."""
    text = lzma.decompress((DATA / "client-logs/connect-4.1.1.log.xz").read_bytes()).decode()
    (section,) = [part for part in text.split("=== ") if part.startswith(f"{case.name}\n")]
    counts = LogCounts()
    events = list(read_events([section.partition("\n")[2].encode()], "client", path=case.name, counts=counts))
    assert (counts.unknown_lines, counts.unknown_facts) == (0, 0)
    assert {event.client for event in events} == {"java"}
    assert case.error in {event.error for event in events} | {
        "DUPLICATE_SEQUENCE_NUMBER"  # a success to the client: it logs nothing
    }
    killed = [event.event for event in events if event.pattern == "connect-task-killed"]
    assert killed == ["fatal_error"] * section.count("Unrecoverable exception from producer send callback")


HARMLESS = {"duplicate-sequence-number", "not-leader-or-follower"}
"""The client goes on without an error of its own; a job that is done closes its producer without waiting."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_flink_says_what_its_producer_was_answered(case: Case) -> None:
    """Once: its writer, its producer and its task log the same exception, and the task's failure quotes it again."""
    text = lzma.decompress((DATA / "client-logs/flink-2.2.1-4.2.0.log.xz").read_bytes()).decode()
    (section,) = [part for part in text.split("=== ") if part.startswith(f"{case.name}\n")]
    counts = LogCounts()
    events = list(read_events([section.partition("\n")[2].encode()], "client", path=case.name, counts=counts))
    assert counts.unknown_facts == 0
    assert "null" not in {event.transactional_id for event in events}
    accepted = {case.error, "DUPLICATE_SEQUENCE_NUMBER"}  # the latter is a success to the client: it logs nothing
    assert accepted & ({event.error for event in events} | {"DUPLICATE_SEQUENCE_NUMBER"})
    assert case.error in {event.error for event in events} or case.name == "duplicate-sequence-number"
    incidents = [one for one in logged_incidents(events, {}) if one.outcome in {Outcome.UNKNOWN, Outcome.NEVER_LANDED}]
    assert len({one.subject for one in incidents}) <= (0 if case.name in HARMLESS else 1), incidents


def test_one_release_says_the_same_in_every_layout() -> None:
    """The patterns and values of the events of the five layouts, but for those that the level of java.util.logging hides."""
    said = {}
    for name in PRODUCER_IDS:
        if name.startswith("java-3.9"):
            events, _ = client_log(name)
            said[name] = {(event.event, event.pattern, event.client_id, event.error, event.level) for event in events}
    jul = said.pop("java-3.9-jul")
    whole = said.pop("java-3.9-logback-ecs")
    assert len(whole) > 20
    assert all(len(whole ^ other) <= 6 for other in said.values())  # each ran by itself: one more retry, one less
    assert jul <= whole | set().union(*said.values())


@pytest.mark.parametrize("path", SERVER_LOGS, ids=lambda path: f"{path.parent.name} {path.name.partition('.')[0]}")
def test_brokers_write_what_their_release_writes(path: Path) -> None:
    """Every event's pattern is one of the release's, every line is of an entry, and every failed append says why."""
    patterns = {pattern.id: pattern for pattern in read_patterns("server")}
    release = _minor(path.parent.name)
    counts = LogCounts()
    found = 0
    with tarfile.open(path) as archive:
        for member in archive:
            if not member.isfile() or ".log" not in member.name:
                continue
            log = archive.extractfile(member)
            assert log is not None
            for event in read_events([log.read()], "server", path=member.name, counts=counts):
                found += 1
                pattern = patterns[event.pattern]
                assert pattern.since is None or _minor(pattern.since) <= release, event
                assert pattern.until is None or _minor(pattern.until) >= release, event
                assert event.timestamp_ms is not None
                assert event.level
    assert counts.unknown_lines == 0
    assert found == counts.events > 50


def _minor(line: str) -> tuple[int, ...]:
    return tuple(int(part) for part in line.split(".")[:2])
