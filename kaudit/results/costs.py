"""What findings cost, in words."""

from collections.abc import Iterator

from kaudit.checks.texts import counted
from kaudit.model.batch_fields import NO_TIMESTAMP
from kaudit.model.impact import Impact
from kaudit.model.json_record import rfc3339


def impact_text(impact: Impact) -> str:
    """Return the cost in one line, e.g. `5 records lost; 2 records were written twice`; empty where there is none."""
    return "; ".join(
        [
            *impact.cannot_start,
            *_invisible(impact),
            *_lost(impact),
            *_duplicated(impact),
            *failed(impact),
            *consumed(impact),
            *_truncated(impact),
        ]
    )


def with_impact(text: str, impact: Impact) -> str:
    """Return the text, and the impact where there is one."""
    cost = impact_text(impact)
    return f"{text}. Impact: {cost}" if cost else text


def _invisible(impact: Impact) -> Iterator[str]:
    if not impact.offsets_invisible:
        return
    text = f"read_committed consumers cannot see {counted(impact.offsets_invisible, 'offset')}"
    text += since_text(impact.invisible_since_timestamp)
    if impact.last_stable_offset is not None:
        text += f": the last stable offset stays at {impact.last_stable_offset}"
    yield text


def since_text(milliseconds: int | None) -> str:
    """Return ` since 2026-11-21 06:02:49 UTC`, or nothing where the time is not known (None, Kafka's -1)."""
    text = None if milliseconds is None or milliseconds == NO_TIMESTAMP else rfc3339(milliseconds)
    return "" if text is None else f" since {text[:10]} {text[11:19]} UTC"


def between(least: int, most: int | None) -> str:
    """Return `5 records`, `at least 3, at most 660 records`, `at most 660 records`, `at least 3 records`."""
    if most is None or least == most:
        return ("at least " if most is None else "") + counted(least, "record")
    return (f"at least {least:,}, " if least else "") + f"at most {counted(most, 'record')}"


def _lost(impact: Impact) -> Iterator[str]:
    least, most = impact.records_lost_at_least or 0, impact.records_lost_at_most
    if least or most:
        yield f"{between(least, most)} lost"
    elif most is None and impact.records_lost_at_least is not None:
        yield "records may be lost: how many is not known"


def _duplicated(impact: Impact) -> Iterator[str]:
    least, most = impact.records_duplicated or 0, impact.records_duplicated_at_most
    if least or most:
        yield f"{between(least, most)} {'was' if (most or least) == 1 else 'were'} written twice"


def failed(impact: Impact) -> Iterator[str]:
    """Yield what became of sends that applications were told had failed."""
    least, most = impact.records_failed_but_written, impact.records_failed_but_written_at_most
    missing = impact.records_failed_not_written
    if least or most:
        are = "is" if (most or least) == 1 else "are"
        rest = f", at least {missing:,} {'is' if missing == 1 else 'are'} not" if missing else ""
        yield f"{between(least or 0, most)} of failed sends {are} in the log{rest}"
    elif missing:
        yield f"at least {counted(missing, 'record')} of failed sends {'is' if missing == 1 else 'are'} not in the log"


def consumed(impact: Impact) -> Iterator[str]:
    """Yield what consumers were given again, or never."""
    least, most = impact.records_delivered_again, impact.records_delivered_again_at_most
    back = impact.commits_went_back
    if least or most:
        yield f"{between(least or 0, most)} delivered to consumers again"
    elif least == 0 and most is None:
        steps = f"committed offsets went back {counted(back, 'time')}: " if back else ""
        yield f"{steps}records may have been delivered to consumers again, how many is not known"
    if impact.records_skipped_at_most:
        yield f"at most {counted(impact.records_skipped_at_most, 'record')} skipped by consumers"


def _truncated(impact: Impact) -> Iterator[str]:
    if impact.bytes_truncated:
        yield f"a broker that recovers this log cuts off {counted(impact.bytes_truncated, 'byte')}"
