"""A small language for stories about one partition: who sends what, and what is remembered."""

from kaudit.broker.partition.partition import Partition
from kaudit.broker.partition.replica import Tampering
from kaudit.broker.producer_state.append_result import Origin
from kaudit.broker.producer_state.producer_append_info import validate_append
from kaudit.broker.producer_state.producer_state_entry import DataBatch, MarkerBatch
from kaudit.broker.releases.profile import profile_for
from kaudit.model.sequence import add as add_sequence

DAY_MS = 24 * 3600 * 1000
UNTOUCHED = Tampering()


class Story:
    """One partition of a broker of `version`; producer 1 unless said otherwise, time in ms from 0."""

    def __init__(self, version="3.9.1", expiration_ms=DAY_MS, sweep_ms=600_000):
        self.profile = profile_for(version)
        self.partition = Partition(self.profile, expiration_ms, sweep_ms)
        self.now = 0

    def batch(self, epoch, sequence, count, producer, transactional, at, offset):
        if offset is not None:
            self.partition.log_end = offset
        start = self.partition.log_end
        return DataBatch(
            producer, epoch, sequence, add_sequence(sequence, count - 1), start, start + count - 1,
            self.now if at is None else at, transactional,
        )  # fmt: skip

    def sends(self, sequence, epoch=0, count=1, producer=1, transactional=False, at=None, offset=None):
        """A client's batch: ('appended', offset), ('duplicate', offset) or the error's code."""
        batch = self.batch(epoch, sequence, count, producer, transactional, at, offset)
        _, result = self.partition.append(batch)
        return int(result.error) or (result.outcome.value, result.base_offset)

    def replicates(self, sequence, epoch=0, count=1, producer=1, transactional=False, at=None, offset=None):
        """A batch a follower, or a loading broker, takes over."""
        batch = self.batch(epoch, sequence, count, producer, transactional, at, offset)
        self.partition.producers.replicate([batch])
        self.partition.log_end = batch.last_offset + 1

    def coordinator_writes(self, sequence, epoch=0, producer=1, transactional=False):
        """A batch of a group coordinator: its error's code, 0 when it is fine."""
        state = self.partition.state_of(producer)
        batch = self.batch(epoch, sequence, 1, producer, transactional, None, None)
        after, result = validate_append(state, batch, self.profile, Origin.COORDINATOR)
        self.partition.producers.put(producer, after)
        return int(result.error)

    def marks(self, commit=True, epoch=0, coordinator_epoch=0, producer=1, offset=None, transaction_version=0):
        """A marker: its error's code, 0 when it was written."""
        if offset is not None:
            self.partition.log_end = offset
        return int(
            self.partition.append_marker(
                MarkerBatch(
                    producer, epoch, coordinator_epoch, self.partition.log_end, self.now, commit, transaction_version
                )
            ).error
        )

    def passes(self, milliseconds):
        self.partition.pass_time(self.now)
        self.now += milliseconds
        self.partition.pass_time(self.now)

    def restarts(self, clean=True, **tampering):
        self.partition.restart(self.now, [], Tampering(**tampering), clean=clean)

    def remembers(self, producer=1):
        return self.partition.state_of(producer)

    def knows(self, producer=1):
        return producer in self.partition.producers.states

    def remembered(self, producer=1):
        """(first, last sequence) of the remembered batches, oldest first."""
        return [
            (batch.first_sequence(self.profile), batch.last_sequence)
            for batch in self.remembers(producer).batches
        ]  # fmt: skip

    @property
    def stable(self):
        return self.partition.last_stable_offset

    @property
    def aborted(self):
        return [(row.producer_id, row.first_offset, row.last_offset) for row in self.partition.producers.aborted]
