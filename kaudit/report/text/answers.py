"""One answer as text: a JSON object or a row of a table. Control characters in values from a log are dropped."""

import json
import unicodedata
from json.encoder import encode_basestring
from typing import Any

from kaudit.broker.attempts import (
    BATCH_FIELDS,
    Attempt,
    EndTxn,
    FollowerRestart,
    Produce,
    Restart,
    StartBroker,
    WriteMarker,
    op_of,
)
from kaudit.broker.producer_state.append_result import Outcome
from kaudit.broker.producer_state.producer_state_entry import ProducerStateEntry
from kaudit.broker.releases.profile import Profile
from kaudit.broker.response import Answer, Ruling
from kaudit.report.text.formatting import plural

SCHEMA = "kaudit.replay/1"
_dumps = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(", ", ": ")).encode


def printable(text: str) -> str:
    """Drop control, format and unassigned characters: they could move the cursor or colour the rest."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(character for character in text if not unicodedata.category(character).startswith("C"))


def state_fields(state: ProducerStateEntry, profile: Profile) -> dict[str, Any]:
    """Return a producer's state as JSON; -1 stays -1."""
    return {
        "producer_epoch": state.epoch,
        "coordinator_epoch": state.coordinator_epoch,
        "last_timestamp": state.last_timestamp,
        "current_txn_start_offset": state.current_txn_first_offset,
        "batches": [
            {
                "first_sequence": batch.first_sequence(profile),
                "last_sequence": batch.last_sequence,
                "first_offset": batch.first_offset,
                "last_offset": batch.last_offset,
                "timestamp": batch.timestamp,
            }
            for batch in state.batches
        ],
    }


def as_json(answer: Answer) -> str:
    """Return an answer as one line of JSON, keys sorted."""
    if type(answer) is Ruling and answer.result.outcome is _APPENDED:
        # The most common answer, written out for speed.
        return (
            f'{{"base_offset": {answer.offset}, "error": "NONE", "error_code": 0, "index": {answer.attempt}, '
            f'"outcome": "appended", "why": {encode_basestring(answer.why)}}}'
        )
    fields = answer.fields
    document = {**fields, "index": answer.attempt, "why": answer.why}
    if fields.keys() <= _FLAT:
        return "{" + ", ".join([f'"{name}": {_value(document[name])}' for name in sorted(document)]) + "}"
    return _dumps(document)


_APPENDED, _DUPLICATE = Outcome.APPENDED, Outcome.DUPLICATE.value
_FLAT = {"base_offset", "error", "error_code", "outcome", "producer_epoch", "producer_id"}
"""Fields that are numbers or strings, written without a JSONEncoder, which takes longer to start than to write them."""


def _value(value: int | str) -> str:
    return encode_basestring(value) if type(value) is str else str(value)


def as_json_with_state(answer: Answer, profile: Profile) -> str:
    """Return an answer as one line of JSON with the producer's state before and after, null for answers about no producer."""
    state = None
    if answer.producer is not None:
        _, before, after = answer.producer
        state = {"before": state_fields(before, profile), "after": state_fields(after, profile)}
    return _dumps({**answer.fields, "index": answer.attempt, "why": answer.why, "state": state})


DOCUMENT_BEGIN = '{"answers": ['
DOCUMENT_END = f'\n], "schema": "{SCHEMA}"}}\n'
"""Text before and after the answers, which commas separate, in one JSON document."""

ROW_INDENT = 9
"""Columns before the explanation of a row."""
TABLE_HEADER = f"{'INDEX':>7}  {'PARTITION':<22}  {'ATTEMPT':<32}  ANSWER"


def as_row(attempt: Attempt, answer: Answer) -> str:
    """Return one line of the table; a refusal gets its reason below."""
    partition = "" if isinstance(attempt, StartBroker) else f"{attempt.topic}-{attempt.partition}"
    row = (
        f"{answer.attempt:>7}  {printable(partition):<22}  {request_text(attempt):<32}  {answer_text(answer)}".rstrip()
    )
    if answer.fields.get("outcome") in ("rejected", "connection-closed"):
        row += f"\n{'':{ROW_INDENT}}{printable(answer.why)}"
    return row


def request_text(attempt: Attempt) -> str:
    """Return an attempt in short."""
    if isinstance(attempt, StartBroker):
        return f"broker {printable(attempt.broker_version)}"
    if isinstance(attempt, Produce):
        if any(getattr(attempt, name) is None for name in BATCH_FIELDS):
            return "produce"
        kind = " txn" if attempt.is_transactional else ""
        return (
            f"id {attempt.producer_id} epoch {attempt.producer_epoch} seq {attempt.base_sequence}"
            f" x{attempt.record_count}{kind}"
        )
    op = op_of(attempt)
    if isinstance(attempt, EndTxn | WriteMarker):
        end = "commit" if attempt.commit else "abort"
        return f"{op} id {attempt.producer_id} epoch {attempt.producer_epoch} {end}"
    if isinstance(attempt, Restart | FollowerRestart):
        detail = "clean" if attempt.clean else "unclean"
    else:
        known = (getattr(attempt, name, None) for name in ("transactional_id", "before_offset", "how", "ms"))
        detail = next((printable(str(value)) for value in known if value is not None), "")
    return f"{op} {detail}".rstrip()


def answer_text(answer: Answer) -> str:
    """Return an answer in short."""
    fields = answer.fields
    parts = [str(fields.get("outcome", ""))]
    if fields.get("error", "NONE") != "NONE":
        parts.append(f"{fields['error_code']} {fields['error']}")
    if "base_offset" in fields:
        parts[-1] += f"{' of offset' if fields['outcome'] == _DUPLICATE else ' at'} {fields['base_offset']}"
    if fields.get("producer_epoch", -1) >= 0:
        parts.append(f"id {fields['producer_id']} epoch {fields['producer_epoch']}")
    if "high_watermark" in fields:
        parts.append(
            f"high watermark {fields['high_watermark']}, log start {fields['log_start_offset']}, "
            f"stable to {fields['last_stable_offset']}, {len(fields['aborted'])} aborted"
        )
    if "producers" in fields:
        parts.append(plural(len(fields["producers"]), "producer"))
    return ", ".join(part for part in parts if part)
