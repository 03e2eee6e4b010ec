"""The page of a simulated run: its messages as steps, each with the state of clients, brokers and transactions after it."""

from collections.abc import Mapping, Sequence

from kaudit import __version__
from kaudit.broker.producer_state.append_result import Outcome
from kaudit.broker.releases.profile import Profile
from kaudit.broker.response import Answer
from kaudit.report.html.page_model import LeftOut
from kaudit.report.sequence.decisions import BatchHistory, Interned, decision, participants, reason_of, window
from kaudit.report.sequence.page_model import Lane, Role, SequencePage, State, Step, Tone, Window
from kaudit.simulate.simulation import Simulation
from kaudit.simulate.trace import Client, EventKind, Partition, RunState, TraceEvent, Transaction

_TONES: Mapping[EventKind, Tone] = {
    EventKind.REQUEST: "request",
    EventKind.LOST: "lost",
    EventKind.REPLICATION: "replication",
    EventKind.NOTE: "note",
    EventKind.FAULT: "fault",
}


MOST_STEPS = 4_000


def simulation_page(
    simulation: Simulation, facts: Mapping[str, str], command: str, most: int = MOST_STEPS
) -> SequencePage:
    """Return the page of a run that was played with a trace: its first `most` events.

    `command` is the command line that plays it.
    """
    scenario, trace = simulation.scenario, simulation.trace
    brokers = [broker.name for broker in simulation.cluster.brokers.values()]
    events = trace.events[:most]
    lanes = participants(events, simulation.applications, brokers)
    steps = _Steps(simulation.cluster.profile, lanes)
    shown = [steps.step(number, event) for number, event in enumerate(events, 1)]
    missing = trace.omitted + len(trace.events) - len(events)
    how = "--rows N shows more" if len(events) == len(trace.events) else "-o DIR writes all attempts, for kaudit replay"
    left_out = (LeftOut("messages", missing, how),) if missing else ()
    return SequencePage(
        scenario.title,
        " ".join(scenario.story.split()),
        command,
        f"kaudit {__version__}",
        tuple(facts.items()),
        simulation.cluster.profile.window,
        tuple(Lane(name, _role(name, simulation.applications, brokers)) for name in lanes),
        shown,
        steps.windows.items,
        steps.clients.items,
        steps.partitions.items,
        steps.transactions.items,
        left_out,
    )


def _role(name: str, clients: Mapping[str, object], brokers: Sequence[str]) -> Role:
    if name in clients:
        return "client"
    return "broker" if name in brokers else "other"


class _Steps:
    """Makes steps of events, and the lists that the steps refer to."""

    def __init__(self, profile: Profile, lanes: Sequence[str]) -> None:
        self._profile = profile
        self._lanes = {name: place for place, name in enumerate(lanes)}
        self._history = BatchHistory(profile)
        self.windows: Interned[Window] = Interned()
        self.clients: Interned[Client] = Interned()
        self.partitions: Interned[Partition] = Interned()
        self.transactions: Interned[Transaction] = Interned()

    def step(self, number: int, event: TraceEvent) -> Step:
        """Return the step of an event."""
        decisions = []
        for decided in event.answers:
            key = (decided.partition, event.producer_id)
            history = self._history.of(key, decided.answer, decided.copies)
            decisions.append(decision(decided, self._profile, self.windows, history))
        for known in event.state.producers:
            self._history.follow((known.partition, known.producer_id), known.entry, number)
        return Step(
            number,
            event.omitted,
            event.omitted,
            event.at,
            event.sent_at,
            self._lanes[event.source],
            self._lanes[event.target],
            event.kind.value,
            _tone(event),
            event.text,
            reason_of(event),
            event.partitions,
            None if event.producer_id < 0 else str(event.producer_id),
            decisions,
            self._state(event.state),
        )

    def _state(self, state: RunState) -> State:
        windows = [window(known.partition, known.producer_id, known.entry, self._profile) for known in state.producers]
        return State(
            list(map(self.clients.place, state.clients)),
            list(map(self.partitions.place, state.partitions)),
            list(map(self.windows.place, windows)),
            list(map(self.transactions.place, state.transactions)),
        )


def _tone(event: TraceEvent) -> Tone:
    if event.kind is not EventKind.RESPONSE:
        return _TONES[event.kind]
    if event.is_error:
        return "refused"
    if any(decided.copies and not _is_duplicate(decided.answer) for decided in event.answers):
        return "repeated"
    return "duplicate" if any(_is_duplicate(decided.answer) for decided in event.answers) else "ok"


def _is_duplicate(answer: Answer | None) -> bool:
    return answer is not None and answer.fields.get("outcome") == Outcome.DUPLICATE.value
