"""The client's process: running, stopped for a while, or gone."""

from collections.abc import Callable


class Process:
    """Runs what is to happen in a process: at once, after a pause, or never."""

    def __init__(self) -> None:
        self.is_running = True
        self._is_dead = False
        self._deferred: list[Callable[[], None]] = []

    def do(self, action: Callable[[], None]) -> None:
        """Let something happen in the process: what comes in a pause happens after it."""
        if self.is_running:
            action()
        elif not self._is_dead:
            self._deferred.append(action)

    def pause(self) -> None:
        """Stop it, as a long garbage collection or SIGSTOP does."""
        self.is_running = False

    def resume(self) -> None:
        """Go on, first with what came meanwhile."""
        if self._is_dead:
            return
        self.is_running = True
        waiting, self._deferred = self._deferred, []
        for action in waiting:
            self.do(action)

    def die(self) -> None:
        """End it."""
        self.is_running = False
        self._is_dead = True
        self._deferred.clear()
