"""The page of a simulated run: what its steps say, by Kafka's rules and by what the scenarios do."""

import json
import re
from html import unescape
from itertools import pairwise

import pytest

from kaudit.report.sequence import html
from kaudit.report.sequence.page_model import SequencePage, Step, Window
from kaudit.report.sequence.simulated import simulation_page
from kaudit.simulate.scenario.reading import ORDER, parse_scenario, scenario_text, shipped
from kaudit.simulate.simulation import Simulation
from kaudit.simulate.trace import BrokerAnswer, EventKind, Trace, TraceEvent

WINDOW_OF_KAFKA = 5
"""ProducerStateEntry.NUM_BATCHES_TO_RETAIN."""


def played(name: str, limit: int = 400) -> SequencePage:
    scenario = shipped(name)
    return simulation_page(
        Simulation(scenario, scenario.seed, limit).run(), {"scenario": name}, f"kaudit simulate {name}"
    )


def sequences(window: Window) -> list[str]:
    return [slot.sequences for slot in window.slots]


def arrivals(page: SequencePage, text: str) -> list[Step]:
    return [
        step for step in page.steps if step.arrow == "request" and step.tone == "request" and step.text.endswith(text)
    ]


def test_the_sixth_batch_pushes_the_first_out_of_the_window_and_its_retry_is_refused():
    page = played("six-in-flight")
    first, retry = arrivals(page, "epoch 0 seq 0")
    (sixth,) = arrivals(page, "epoch 0 seq 5")
    (pushing,) = sixth.decisions
    assert pushing.before is not None
    assert pushing.after is not None
    assert sequences(page.windows[pushing.before]) == ["0", "1", "2", "3", "4"]
    assert sequences(page.windows[pushing.after]) == ["1", "2", "3", "4", "5"]

    (refused,) = retry.decisions
    assert refused.before == refused.after == pushing.after
    assert (refused.outcome, refused.error) == ("rejected", "OUT_OF_ORDER_SEQUENCE_NUMBER")
    assert (refused.expected, refused.got) == ("sequence 6", "sequence 0")
    assert refused.history == (
        f"Sequence 0 was written at offset 0 in step {first.number}, and forgotten in step {sixth.number}: "
        "a broker remembers the last 5 batches of a producer id."
    )
    answer = page.steps[retry.number]
    assert (answer.tone, answer.text) == ("refused", "OUT_OF_ORDER_SEQUENCE_NUMBER")
    assert answer.reason.startswith("expected sequence 6, got sequence 0: ")
    assert answer.reason.endswith("remembered: sequences 1 to 5")


def test_records_written_again_in_a_new_epoch_are_pointed_out():
    page = played("six-in-flight")
    again = [step for step in page.steps if step.tone == "repeated"]
    assert [step.text for step in again] == [
        f"ok, offset {number + 6} (the same records are at offset {number})" for number in range(6)
    ]
    assert {step.decisions[0].history.partition(". ")[2] for step in again} == {
        "They were sent under epoch 0 then: a broker compares batches of the current epoch only."
    }


def test_why_records_are_written_again_depends_on_what_the_client_sent():
    def reasons(name):
        steps = played(name, 400).steps
        return {step.decisions[0].history.partition(". ")[2] for step in steps if step.tone == "repeated"}

    assert reasons("retry-without-idempotence") == {"Without a producer id a broker compares nothing."}
    assert reasons("forgotten-duplicate") == {"The broker had forgotten them."}


def test_the_retry_of_a_remembered_batch_is_a_duplicate_of_its_offset():
    page = played("five-in-flight")
    duplicates = [step for step in page.steps if step.tone == "duplicate"]
    assert [step.text for step in duplicates] == [f"duplicate of offset {number}" for number in range(5)]
    for number, step in enumerate(duplicates):
        (decided,) = step.decisions
        assert decided.before is not None
        assert decided.matched is not None
        assert page.windows[decided.before].slots[decided.matched].offsets == str(number)
        assert decided.expected == ""


def test_what_was_in_flight_waits_again_when_the_connection_is_lost():
    page = played("six-in-flight")
    (lost,) = (step for step in page.steps if "6 in flight" in step.text)
    (client,) = (page.clients[place] for place in lost.state.clients)
    (held,) = client.partitions
    assert (held.sent, held.in_flight) == (0, ())
    assert [(batch.sequences, batch.attempts) for batch in held.queue[:6]] == [(str(number), 1) for number in range(6)]
    before = page.clients[page.steps[lost.number - 2].state.clients[0]].partitions[0]
    assert [batch.sequences for batch in before.in_flight] == [str(number) for number in range(6)]
    assert before.next_sequence == held.next_sequence == 6


