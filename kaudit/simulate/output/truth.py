"""truth.json: everything that happened in a run, whether a log shows it or not."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from kaudit.broker.producer_state.producer_state_entry import DataBatch
from kaudit.broker.response import TopicPartition
from kaudit.simulate.output.record_outcomes import (
    Acknowledgement,
    BatchOutcome,
    DeliveryOutcome,
    batch_outcomes,
    leader_log,
)
from kaudit.simulate.output.visibility import DUPLICATES, FAILED, LOST, REORDERED, Trouble, troubles
from kaudit.simulate.simulation import Simulation

SCHEMA = "kaudit.simulate/1"
_dumps = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(", ", ": ")).encode


class Truth:
    """A finished run and the outcome of every record."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.outcomes = batch_outcomes(simulation)

    # -- counts ------------------------------------------------------------------------------------------------------
    def summary(self) -> dict[str, int]:
        """Count records by what happened to them; a record can count more than once."""
        counts: Counter[str] = Counter()
        copies: Counter[tuple[TopicPartition, str, int]] = Counter()
        for key, outcomes in self.outcomes.items():
            for outcome in outcomes:
                counts.update(_counts(outcome))
                if outcome.copies:
                    copies.update((key, outcome.batch.payload.application, number) for number in outcome.batch.numbers)
        counts["repeated_across_sessions"] = sum(times - 1 for times in copies.values() if times > 1)
        counts["open_transactions"] = sum(1 for _ in self.open_transactions())
        counts["hanging_transactions"] = sum(1 for _ in self.hanging_transactions())
        return {name: counts[name] for name in SUMMARY}

    def open_transactions(self) -> Iterator[tuple[TopicPartition, int, int]]:
        """Yield partition, producer id and first offset of every transaction without an end in the leader's log."""
        for key, partition in self.simulation.cluster.partitions.items():
            open_since: dict[int, int] = {}
            for batch in leader_log(partition).batches:
                state = batch.state
                if isinstance(state, DataBatch):
                    if state.is_transactional:
                        open_since.setdefault(state.producer_id, state.base_offset)
                elif state is not None:
                    open_since.pop(state.producer_id, None)
            for producer_id, offset in open_since.items():
                yield key, producer_id, offset

    def troubles(self) -> Iterator[Trouble]:
        """Yield what records were lost, duplicated or reordered, and where the leaders' logs show it."""
        for key, partition in self.simulation.cluster.partitions.items():
            yield from troubles(self.simulation, key, partition, self.outcomes[key])

    def hanging_transactions(self) -> Iterator[tuple[TopicPartition, int, int]]:
        """Yield those open transactions that the coordinator will never end: it has none of the producer id there."""
        under_way = set(self.simulation.cluster.transactions.under_way())
        for key, producer_id, offset in self.open_transactions():
            if (key, producer_id) not in under_way:
                yield key, producer_id, offset

    def hidden(self) -> list[dict[str, Any]]:
        """List what the leaders' logs cannot show, with the reason."""
        counts: Counter[tuple[str, str]] = Counter()
        for trouble in self.troubles():
            if trouble.offset is None:
                counts[trouble.what, trouble.kind] += trouble.records
        return [
            {"what": what, "records": records, "because": because}
            for (what, because), records in sorted(
                counts.items(), key=lambda entry: (_ORDER.index(entry[0][0]), entry[0])
            )
        ]

    # -- the document ------------------------------------------------------------------------------------------------
    def text(self) -> Iterator[str]:
        """Yield truth.json in pieces."""
        head = {
            "schema": SCHEMA,
            "scenario": self.simulation.scenario.name,
            "seed": self.simulation.seed,
            "summary": self.summary(),
            "attempts_end_because": self.simulation.recorder.ended_because,
            "log_cannot_show": self.hidden(),
            "partitions": list(self._partitions()),
            "transactions": self._transactions(),
            "open_transactions": [
                {"topic": topic, "partition": number, "producer_id": producer_id, "first_offset": offset}
                for (topic, number), producer_id, offset in self.open_transactions()
            ],
        }
        yield _dumps(head)[:-1] + ', "records": ['
        separator = "\n"
        for key, outcomes in self.outcomes.items():
            for outcome in outcomes:
                for record in _records(key, outcome):
                    yield separator + _dumps(record)
                    separator = ",\n"
        yield "\n]}\n"

    def _partitions(self) -> Iterator[dict[str, Any]]:
        base = self.simulation.clock.base
        for (topic, number), partition in self.simulation.cluster.partitions.items():
            yield {
                "topic": topic,
                "partition": number,
                "leader": partition.leader,
                "leader_epoch": partition.leader_epoch,
                "isr": partition.isr,
                "replicas": {
                    str(broker): {
                        "log_start_offset": log.log_start,
                        "log_end_offset": log.log_end,
                        "high_watermark": log.high_watermark,
                        "leader_epochs": [[entry.epoch, entry.start_offset] for entry in log.epochs],
                    }
                    for broker, log in partition.logs.items()
                },
                "elections": [
                    {
                        "at": base + election.at,
                        "leader_epoch": election.epoch,
                        "leader": election.leader,
                        "unclean": election.unclean,
                        "lost_from_offset": election.lost_from_offset,
                    }
                    for election in partition.elections
                ],
                "truncations": [
                    {"at": base + cut.at, "broker": cut.broker, "from": cut.log_end, "to": cut.offset}
                    for cut in partition.truncations
                ],
            }

    def _transactions(self) -> list[dict[str, Any]]:
        base = self.simulation.clock.base
        return [
            {
                "producer": name,
                "transactional_id": application.spec.config.transactional_id,
                "first_number": first,
                "last_number": last,
                "reported": end.value,
            }
            for name, application in self.simulation.applications.items()
            for first, last, end in application.transactions
        ] + [
            {
                "transactional_id": ended.transactional_id,
                "producer_id": ended.producer_id,
                "marker_epoch": ended.marker_epoch,
                "outcome": "committed" if ended.commit else "aborted",
                "by_timeout": ended.by_timeout,
                "at": base + ended.at,
            }
            for ended in self.simulation.cluster.transactions.ended
        ]


