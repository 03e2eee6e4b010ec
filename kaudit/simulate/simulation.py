"""One run: a scenario and a seed determine a cluster, its clients and everything that happens to them."""

import random
from collections.abc import Callable
from functools import partial

from kaudit.broker.releases.profile import profile_for
from kaudit.simulate.application import Application
from kaudit.simulate.clock import Clock
from kaudit.simulate.cluster.cluster import Cluster
from kaudit.simulate.cluster.partition import ReplicatedPartition
from kaudit.simulate.cluster.run_context import AttemptRecorder, RunContext
from kaudit.simulate.network import Network
from kaudit.simulate.observe import Observer
from kaudit.simulate.random_faults import ScenarioFaults, draw_faults
from kaudit.simulate.scenario.model import (
    BrokerEnd,
    BrokerFault,
    DeleteRecords,
    DisconnectBrokers,
    JumpBrokerClock,
    JumpProducerClock,
    KillBroker,
    KillProducer,
    LoseAllocation,
    MoveLeader,
    PauseBroker,
    PauseProducer,
    Scenario,
    SlowDisk,
    StartBroker,
    StopBroker,
    TimedFault,
    UseProducerIds,
)
from kaudit.simulate.trace import DEFAULT_LIMIT, Trace


class Simulation:
    """A run of `scenario` under `seed`: the same two give the same run, everywhere."""

    def __init__(self, scenario: Scenario, seed: int, trace_limit: int = DEFAULT_LIMIT) -> None:
        self.scenario = scenario
        self.seed = seed
        self.clock = Clock(scenario.starts_at)
        self.trace = Trace(trace_limit)
        self.recorder = AttemptRecorder(self.clock)
        self.faults = (*scenario.faults, *draw_faults(scenario, self._random("faults")))
        faults = ScenarioFaults(self.faults, scenario.random_faults, self._random("losses"))
        network = Network(self.clock, scenario.network.delay_ms, self._random("delays"), faults, self.trace)
        self.cluster = Cluster(
            scenario.cluster,
            scenario.topics,
            profile_for(scenario.cluster.version),
            RunContext(self.clock, network, self.recorder, self.trace),
            transactional=scenario.is_transactional,
        )
        self.applications: dict[str, Application] = {}
        topics = {topic.name: topic for topic in scenario.topics}
        for spec in scenario.producers:
            source = self._random(f"producer/{spec.name}")
            self.applications[spec.name] = Application(spec, topics[spec.topic], self.cluster, network, source)

    def _random(self, what: str) -> random.Random:
        """Return a separate random source, so that draws for one thing do not shift those for another."""
        return random.Random(f"{self.seed}/{what}")  # noqa: S311 - a model, not a secret

    def run(self) -> "Simulation":
        """Run the scenario to its end and return self."""
        for fault in self.faults:
            if isinstance(fault, TimedFault):
                self.clock.at(fault.at_ms, partial(self._apply, fault))
        for application in self.applications.values():
            application.start()
        if self.trace.limit:
            self.trace.observe = Observer(self.applications, self.cluster, self.clock.base).read
        self.clock.run(self.scenario.duration_ms, self.trace.settle if self.trace.limit else None)
        for application in self.applications.values():
            application.finish()
        self.cluster.describe()
        if self.scenario.stop_at_end:
            self.cluster.shut_down()
        return self

    # -- faults ------------------------------------------------------------------------------------------------------
    def _apply(self, fault: TimedFault) -> None:
        match fault:
            case KillProducer():
                self.applications[fault.producer].kill(fault.restart_after_ms, fault.resend)
            case PauseProducer():
                self.applications[fault.producer].pause(fault.for_ms)
            case DeleteRecords():
                self.cluster.delete_records(self._partition(fault.partition), fault.before_offset)
            case JumpProducerClock():
                self._for_a_while(self.applications[fault.producer].jump_clock, fault.by_ms, fault.for_ms)
            case MoveLeader():
                self.cluster.move_leader(self._partition(fault.partition), fault.broker)
            case DisconnectBrokers():
                self.cluster.disconnect(fault.brokers, fault.for_ms)
            case BrokerFault():
                number = fault.broker if fault.leader_of is None else self._partition(fault.leader_of).leader
                if number is not None:
                    self._apply_to_broker(fault, number)

    def _for_a_while(self, jump: Callable[[int], None], by_ms: int, for_ms: int | None) -> None:
        """Set a clock, and back again after a while unless that is None."""
        jump(by_ms)
        if for_ms is not None:
            self.clock.after(for_ms, partial(jump, -by_ms))

    def _partition(self, name: str) -> ReplicatedPartition:
        return next(partition for partition in self.cluster.partitions.values() if partition.name == name)

    def _apply_to_broker(self, fault: BrokerFault, number: int) -> None:
        cluster = self.cluster
        match fault:
            case KillBroker():
                cluster.kill(number)
            case StopBroker():
                cluster.stop(number)
            case PauseBroker():
                cluster.pause(number, fault.for_ms)
            case StartBroker():
                cluster.start(number, without_snapshots=fault.without_snapshots)
            case SlowDisk():
                cluster.slow_disk(number, fault.delay_ms, fault.for_ms)
            case JumpBrokerClock():
                self._for_a_while(partial(cluster.jump_clock, number), fault.by_ms, fault.for_ms)
            case UseProducerIds():
                cluster.use_producer_ids(number, fault.count)
            case LoseAllocation():
                cluster.brokers[number].producer_ids.lose_response()
        if isinstance(fault, BrokerEnd) and fault.restart_after_ms is not None:
            start = partial(cluster.start, number, without_snapshots=fault.without_snapshots)
            self.clock.after(fault.restart_after_ms, start)
