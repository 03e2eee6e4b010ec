"""One entry of a timeline as text: runs, markers, missing offsets."""

from collections.abc import Mapping

from kaudit.model.rfc3339 import rfc3339
from kaudit.model.sequence import distance
from kaudit.report.console import visible
from kaudit.report.formatting import duration, plural, span
from kaudit.report.timestamps import NO_TIMESTAMP

Entry = Mapping[str, object]


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
    return visible(str(entry["kind"]))


def sequences(entry: Entry) -> str:
    """Return the run's sequences; markers and missing offsets have none."""
    return span(entry.get("first_sequence"), entry.get("last_sequence")) if entry["kind"] == "run" else "-"


def detail(entry: Entry, before: Entry | None = None) -> str:
    """Return further details of the entry; `before` is the run or marker before it, None for the first."""
    if entry["kind"] == "missing":
        number = entry.get("offsets")
        missing = plural(number, "offset") if isinstance(number, int) else "offsets"
        return visible(f"{missing} not in the log: {entry.get('cause', 'unknown')}")
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
