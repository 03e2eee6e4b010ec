"""The page of a replay: what recorded brokers answered, attempt by attempt, and what is left out of long files."""

import json

import pytest

from kaudit.broker.broker import Broker
from kaudit.replay.session import Session
from kaudit.report.sequence import html
from kaudit.report.sequence.page_model import SequencePage, Step
from kaudit.report.sequence.replayed import ReplayDiagram
from tests.conformance.agreement import recordings
from tests.conformance.comparison import differences

RECORDED = {(recorded.version, recorded.name): recorded for recorded in recordings()}
BROKER = {"op": "broker", "broker_version": "3.9.1", "config": {}}


def page_of(attempts, most=10_000) -> SequencePage:
    session = Session((json.dumps(attempt).encode() for attempt in attempts), Broker())
    diagram = ReplayDiagram(session.broker, most)
    for attempt, answer in session.answered():
        diagram.add(attempt, answer)
    return diagram.page("Replay", "kaudit replay attempts.jsonl")


def produce(sequence, *, topic="orders", producer_id=7, **fields):
    batch = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence, "record_count": 1}
    return {"op": "produce", "topic": topic, "partition": 0, **batch, **fields}


def offsets_remembered(page: SequencePage, step: Step) -> list[str]:
    (decided,) = step.decisions
    assert decided.before is not None
    return [slot.offsets for slot in page.windows[decided.before].slots]


@pytest.mark.parametrize(("version", "name"), [("1.1.1", "main"), ("3.9.1", "failover"), ("4.2.0", "main")])
def test_every_attempt_has_the_outcome_that_the_real_broker_gave(version, name):
    recorded = RECORDED[version, name]
    answers = {answer["index"]: answer for answer in recorded.lines("answers")}
    attempts = {attempt["index"]: attempt for attempt in recorded.attempts()}
    page = page_of(attempts.values())
    assert [step.number for step in page.steps] == list(answers)
    checked = 0
    for step in page.steps:
        answer = answers[step.number]
        given = {field: value for field, value in answer.items() if field in ("outcome", "error")}
        if given and step.decisions:
            checked += 1
            (decided,) = step.decisions
            shown = {"outcome": decided.outcome, "error": decided.error or "NONE"}
            assert list(differences(attempts[step.number], shown, given, {})) == []
            assert (step.tone == "refused") == (decided.outcome in ("rejected", "connection-closed"))
        if answer.get("outcome") == "duplicate" and step.tone == "duplicate":
            place = step.decisions[0].matched
            assert step.text.endswith(f"duplicate of offset {answer['base_offset']}")
            # a batch that wraps gets an offset that brokers before 2.1.1 compute wrongly
            assert place is None or offsets_remembered(page, step)[place].split(" ")[0] == str(answer["base_offset"])
    assert checked > 500


def test_a_restart_leaves_one_batch_in_the_window_and_the_page_shows_it():
    restart = {"op": "restart", "topic": "orders", "partition": 0, "clean": True}
    page = page_of([BROKER, *(produce(sequence) for sequence in range(5)), restart, produce(3)])
    restarted, retried = page.steps[-2:]
    (after,) = (page.windows[place] for place in restarted.state.windows)
    assert [slot.sequences for slot in after.slots] == ["4"]
    assert (restarted.tone, retried.tone) == ("fault", "refused")
    assert retried.decisions[0].history == (
        "Sequence 3 was written at offset 3 in attempt 4, and forgotten in attempt 6: "
        "the broker has lost it, or another one leads."
    )
    assert retried.reason.startswith("expected sequence 5, got sequence 3")


