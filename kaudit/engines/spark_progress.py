"""How far Spark is, from its own status: polled beside the job."""

import threading
from types import TracebackType
from typing import TYPE_CHECKING, Self

from kaudit.engines.progress import Progress

if TYPE_CHECKING:
    from pyspark import SparkContext

_POLL_SECONDS = 0.25


class JobProgress:
    """Reports how many bytes the reading stage of a job group has read, while the body runs.

    `tasks` is the number of the reading stage's tasks; each counts alike, as each reads about the same.
    """

    def __init__(self, context: "SparkContext", group: str, tasks: int, total_bytes: int, progress: Progress) -> None:
        self._tracker = context.statusTracker()
        self._group = group
        self._tasks = tasks
        self._total = total_bytes
        self._progress = progress
        self._reported = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="kaudit-progress", daemon=True)

    def __enter__(self) -> Self:
        self._progress.start(self._total)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()
        if kind is None:
            self._report(self._total)

    def _poll(self) -> None:
        while not self._done.wait(_POLL_SECONDS):
            self._report(self._total * self._finished() // max(self._tasks, 1))

    def _finished(self) -> int:
        finished = 0
        for job in self._tracker.getJobIdsForGroup(self._group):
            info = self._tracker.getJobInfo(job)
            for stage in info.stageIds if info is not None else ():
                status = self._tracker.getStageInfo(stage)
                if status is not None and status.numTasks == self._tasks:
                    finished = max(finished, int(status.numCompletedTasks))
        return finished

    def _report(self, read: int) -> None:
        if read > self._reported:
            self._progress.advance(read - self._reported)
            self._reported = read
