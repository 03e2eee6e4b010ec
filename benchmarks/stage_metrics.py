"""Spark's own metrics of the stages that it ran, from the REST interface of its UI."""

import datetime as dt
import json
import re
import urllib.request
from typing import Any

from msgspec import Struct


class StageMetrics(Struct, frozen=True):
    """One stage: the job's description, its tasks, seconds from its first task to its end, bytes.

    `shuffled`: shuffle write; `results`: of each task, what it sent the driver, as Spark serialised it.
    """

    description: str
    tasks: int
    seconds: float
    shuffled: int
    results: list[int]


class Stages:
    """The stages of a context that ran since this was made, or since they were taken last."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._known: set[tuple[int, int]] = set()
        self.take()

    def take(self) -> list[StageMetrics]:
        """Return the stages that ran since the last time, in the order they were submitted."""
        # the UI learns of a stage after the job's end: its listener is asynchronous
        self._context._jsc.sc().listenerBus().waitUntilEmpty()  # noqa: SLF001 - no public way
        found = []
        for stage in sorted(self._get("stages"), key=lambda stage: stage["stageId"]):
            key = stage["stageId"], stage["attemptId"]
            if stage["status"] == "COMPLETE" and key not in self._known:
                self._known.add(key)
                tasks = self._get(f"stages/{key[0]}/{key[1]}/taskList?length=1000000")
                found.append(_of(stage, tasks))
        return found

    def _get(self, path: str) -> list[dict[str, Any]]:
        url = re.sub(r"//[^:/]+", "//127.0.0.1", self._context.uiWebUrl)
        address = f"{url}/api/v1/applications/{self._context.applicationId}/{path}"
        with urllib.request.urlopen(address, timeout=600) as answer:
            found: list[dict[str, Any]] = json.load(answer)
        return found


def _of(stage: dict[str, Any], tasks: list[dict[str, Any]]) -> StageMetrics:
    began, ended = (_time(stage[name]) for name in ("firstTaskLaunchedTime", "completionTime"))
    results = [task["taskMetrics"]["resultSize"] for task in tasks if "taskMetrics" in task]
    shuffled = stage["shuffleWriteBytes"]
    return StageMetrics(stage.get("description", stage["name"]), len(tasks), ended - began, shuffled, results)


def _time(text: str) -> float:
    return dt.datetime.strptime(text.replace("GMT", "+0000"), "%Y-%m-%dT%H:%M:%S.%f%z").timestamp()
