"""The state of one broker: its partitions with their clocks, its configuration, its transaction coordinator.

Leader epochs of the coordinator's partition, from the restarts in the attempts.

A coordinator's epoch is its partition's leader epoch. With one broker it grows with restarts, by how much depends on the
release (Switches.kraft). Attempts say for each partition between which of its own attempts the broker restarted, so the
same restart appears once per partition; restarts whose time ranges overlap are one.
"""

from collections import defaultdict
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kaudit.broker.config import BrokerConfig, TopicLimits, runs_kraft, topic_config
from kaudit.broker.coordinator.requests import EndOfTransaction
from kaudit.broker.coordinator.transaction_coordinator import TransactionCoordinator
from kaudit.broker.coordinator.verification import TransactionVerifier
from kaudit.broker.partition.partition import Partition
from kaudit.broker.partition.replica import Tampering
from kaudit.broker.producer_state.append_result import Outcome
from kaudit.broker.producer_state.producer_state_entry import MarkerBatch
from kaudit.broker.releases.profile import Profile
from kaudit.broker.response import TopicPartition

if TYPE_CHECKING:
    from kaudit.broker.recorded_log import RecordedLog
from msgspec import Struct

RAISED_BY_RESTART = 2
"""One step when the leader goes, one when it is back."""

_BEGINNING = -1


class _Restart(Struct):
    """A restart some time after `after` and before `before` (ms)."""

    after: int
    before: int
    clean: bool


class CoordinatorEpochs:
    """Coordinator epochs by time."""

    def __init__(self, profile: Profile) -> None:
        leaves_isr = 1 if profile.isr_shrink_raises_leader_epochs else 0
        self._raised_by_clean = RAISED_BY_RESTART + leaves_isr if profile.kraft else 0
        self._raised_by_unclean = RAISED_BY_RESTART if profile.unclean_restart_raises_leader_epochs else 0
        self._known: list[_Restart] = []
        self.unfinished: dict[tuple[str, int], list[tuple[int, bool]]] = {}
        """Restarts after which no attempt on their partition has followed yet."""

    def restarted(self, partition: tuple[str, int], at: int | None, *, clean: bool) -> None:
        """Record a restart after `at`; it is over when the partition's next attempt arrives."""
        self.unfinished.setdefault(partition, []).append((_BEGINNING if at is None else at, clean))

    def answered(self, partition: tuple[str, int], at: int) -> None:
        """Record that the broker answered an attempt on `partition` at `at`.

        An attempt with the same time as the restart is ignored: a restart takes longer.
        """
        if partition not in self.unfinished or at <= self.unfinished[partition][-1][0]:
            return
        earlier = list(self._known)
        for after, clean in self.unfinished.pop(partition):
            for restart in earlier:
                if restart.clean == clean and restart.after < at and after < restart.before:
                    restart.after, restart.before = max(restart.after, after), min(restart.before, at)
                    earlier.remove(restart)
                    break
            else:
                self._known.append(_Restart(after, at, clean))

    def restarted_at(self, now: int) -> int | None:
        """Return when the last restart before `now` began, None where there was none: the broker is soon up again."""
        over = [restart for restart in self._known if restart.before <= now]
        return max((rs.before if rs.after == _BEGINNING else rs.after for rs in over), default=None)

    def at(self, now: int, restarted: tuple[str, int] | None = None) -> int:
        """Return the coordinator epoch at `now`, after the unfinished restart of `restarted` if given."""
        passed = [restart.clean for restart in self._known if restart.before <= now]
        if restarted is not None:
            passed += [clean for _, clean in self.unfinished.get(restarted, ())]
        return sum(self._raised_by_clean if clean else self._raised_by_unclean for clean in passed)


