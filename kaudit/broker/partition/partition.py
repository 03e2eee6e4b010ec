"""One partition as its leader sees it, with the replicas that may lead next."""

from kaudit.broker.partition.replica import Replica
from kaudit.broker.releases.profile import Profile

_FIRST_LEADER = -1
"""The leader of a log while no attempt has named one."""


class Partition(Replica):
    """The leader's replica of one (topic, partition). Times are ms; offsets 0..2^63-1.

    Other replicas share its history. Those that followed from the beginning are made when they lead: `_followers` are the
    ones that restarted, led or truncated their log, and hold what they held then.
    """

    def __init__(self, profile: Profile, expiration_ms: int, sweep_ms: int) -> None:
        super().__init__(profile, expiration_ms, sweep_ms)
        self.leader: int | None = None
        self._followers: dict[int, Replica] = {}
        self._restarted_follower: Replica | None = None
        self._cut: tuple[int, int, int] | None = None
        """(replica, log end, log start) of the leader whose tail was lost last."""

    def _follower(self) -> Replica:
        """Return a replica that has not fetched anything yet; its log start is 0.

        It learns the leader's when it leads. Before that it reads all that its log holds, also what the leader deleted:
        4.1.0 has recorded so of an old leader that came back and truncated (tests/conformance, failover, l17).
        """
        return Replica(self._profile, self._expiration_ms, self._sweep_ms, self._history)

    def restart_follower(self, now: int, replica: int | None = None, log_end: int | None = None) -> None:
        """Restart a replica that follows: it keeps the newest batches up to its log's end and follows from there on.

        `replica` None is the one that will lead next; `log_end` None: it had everything.
        """
        restarted = self._follower()
        end = self.log_end if log_end is None else min(log_end, self.log_end)
        restarted.loaded_at(end, now, above=self.log_start)
        if replica is None:
            self._restarted_follower = restarted
        else:
            self._followers[replica] = restarted

    def change_leader(
        self,
        now: int,
        new_leader: int | None,
        lost_from_offset: int | None,
        *,
        old_restarts: bool,
        old_log_start: int,
    ) -> None:
        """Let another replica lead; `lost_from_offset`: it lacks what lies from there on.

        `old_restarts`: the old leader went down and comes back as a follower. The new leader knows what it replicated,
        five batches a producer, or since its restart. Where the tail was lost, replicas that had it truncate and read
        their log again, from the newest snapshot that is left.
        `old_log_start`: the log start that the old leader comes back with, if it learns no other.
        """
        written, stopped_at = self.producers, self.log_end
        leaving = self._leaving(now, restarts=old_restarts)
        old = _FIRST_LEADER if self.leader is None else self.leader
        new = _FIRST_LEADER if new_leader is None else new_leader
        leading = self._restarted_follower or self._followers.pop(new, None) or self._follower()
        self._restarted_follower = None
        if self._cut is not None and self._cut[:2] == (new, self.log_end) and self._profile.cut_replica_keeps_log_start:
            self.log_start = self._cut[2]
        if lost_from_offset is not None and lost_from_offset < self.log_end:
            self._cut = (old, lost_from_offset, old_log_start)
            self._truncate(lost_from_offset)
            for follower in (leaving, *self._followers.values()):
                follower.truncate_to(self.log_end, now)
        if old != new:
            self._followers[old] = leaving
        leading.catch_up(self)
        self.producers, self.snapshots = leading.producers, leading.snapshots
        self._keep_transaction_index(written, stopped_at, self.log_end)
        self.leader = new_leader
        self.verifications = {}

    def _leaving(self, now: int, *, restarts: bool) -> Replica:
        """Return the old leader as a follower: with what it remembers, or what its snapshot restores."""
        leaving = self._follower()
        leaving.log_end = self.log_end
        leaving.snapshots = self.snapshots | {self.log_end}
        if restarts:
            leaving.producers = self.producers.reloaded(self.log_start, now, self._expiration_ms)
        else:
            leaving.producers.states = dict(self.producers.states)
            leaving.producers.ongoing = dict(self.producers.ongoing)
        return leaving
