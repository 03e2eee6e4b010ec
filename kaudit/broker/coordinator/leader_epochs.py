"""Leader epochs of the coordinator's partition, from the restarts in the attempts.

A coordinator's epoch is its partition's leader epoch. With one broker it grows with restarts, by how much depends on the
release (Switches.kraft). Attempts say for each partition between which of its own attempts the broker restarted, so the
same restart appears once per partition; restarts whose time ranges overlap are one.
"""

from msgspec import Struct

from kaudit.broker.releases.profile import Profile

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