def test_of_a_long_file_the_beginning_and_what_is_around_refusals_is_kept():
    wrong = {400, 800, 801}
    sequences = {"orders": 0, "bills": 0}
    attempts = [BROKER]
    for number in range(1, 1_200):
        topic = "orders" if number % 2 == 0 else "bills"
        attempts.append(produce(sequences[topic] + (9 if number in wrong else 0), topic=topic))
        sequences[topic] += number not in wrong
    page = page_of(attempts, 100)
    shown = [step.number for step in page.steps]
    assert shown[:20] == list(range(20))
    # six of the same partition before a refusal, two after it
    assert [number for number in shown if 350 < number < 450] == [*range(388, 401, 2), 402, 404]
    assert wrong < set(shown)
    assert {step.number for step in page.steps if step.tone == "refused"} == wrong
    gap = next(step for step in page.steps if step.number == 388)
    assert (gap.left_out, gap.left_out_here) == (388 - 19 - 1, (388 - 18) // 2 - 1)
    (left_out,) = page.left_out
    assert left_out.count == len(attempts) - len(page.steps)
    assert ("attempts", "1,200") in page.facts
    assert ("OUT_OF_ORDER_SEQUENCE_NUMBER", "3") in page.facts


def test_problems_beyond_the_limit_are_counted():
    page = page_of([BROKER, *(produce(9) for _ in range(500))], 60)
    (left_out,) = page.left_out
    shown = sum(step.tone == "duplicate" for step in page.steps)
    assert shown < 60
    assert left_out.what == f"attempts, {499 - shown} of them refusals, duplicates or faults"


def test_what_is_kept_does_not_grow_with_the_file():
    kept = []
    for length in (2_000, 8_000):
        diagram = ReplayDiagram(Broker(), 50)
        session = Session((json.dumps(one).encode() for one in [BROKER, *_many(length)]), diagram._broker)
        for attempt, answer in session.answered():
            diagram.add(attempt, answer)
        kept.append(len(diagram._first) + len(diagram._around) + sum(map(len, diagram._last.values())))
    assert kept[0] == kept[1]


def _many(length):
    return (produce(number // 40, topic=f"t{number % 40}", producer_id=number % 40) for number in range(length))


def test_clients_are_named_by_transactional_id_or_producer_id_and_share_a_lane_beyond_forty():
    transactional = {"op": "init_producer_id", "topic": "orders", "partition": 0, "transactional_id": "writer"}
    page = page_of([BROKER, transactional, *(produce(0, producer_id=100 + number) for number in range(60))])
    names = [lane.name for lane in page.lanes]
    assert names[:2] == ["writer", "producer id 100"]
    assert names[-2:] == ["other producers", "broker 3.9.1"]
    assert len(names) == 42


def test_the_transaction_is_shown_as_the_coordinator_holds_it():
    about = {"topic": "orders", "partition": 0, "transactional_id": "writer"}
    attempts = [
        BROKER,
        {"op": "init_producer_id", **about, "at": 1_000},
        {"op": "add_partitions", **about, "producer_id": 0, "producer_epoch": 0, "at": 1_010},
        produce(0, producer_id=0, is_transactional=True, transactional_id="writer", at=1_020),
        {"op": "end_txn", **about, "producer_id": 0, "producer_epoch": 0, "commit": True, "at": 1_030},
    ]
    page = page_of(attempts)
    held = [page.transactions[step.state.transactions[0]] for step in page.steps[1:]]
    assert [(one.status, one.partitions) for one in held] == [
        ("Empty", ()),
        ("Ongoing", ("orders-0",)),
        ("Ongoing", ("orders-0",)),
        ("CompleteCommit", ()),
    ]
    assert {one.started_at for one in held[1:3]} == {10}
    opened = page.windows[page.steps[3].state.windows[0]]
    assert opened.transaction_from == "0"


def test_hostile_names_stay_text():
    hostile = "</script><script>alert(1)</script>\u202e\x1b[31m" + "x" * 10_000
    page = page_of([BROKER, produce(0, topic=hostile, transactional_id=hostile), produce(5, topic=hostile)])
    text = html.page(page)
    assert "<script>alert" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_no_attempts_are_a_page_too():
    assert "Messages in order" in html.page(page_of([]))
