"""One entry of a timeline as text: runs, markers, missing offsets."""

from collections.abc import Mapping

from kaudit.model.application_logs import LogEventKind
from kaudit.model.batch_fields import NO_TIMESTAMP
from kaudit.model.json_record import rfc3339
from kaudit.model.sequence import distance
from kaudit.report.console import visible
from kaudit.report.text.formatting import duration, plural, span

Entry = Mapping[str, object]
_REFUSALS = frozenset(
    {
        LogEventKind.OUT_OF_ORDER_SEQUENCE,
        LogEventKind.INVALID_PRODUCER_EPOCH,
        LogEventKind.FENCED_PRODUCER,
        LogEventKind.UNKNOWN_PRODUCER_ID,
        LogEventKind.INVALID_TXN_STATE,
        LogEventKind.TRANSACTION_COORDINATOR_FENCED,
        LogEventKind.RECORD_REJECTED,
    }
)


def offsets(entry: Entry) -> str:
    """Return the entry's offset or offsets."""
    if "first_offset" in entry:
        return span(entry["first_offset"], entry.get("last_offset"))
    return span(entry.get("offset"), None)


def event(entry: Entry) -> str:
    """Return the kind of event: data, txn data, COMMIT, missing, ..."""
    if entry["kind"] == "run":
        return "txn data" if entry.get("is_transactional") else "data"
    if entry["kind"] == "marker":
        return visible(str(entry.get("type") or "marker").upper())
    if entry["kind"] == "event":
        name = str(entry.get("event"))
        return visible(f"refused: {name}" if is_refusal(entry) else name)
    return visible(str(entry["kind"]))


def is_refusal(entry: Entry) -> bool:
    """Return whether a broker's log says that it turned a batch away."""
    return entry["kind"] == "event" and entry.get("origin") == "server" and entry.get("event") in _REFUSALS


def sequences(entry: Entry) -> str:
    """Return the run's sequences; markers and missing offsets have none."""
    if entry["kind"] == "event":
        return span(entry.get("base_sequence"), None)
    return span(entry.get("first_sequence"), entry.get("last_sequence")) if entry["kind"] == "run" else "-"


def detail(entry: Entry, before: Entry | None = None) -> str:
    """Return further details of the entry; `before` is the run or marker before it, None for the first."""
    if entry["kind"] == "missing":
        number = entry.get("offsets")
        missing = plural(number, "offset") if isinstance(number, int) else "offsets"
        return visible(f"{missing} not in the log: {entry.get('cause', 'unknown')}")
    if entry["kind"] == "event":
        return _logged(entry)
    if entry["kind"] == "marker":
        epoch = entry.get("coordinator_epoch")
        coordinator = "" if epoch is None else f"coordinator epoch {epoch}"
        return ", ".join(filter(None, (_fencing(entry, before), coordinator)))
    facts = (_fencing(entry, before), _transaction(entry), _amount(entry), _leaders(entry, before))
    return ", ".join(filter(None, facts))


def describe(entry: Entry) -> str:
    """Return the whole entry on one line, each value with its name."""
    parts = [event(entry), f"offset {offsets(entry)}"]
    if "producer_epoch" in entry:
        parts.append(f"epoch {entry['producer_epoch']}")
    if entry["kind"] == "run":
        parts.append(f"sequence {sequences(entry)}")
    times = span(_time(entry, "min_timestamp") or _time(entry, "timestamp"), _time(entry, "max_timestamp"))
    if times != "-":
        parts.append(times)
    return ", ".join([*parts, *filter(None, [detail(entry)])])


def _logged(entry: Entry) -> str:
    """Return where it stands in which log, and what decides its place among the batches."""
    expected = entry.get("expected_sequence", entry.get("expected_epoch"))
    waits = "" if expected is None else f"the broker has {'epoch ' if 'expected_epoch' in entry else ''}{expected}"
    by = "" if entry.get("placed_by") == "offset" else f"placed by {entry.get('placed_by')}"
    file = str(entry.get("path")).rpartition("/")[2]
    return visible(", ".join(filter(None, (f"{file}:{entry.get('line')}", waits, by))))


def _time(entry: Entry, name: str) -> str | None:
    value = entry.get(name)
    return rfc3339(value) if isinstance(value, int) and value != NO_TIMESTAMP else None


def _transaction(entry: Entry) -> str:
    transaction = entry.get("transaction")
    if not isinstance(transaction, Mapping):
        return ""
    outcome = visible(str(transaction.get("outcome")))
    return f"{outcome} since offset {transaction.get('first_offset')}" if outcome == "open" else outcome


def _amount(entry: Entry) -> str:
    """Return the number of batches, and of records where compaction removed some: the sequences show how many there were."""
    batches, records = entry.get("batches"), entry.get("records")
    if not isinstance(batches, int):
        return ""
    amount = plural(batches, "batch", "batches") + _while(entry)
    first, last = entry.get("first_sequence"), entry.get("last_sequence")
    if not isinstance(records, int) or not isinstance(first, int) or not isinstance(last, int):
        return amount
    written = distance(first, last) + 1
    return amount if records == written or written < 1 else f"{amount}, {records:,} of {written:,} records left"


def _while(entry: Entry) -> str:
    first, last = entry.get("min_timestamp"), entry.get("max_timestamp")
    if not isinstance(first, int) or not isinstance(last, int) or first == NO_TIMESTAMP or last < first + 50:
        return ""
    return f" in {duration((last - first) / 1000)}"


def _fencing(entry: Entry, before: Entry | None) -> str:
    """Return which epoch a higher one fences, where it rises."""
    epoch, lower = entry.get("producer_epoch"), before.get("producer_epoch") if before else None
    rises = isinstance(epoch, int) and isinstance(lower, int) and epoch > lower
    return f"fences epoch {lower}" if rises else ""


def _leaders(entry: Entry, before: Entry | None) -> str:
    """Return the leader epochs of a run that spans a change of leader, or comes after one."""
    first, last = entry.get("first_leader_epoch"), entry.get("last_leader_epoch")
    known = before.get("last_leader_epoch") if before else None
    return "" if first == last and known in (None, first) else f"leader epoch {span(first, last)}"
