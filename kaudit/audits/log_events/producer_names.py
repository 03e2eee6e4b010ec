"""Whose events of logs are: a line names a producer by its producer id, its transactional id or its client id; two of them join."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from types import MappingProxyType

from kaudit.model.application_logs import LogEvent, LogEventKind
from kaudit.model.batch_fields import NO_PRODUCER_ID

_Name = tuple[object, ...]
"""What a name is, the name, and for a client id the log it is in: other programs may use the same."""


class ProducerNames:
    """The producers of events: each a set of producer ids, transactional ids and client ids that lines name together.

    `known` are transactional ids by producer id, as __transaction_state has them.
    """

    def __init__(self, events: Iterable[LogEvent], known: Mapping[int, str] = MappingProxyType({})) -> None:
        self._leads: dict[_Name, _Name] = {}
        self._ids: dict[_Name, set[int]] = {}
        stated: Iterable[Sequence[_Name]] = (
            [("producer", producer_id), ("transactional id", name)] for producer_id, name in known.items()
        )
        for own in chain(stated, map(self._own, events)):
            for name in own:
                self._leads[self._lead(name)] = self._lead(own[0])
        for name in list(self._leads):
            if name[0] == "producer":
                self._ids.setdefault(self._lead(name), set()).add(name[1])  # type: ignore[arg-type]

    @staticmethod
    def _own(event: LogEvent) -> Sequence[_Name]:
        if event.event is LogEventKind.PRODUCER_ID_BLOCK:
            return []
        named = (
            ("transactional id", event.transactional_id),
            ("producer", None if event.producer_id == NO_PRODUCER_ID else event.producer_id),
            ("client", event.client_id, event.path),
        )
        return [name for name in named if name[1] is not None]

    def _lead(self, name: _Name) -> _Name:
        leads = self._leads
        leads.setdefault(name, name)
        while leads[name] != name:
            leads[name] = name = leads[leads[name]]
        return name

    def of(self, event: LogEvent) -> str:
        """Return a text that is the same for all events of a producer; where they name none, of a partition or a log."""
        own = self._own(event)
        if own:
            return " ".join(map(str, self._lead(own[0])))
        if event.topic is None:
            return event.path
        return event.topic if event.partition is None else f"{event.topic}-{event.partition}"

    def producer_id(self, event: LogEvent) -> int | None:
        """Return the producer id that an event names, or the only one that its producer has."""
        own = self._own(event)
        if event.producer_id is not None or not own:
            return event.producer_id
        ids = self._ids.get(self._lead(own[0]), set())
        return next(iter(ids)) if len(ids) == 1 else None
