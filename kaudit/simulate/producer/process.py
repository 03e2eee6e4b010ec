"""The client's process: running, stopped for a while, or gone."""

from collections.abc import Callable


class ClientProcess:
    """Runs actions of the client: at once, after a pause, or never."""

    def __init__(self) -> None:
        self.is_running = True
        self._is_dead = False
        self._deferred: list[Callable[[], None]] = []

    def run(self, action: Callable[[], None]) -> None:
        """Run an action: at once, after the pause if the process is paused, never if it is dead."""
        if self.is_running:
            action()
        elif not self._is_dead:
            self._deferred.append(action)

    def pause(self) -> None:
        """Stop it, as a long garbage collection or SIGSTOP does."""
        self.is_running = False

    def resume(self) -> None:
        """Resume, first with what arrived meanwhile."""
        if self._is_dead:
            return
        self.is_running = True
        waiting, self._deferred = self._deferred, []
        for action in waiting:
            self.run(action)

    def kill(self) -> None:
        """End the process."""
        self.is_running = False
        self._is_dead = True
        self._deferred.clear()