SUMMARY = (
    "sent",
    "acknowledged",
    "failed",
    "unanswered",
    "present",
    "absent",
    "deleted",
    "acknowledged_but_lost",
    "written_but_not_acknowledged",
    "duplicate_copies",
    "repeated_across_sessions",
    "out_of_order",
    "on_a_replica_only",
    "open_transactions",
    "hanging_transactions",
)
"""The counts of a run, in the order they are shown."""

_ORDER = (LOST, FAILED, DUPLICATES, REORDERED)

OUTCOMES = {
    "acknowledged-lost": "acknowledged_but_lost",
    "duplicate": "duplicate_copies",
    "reordered": "out_of_order",
    "hanging": "hanging_transactions",
}
"""The outcomes a search can look for, each with the count that says a run has it."""

_DELIVERY = {
    DeliveryOutcome.ONCE: "present",
    DeliveryOutcome.TWICE: "present",
    DeliveryOutcome.NOWHERE: "absent",
    DeliveryOutcome.DELETED: "deleted",
}


def _counts(outcome: BatchOutcome) -> Counter[str]:
    """Count the records of one batch by what happened to them."""
    count = outcome.batch.record_count
    counts = Counter({outcome.acknowledgement.value: count, _DELIVERY[outcome.delivery]: count, "sent": count})
    acknowledged = outcome.acknowledgement is Acknowledgement.ACKNOWLEDGED
    if acknowledged and outcome.delivery is DeliveryOutcome.NOWHERE:
        counts["acknowledged_but_lost"] = count
    if not acknowledged and outcome.copies:
        counts["written_but_not_acknowledged"] = count
    counts["duplicate_copies"] = count * max(len(outcome.copies) - 1, 0)
    counts["out_of_order"] = len(outcome.out_of_order)
    if outcome.elsewhere:
        counts["on_a_replica_only"] = count
    return counts


def _records(key: TopicPartition, outcome: BatchOutcome) -> Iterator[dict[str, Any]]:
    batch = outcome.batch
    shared = {
        "producer": batch.payload.producer,
        "application": batch.payload.application,
        "session": batch.payload.session,
        "topic": key[0],
        "partition": key[1],
        "outcome": outcome.acknowledgement.value,
        "error": None if batch.error is None else batch.error.name,
        "ended": outcome.delivery.value,
        "times_sent": batch.attempts + 1,
        "why": outcome.why,
    }
    for step, (number, timestamp) in enumerate(zip(batch.numbers, batch.timestamps, strict=True)):
        yield {
            **shared,
            "number": number,
            "sent_at": timestamp,
            "acknowledged_offset": batch.offset + step if batch.finished and batch.offset >= 0 else None,
            "offsets": [base + step for base in outcome.copies],
            "elsewhere": {str(broker): [base + step for base in bases] for broker, bases in outcome.elsewhere.items()},
            "out_of_order": number in outcome.out_of_order,
        }
