"""The baseline file: findings a team knows of, each with a fingerprint, and if wanted a reason and an end date."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any, Self

from msgspec import Struct, field
from msgspec.structs import replace

from kaudit import __version__
from kaudit.errors import UsageError
from kaudit.model.finding import Finding
from kaudit.model.result import Expected
from kaudit.source.local import read_document

SCHEMA = "kaudit.baseline/1"
_TEXTS = ("fingerprint", "code", "summary")
_NUMBERS = ("partition", "offset", "producer_id")
_OWN = (*_TEXTS, "topic", "reason", "expires", *_NUMBERS)


class Entry(Struct, frozen=True):
    """One known finding. `others` are fields kaudit does not know; they are kept as they are."""

    fingerprint: str
    code: str
    summary: str
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    producer_id: int | None = None
    reason: str | None = None
    expires: date | None = None
    others: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def of(cls, finding: Finding, *, reason: str | None = None, expires: date | None = None) -> Self:
        """Return the entry that will recognise this finding."""
        own = {name: getattr(finding, name) for name in ("fingerprint", "code", "topic", *_NUMBERS)}
        return cls(summary=_summary(finding), reason=reason, expires=expires, **own)

    def expired(self, today: date) -> bool:
        """Whether the entry's last day has passed."""
        return self.expires is not None and self.expires < today

    def sort_key(self) -> tuple[object, ...]:
        """Order by place, as findings are."""
        place = ((number is not None, number) for number in (self.partition, self.offset))
        return self.topic or "", *place, self.code, self.fingerprint

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form; what is not there is left out, so that a diff shows what someone wrote."""
        fields: dict[str, object] = {name: getattr(self, name) for name in _OWN}
        fields["expires"] = None if self.expires is None else self.expires.isoformat()
        return {**self.others, **{name: value for name, value in fields.items() if value is not None}}

    def for_report(self) -> Expected:
        """Return what reports show of the entry."""
        expires = None if self.expires is None else self.expires.isoformat()
        return Expected(self.fingerprint, self.code, self.summary, self.reason, expires)


class Baseline(Struct, frozen=True):
    """A baseline as read: its entries, and the whole document, whose unknown fields are kept."""

    entries: Sequence[Entry] = ()
    document: Mapping[str, object] = field(default_factory=dict)

    def by_fingerprint(self) -> dict[str, Entry]:
        """Return the entries by the finding they know."""
        return {entry.fingerprint: entry for entry in self.entries}

    def adding(self, findings: Iterable[Finding], *, reason: str | None, expires: date | None) -> Self:
        """Return the baseline with an entry for each finding; entries that are there keep what people wrote."""
        entries = self.by_fingerprint()
        for finding in findings:
            fresh = Entry.of(finding, reason=reason, expires=expires)
            old = entries.get(finding.fingerprint)
            if old is not None:
                fresh = replace(fresh, reason=old.reason, expires=old.expires, others=old.others)
            entries[finding.fingerprint] = fresh
        return replace(self, entries=list(entries.values()))

    def without(self, fingerprints: Iterable[str]) -> Self:
        """Return the baseline without these entries."""
        gone = set(fingerprints)
        return replace(self, entries=[entry for entry in self.entries if entry.fingerprint not in gone])

    def to_text(self) -> str:
        """Return the file: sorted, a block per entry, so that a review shows one finding at a time."""
        entries = [entry.to_dict() for entry in sorted(self.entries, key=Entry.sort_key)]
        tool = {"name": "kaudit", "version": __version__}
        document = {**self.document, "schema": SCHEMA, "tool": tool, "entries": entries}
        return json.dumps(document, sort_keys=True, indent=2) + "\n"


def read_baseline(file: str) -> Baseline:
    """Read a baseline file.

    Raises:
        UsageError: it cannot be read, is not a baseline, or is not there: a typo would make every known finding new.

    """
    try:
        text = read_document(file)
    except FileNotFoundError:
        raise UsageError(f"baseline {file}: no such file ('kaudit baseline create' writes one)") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"baseline {file}: cannot be read: {error.strerror if isinstance(error, OSError) else error}"
        ) from error
    return parse_baseline(text, file)


def parse_baseline(text: str, file: str) -> Baseline:
    """Read a baseline file's text; every mistake names the file and the entry."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"baseline {file}: not JSON: {error}") from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise UsageError(f"baseline {file}: not a {SCHEMA} document ('kaudit baseline create' writes one)")
    entries = document.get("entries")
    if not isinstance(entries, list):
        raise UsageError(f"baseline {file}: 'entries' is not a list")
    read = [_entry(entry, f"baseline {file}: entry {number}") for number, entry in enumerate(entries, start=1)]
    return Baseline(read, document)


def parse_day(text: str, where: str) -> date:
    """Parse `2026-12-31`."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{where}: {text} is not a date; write the last valid day as 2026-12-31") from None


def _entry(document: object, where: str) -> Entry:
    if not isinstance(document, dict):
        raise UsageError(f"{where}: is not an object")
    own: dict[str, Any] = {name: document.get(name) for name in _OWN}
    for name, value in own.items():
        expected, called = (int, "number") if name in _NUMBERS else (str, "string")
        if not isinstance(value, expected) and (value is not None or name in _TEXTS):
            raise UsageError(f"{where}: '{name}' is not a {called}")
    if own["expires"] is not None:
        own["expires"] = parse_day(own["expires"], f"{where}: 'expires'")
    return Entry(**own, others={name: value for name, value in document.items() if name not in _OWN})


def _summary(finding: Finding) -> str:
    at = "" if finding.offset is None else f" @ {finding.offset}"
    return f"{finding.place or ''}{at}: {finding.name}: {finding.message}".lstrip(": ")