def test_with_one_request_in_flight_the_partition_is_muted_while_it_is_under_way():
    page = played("one-in-flight")
    held = [page.clients[place].partitions for step in page.steps for place in step.state.clients]
    assert {(partition.muted, partition.sent) for partitions in held for partition in partitions} == {
        (True, 1),
        (False, 0),
    }


def test_acks_all_waits_for_the_isr_and_an_unclean_election_shrinks_the_log():
    page = played("unclean-election")
    states = [page.partitions[place] for step in page.steps for place in step.state.partitions]
    leaders = [
        (state.leader, tuple(replica.broker for replica in state.replicas if replica.in_sync)) for state in states
    ]
    assert [pair for place, pair in enumerate(leaders) if place == 0 or pair != leaders[place - 1]][:3] == [
        (1, (1, 2, 3)),
        (1, (1, 3)),
        (1, (1,)),
    ]
    ends = [int(replica.log_end) for state in states for replica in state.replicas if replica.broker == state.leader]
    assert any(later < earlier for earlier, later in pairwise(ends))


def test_a_refusal_after_an_unclean_election_names_the_batches_that_the_new_leader_lacks():
    page = played("unclean-election")
    refused = next(step for step in page.steps if any(decision.got == "sequence 15" for decision in step.decisions))
    (election,) = (step for step in page.steps if step.text.startswith("unclean: leads orders-0"))
    (decided,) = refused.decisions
    written = next(step for step in arrivals(page, "epoch 0 seq 14"))
    assert decided.expected == "sequence 7"
    assert decided.history == (
        f"Sequence 14, which comes before it, was written at offset 14 in step {written.number}, and forgotten in step "
        f"{election.number}: the broker has lost it, or another one leads."
    )


def test_faults_after_the_last_shown_message_say_how_many_are_between():
    scenario = shipped("unclean-election")
    page = simulation_page(Simulation(scenario, scenario.seed, 20).run(), {}, "kaudit simulate unclean-election")
    later = page.steps[20:]
    assert {step.tone for step in later} == {"fault"}
    (left_out,) = page.left_out
    everything = simulation_page(Simulation(scenario, scenario.seed, 400).run(), {}, "")
    assert left_out.count == len(everything.steps) - len(page.steps)
    assert later[0].left_out == next(place for place, step in enumerate(everything.steps) if step.tone == "fault") - 20


def test_a_page_that_would_be_too_large_shows_fewer_steps_and_says_so(monkeypatch):
    monkeypatch.setattr(html, "BUDGET", 100_000)
    scenario = shipped("retry-dup")
    simulation = Simulation(scenario, scenario.seed, 300).run()
    page = html.fitting_page(lambda most: simulation_page(simulation, {}, "", most), 300)
    assert len(page.encode()) <= 100_000
    shown = page[page.index("<tbody>") : page.index("</tbody>")].count("<tr ")
    assert 10 < shown < 300
    assert re.search(r"Left out: [\d,]+ messages", page)


def test_a_transaction_that_times_out_is_shown_from_open_to_aborted():
    page = played("transaction-timeout")
    states = [page.transactions[place].status for step in page.steps for place in step.state.transactions]
    assert list(dict.fromkeys(states)) == ["Empty", "Ongoing", "PrepareAbort", "CompleteAbort"]
    opened = [window for window in page.windows if window.transaction_from is not None]
    assert {window.transaction_from for window in opened} == {"0"}


def test_the_coordinator_gives_its_reason_where_the_request_arrives_and_with_the_response():
    page = played("transaction-timeout")
    refused = [
        step for step in page.steps if any(decision.error == "INVALID_PRODUCER_EPOCH" for decision in step.decisions)
    ]
    fenced = [step for step in page.steps if step.tone == "refused"][-1]
    assert fenced.reason
    assert refused == [] or fenced.decisions[0].rule == fenced.reason
    request = page.steps[fenced.number - 2]
    assert request.decisions == fenced.decisions