class BrokerState:
    """A broker that has started: empty, or with one partition's recorded log. Raises ValueError for a bad number in `config`."""

    def __init__(self, profile: Profile, config: dict[str, str], recorded: "RecordedLog | None") -> None:
        self.profile = profile = replace(profile, kraft=runs_kraft(config, profile))
        self._configured = config
        self._config = BrokerConfig.of(config, profile)
        default_limits = TopicLimits.of(topic_config({}, config), profile, replicas=1)
        self.limits: dict[str, TopicLimits] = defaultdict(lambda: default_limits)
        """By topic."""
        self.partitions: dict[TopicPartition, Partition] = {}
        self.clocks: dict[TopicPartition, int] = {}
        """The time of each partition's last attempt, ms."""
        self._first_seen: int | None = None
        self._next_producer_id = 0
        self.epochs = CoordinatorEpochs(profile)
        self.coordinator = TransactionCoordinator(profile, self._config, self._write_markers, self._allocate)
        self._timeouts = self.coordinator.timeouts
        self._waiting: dict[tuple[int, int], EndOfTransaction] = {}
        """Markers that too few replicas in sync could take, by producer id and epoch: the coordinator retries them."""
        self.verifier = TransactionVerifier(profile, self.coordinator, verifies=self._config.verifies)
        if recorded is not None:
            self._take_over(recorded)

    def _take_over(self, recorded: "RecordedLog") -> None:
        partition = self._create(recorded.key)
        partition.take_over(recorded.batches, recorded.log_start, recorded.log_end)
        self.clocks[recorded.key] = self._first_seen = recorded.now
        if recorded.restarts:
            partition.restart(recorded.now, [], Tampering(), clean=True)
        else:
            partition.forget_idle(recorded.now)

    def _create(self, key: TopicPartition) -> Partition:
        config = self._config
        partition = Partition(self.profile, config.producer_id_expiration_ms, config.producer_id_check_ms)
        self.partitions[key] = partition
        return partition

    def configure_topic(
        self, topic: str, config: dict[str, str], replicas: int = 1, in_sync: int | None = None
    ) -> None:
        """Set a topic's configuration and replicas, and write the markers that waited for enough of these.

        `in_sync` None: all of them are in sync. Raises ValueError for a value that is not a number.
        """
        self.limits[topic] = TopicLimits.of(topic_config(config, self._configured), self.profile, replicas, in_sync)
        waiting, self._waiting = self._waiting, {}
        for ended in waiting.values():
            if self._write_markers(ended):
                self.coordinator.complete(ended)

    def empty_topic(self, topic: str) -> None:
        """Let every partition of a topic begin anew, as after its deletion; transactions still name them."""
        self.partitions = {key: partition for key, partition in self.partitions.items() if key[0] != topic}

    def arrive(self, key: TopicPartition, at: int | None) -> tuple[Partition, int]:
        """Return the partition an attempt is for and the clock, after doing what is due by then.

        Where the attempt has no time, it is that of the partition's attempt before, or of the very first attempt.
        """
        partition = self.partitions.get(key) or self._create(key)
        if at is None:
            now = self.clocks.get(key, self._first_seen or 0)
        else:
            now = at
            if self.epochs.unfinished:
                self.epochs.answered(key, at)
            self.clocks[key] = at
            self.saw(at)
        partition.pass_time(now)
        if now > self._timeouts.get(key, now):
            self.abort_timed_out(key, now)
        return partition, now

    def saw(self, at: int | None) -> None:
        """Take note of a time: the first one is taken for that of the broker's start."""
        if self._first_seen is None:
            self._first_seen = at

    def _last_run(self, now: int, first_after: int, interval: int) -> int | None:
        """Return when a task of the broker ran last: `first_after` its start, then at `interval`; None if never."""
        restarted_at = self.epochs.restarted_at(now)
        started_at = self._first_seen if restarted_at is None else restarted_at
        if started_at is None or now < started_at + first_after:
            return None
        return now - (now - started_at - first_after) % interval

    def abort_timed_out(self, key: TopicPartition, now: int) -> None:
        """Abort the transactions with this partition that timed out before the coordinator last looked."""
        interval = self._config.transaction_check_ms
        self.coordinator.abort_timed_out(key, now, self._last_run(now, interval, interval))

    def log_start_checkpointed_at(self, now: int) -> int | None:
        """Return when the broker last wrote log starts to their checkpoint before `now`, None if never (ms)."""
        return self._last_run(now, self._config.first_checkpoint_ms, self._config.log_start_checkpoint_ms)

    def _allocate(self, granted: int | None) -> int:
        producer_id = self._next_producer_id if granted is None else granted
        self._next_producer_id = max(self._next_producer_id, producer_id + 1)
        return producer_id

    def _write_markers(self, ended: EndOfTransaction) -> bool:
        """Write a transaction's markers; return whether every partition accepted its own."""
        coordinator_epoch = self.epochs.at(ended.at, ended.restarted)
        accepted = True
        waiting = tuple(key for key in ended.partitions if self.limits[key[0]].lacks_replicas is not None)
        for key in ended.partitions:
            # A topic of an older format has no markers (TransactionMarkerRequestCompletionHandler).
            if key in waiting or self.limits[key[0]].older_format:
                continue
            partition = self.partitions.get(key) or self._create(key)
            result = partition.append_marker(
                MarkerBatch(
                    ended.producer_id,
                    ended.marker_epoch,
                    coordinator_epoch,
                    partition.log_end,
                    ended.at,
                    ended.commit,
                    ended.transaction_version,
                )
            )
            accepted = accepted and result.outcome is Outcome.APPENDED
        if waiting and accepted:
            self._waiting[ended.producer_id, ended.marker_epoch] = replace(ended, partitions=waiting)
        return accepted and not waiting
