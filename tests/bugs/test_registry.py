"""The catalogue: a bug is an entry of a module and a page of its ticket, and nothing else has to know it."""

import sys

import pytest

import kaudit.bugs
from kaudit.bugs.bug import HEADINGS, Program, parse_release
from kaudit.bugs.registry import BUGS, discover, find, nearest, of_version
from kaudit.bugs.tickets import looks_like_ticket
from kaudit.checks.registry import CHECKS
from kaudit.model.severity import Confidence
from tests.bugs.recorded_bugs import RECORDED
from tests.bugs.simulated_bugs import SIMULATED

RAIN = '''
"""Rain."""

from kaudit.bugs.bug import Affected, Bug, Program, Trait, codes
from kaudit.model.severity import Confidence

BUG = Bug(
    id="Rain-1", title="It rains", summary="it rains", program=Program.KAFKAJS, affected=(Affected("1.0", None),), fixed_in=(),
    codes=codes("KA101"), traits=(Trait("it rains", bool),), confidence=Confidence.CERTAIN, sources=(),
)
'''


def test_a_module_and_a_page_are_all_it_takes(tmp_path, monkeypatch):
    room = tmp_path / "weather"
    room.mkdir()
    (room / "__init__.py").touch()
    (room / "rain.py").write_text(RAIN)
    (room / "rain_1.md").write_text("# Rain\n\n## What happens\nIt rains.\n\n## How to recognise it\nIt is wet.\n")
    monkeypatch.setattr(kaudit.bugs, "__path__", [*kaudit.bugs.__path__, str(tmp_path)])
    try:
        bug = next(bug for bug in discover() if bug.id == "Rain-1")
        recognised = "KA101 with these traits:\n\n- it rains\n\nIt is wet."
        assert bug.documentation() == {"What happens": "It rains.", "How to recognise it": recognised}
    finally:
        for name in [name for name in sys.modules if name.startswith("kaudit.bugs.weather")]:
            del sys.modules[name]


def test_every_entry_has_a_log_that_shows_it():
    in_tests_of_their_own = {"KAFKA-6361", "KAFKA-7415", "KAFKA-15591", "Redpanda-3039", "librdkafka-3575"}
    assert set(RECORDED) | set(SIMULATED) | in_tests_of_their_own == set(BUGS)
    assert len(BUGS) >= 30


@pytest.mark.parametrize("bug", BUGS.values(), ids=BUGS)
def test_an_entry_is_whole(bug):
    documentation = bug.documentation()
    assert list(documentation) == list(HEADINGS)
    assert all(documentation.values())
    assert bug.codes <= set(CHECKS)
    assert any(not trait.optional for trait in bug.traits)
    assert all(source.startswith("https://") for source in bug.sources)
    assert {*bug.alike, *bug.rather_than} <= set(BUGS)
    for versions in bug.affected:
        first = parse_release(versions.first)
        assert bug.has_version(first)
        assert versions.last is None or first[:2] <= parse_release(versions.last)[:2]
    assert not any(bug.has_version(parse_release(fixed)) for fixed in bug.fixed_in)


def test_how_sure_a_trace_is_of_its_bug():
    """Certain where nothing else leaves it; possible where a log does not show which client wrote, or what its broker knew."""
    certain = {"KAFKA-6683", "KAFKA-7467", "KAFKA-15552"}
    likely = {
        *(
            "KAFKA-5431",
            "KAFKA-5747",
            "KAFKA-6361",
            "KAFKA-7190",
            "KAFKA-7415",
            "KAFKA-7866",
            "KAFKA-8351",
            "KAFKA-9144",
        ),
        *("KAFKA-10778", "KAFKA-12671", "KAFKA-13727", "KAFKA-14402", "KAFKA-15591", "KAFKA-20785"),
    }
    assert {bug.id for bug in BUGS.values() if bug.confidence is Confidence.CERTAIN} == certain
    assert {bug.id for bug in BUGS.values() if bug.confidence is Confidence.LIKELY} == likely
    assert {bug.program for bug in BUGS.values() if bug.id in certain | likely} == {Program.BROKER}


@pytest.mark.parametrize("bug", BUGS.values(), ids=BUGS)
def test_what_is_named_instead_also_names_this(bug):
    of_clients = ("KAFKA-14034", "KAFKA-14397", "librdkafka-4953")
    assert all(bug.id in BUGS[other].alike for other in bug.alike if other not in of_clients)


@pytest.mark.parametrize(
    ("typed", "ticket"),
    [
        ("kafka-12671", "KAFKA-12671"),
        ("KAFKA 12671", "KAFKA-12671"),
        ("librdkafka#4953", "librdkafka-4953"),
        ("apache/kafka#23204", "KAFKA-20785"),
        ("confluentinc/librdkafka#4953", "librdkafka-4953"),
        ("redpanda-data/redpanda#3039", "Redpanda-3039"),
    ],
)
def test_a_ticket_is_found_however_it_is_written(typed, ticket):
    assert looks_like_ticket(typed)
    assert find(typed) is BUGS[ticket]


def test_a_wrong_ticket_gets_its_neighbours():
    assert find("KAFKA-1267") is None
    assert "KAFKA-12671" in nearest("KAFKA-1267")


def test_bugs_of_a_version():
    assert "KAFKA-12671" in {bug.id for bug in of_version((2, 8, 1), Program.BROKER)}
    assert "KAFKA-7190" not in {bug.id for bug in of_version((2, 8, 1), Program.BROKER)}
    assert {bug.program for bug in of_version(None, Program.LIBRDKAFKA)} == {Program.LIBRDKAFKA}
    assert list(of_version(None, None)) == list(BUGS.values())