@pytest.mark.parametrize("name", ORDER)
def test_every_state_keeps_to_kafkas_bounds(name):
    page = played(name, 150)
    assert all(len(window.slots) <= WINDOW_OF_KAFKA == window.capacity for window in page.windows)
    for state in page.partitions:
        for replica in state.replicas:
            assert 0 <= int(replica.log_start) <= int(replica.log_end)
            assert int(replica.high_watermark) <= int(replica.log_end)
        if state.leader is not None:
            assert state.leader in {replica.broker for replica in state.replicas if replica.in_sync}
    for client in page.clients:
        assert sum(held.sent for held in client.partitions) <= client.max_in_flight * len(page.partitions or [0])
    for step in page.steps:
        for decision in step.decisions:
            if decision.outcome == "appended" and decision.after is not None:
                before, after = page.windows[decision.before or 0], page.windows[decision.after]
                assert f"sequence {after.slots[-1].sequences}" in decision.incoming.replace("sequences", "sequence")
                assert before.partition == after.partition == decision.partition
            if decision.outcome in ("duplicate", "rejected"):
                assert decision.before == decision.after
            assert bool(decision.expected) == bool(decision.got)


def test_a_message_that_is_lost_is_drawn_and_its_step_says_what_the_broker_holds():
    page = played("five-in-flight")
    lost = next(step for step in page.steps if step.tone == "lost")
    assert page.lanes[lost.source].role == "broker"
    assert sequences(page.windows[lost.state.windows[0]]) == ["0"]


HOSTILE = "</script><script>alert(1)</script><!--\u202e\x1b[31m&amp;'\""


def test_hostile_names_stay_text():
    text = scenario_text("six-in-flight").replace('"shop"', json.dumps(HOSTILE + "x" * 10_000))
    scenario = parse_scenario(text.replace('title = "', f'title = "{HOSTILE[:20]}'), "hostile")
    page = html.page(simulation_page(Simulation(scenario, 1).run(), {HOSTILE: HOSTILE}, HOSTILE))
    assert "<script>alert" not in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert len(re.findall("<script", page)) == 2
    assert len(page) < 5_000_000


def test_a_page_is_allowed_its_own_script_and_nothing_else():
    page = html.page(played("five-in-flight"))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy
    assert unescape(policy[1]).startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy[1]
    assert not re.search(r"""(src|href)=["']?(https?:|//)|@import|url\(""", page)


def test_without_scripts_the_page_is_a_table_with_the_same_reasons():
    model = played("six-in-flight")
    page = html.page(model)
    table = page[page.index("<tbody>") : page.index("</tbody>")]
    assert table.count("<tr ") == len(model.steps)
    assert "expected sequence 6, got sequence 0" in table
    assert "lost: ok, offset 0" in table


class TestTrace:
    def test_a_run_without_a_diagram_reads_no_state(self, monkeypatch):
        scenario = shipped("anything")
        simulation = Simulation(scenario, 3, 0)
        monkeypatch.setattr(simulation.trace, "observe", lambda: pytest.fail("read"))
        run, observers = simulation.clock.run, []

        def observed(until, after_each):
            observers.append(after_each)
            run(until)

        monkeypatch.setattr(simulation.clock, "run", observed)
        simulation.run()
        assert observers == [None]
        assert all(event.state.clients == () and event.answers == () for event in simulation.trace.events)

    def test_a_diagram_changes_nothing_about_the_run(self):
        scenario = shipped("anything")
        drawn, plain = (Simulation(scenario, 5, limit).run() for limit in (400, 0))
        assert drawn.recorder.attempts_text() == plain.recorder.attempts_text()
        assert drawn.recorder.answers_text() == plain.recorder.answers_text()

    def test_an_answer_belongs_to_the_request_that_has_just_arrived_and_to_no_other(self):
        trace, request = Trace(), object()
        event = TraceEvent(EventKind.REQUEST, 1, 2, "shop", "broker 1", "a")
        trace.add(event, request)
        trace.answered(object(), BrokerAnswer("orders-0", None, why="another's"))
        trace.answered(request, BrokerAnswer("orders-0", None, why="its own"))
        trace.settle()
        trace.answered(request, BrokerAnswer("orders-0", None, why="late"))
        assert [answer.why for answer in event.answers] == ["its own"]

    def test_the_limit_counts_messages_and_keeps_faults(self):
        trace = Trace(1)
        trace.note(1, "shop", "first")
        trace.note(2, "shop", "second")
        trace.fault(3, "broker 1", "killed")
        assert [event.text for event in trace.events] == ["first", "killed"]
        assert trace.omitted == 1
