"""Histories as JSON: what Python's own serialiser makes of each entry's fields, byte for byte."""

import json
from datetime import datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from kaudit.model.application_logs import LogEventKind
from kaudit.model.damage import MissingCause
from kaudit.model.timeline import OUTCOMES, RUN_FIELDS, STATE, TYPES, EventEntry, FindingEntry, MissingEntry
from kaudit.report.machine.history_json import LINES, PRETTY, timelines_json
from tests.timelines import Timeline, histories, marker, run

INT64 = st.integers(-(2**63) + 1, 2**63 - 1)
TIMES = st.sampled_from([-1, 0, 999, -62_135_596_800_000, 253_402_300_799_999, 253_402_300_800_000]) | INT64
TEXTS = st.text(max_size=6)


@st.composite
def runs(draw):
    numbers = {name: draw(TIMES if name.endswith("timestamp") else INT64) for name in RUN_FIELDS}
    within = draw(st.none() | st.tuples(INT64, st.sampled_from(OUTCOMES)))
    return run(transaction=within, **{**numbers, "is_transactional": within is not None})


ENTRIES = st.one_of(
    runs(),
    st.builds(marker, INT64, st.sampled_from(TYPES), INT64, TIMES, st.none() | INT64),
    st.builds(MissingEntry, INT64, INT64, INT64, st.sampled_from(MissingCause)),
    st.builds(FindingEntry, st.none() | INT64, TEXTS, TEXTS, TEXTS, TEXTS),
    st.builds(
        EventEntry, st.none() | INT64, TEXTS, st.none() | TIMES, st.sampled_from(LogEventKind), TEXTS, st.none() | INT64, TEXTS,
        INT64, TEXTS,
    ),
)  # fmt: skip
TIMELINES = st.builds(
    Timeline, st.just("a \N{GREEK SMALL LETTER ALPHA}\t##[x"), st.just(3), st.just('"b"'), INT64, st.none() | TEXTS.filter(bool),
    st.lists(ENTRIES, min_size=1, max_size=4), st.tuples(*[st.none() | INT64] * len(STATE)),
)  # fmt: skip


def with_times(value):
    """The document as it is written: times as texts where they have a date, null where there is none."""
    if isinstance(value, dict):
        return {key: _time(item) if key.endswith("timestamp") else with_times(item) for key, item in value.items()}
    return [with_times(item) for item in value] if isinstance(value, list) else value


def _time(milliseconds):
    if milliseconds in {-1, None}:
        return None
    try:
        return f"{(datetime(1970, 1, 1) + timedelta(milliseconds=milliseconds)).isoformat(timespec='milliseconds')}Z"  # noqa: DTZ001 - as written
    except OverflowError:
        return milliseconds


def document(own):
    state = dict(zip(STATE, own.state, strict=True))
    if state["producer_epoch"] is not None and state["last_timestamp"] is None:
        state["last_timestamp"] = -(2**63)  # of a producer that was seen it is a time, be it the least
    return with_times({
        "topic": own.topic, "partition": own.partition, "replica": own.replica, "producer_id": own.producer_id,
        "transactional_id": own.transactional_id, "entries": [entry.to_dict() for entry in own.entries],
        "state": state,
    })  # fmt: skip


@settings(deadline=None)
@given(st.lists(TIMELINES, min_size=1, max_size=4, unique_by=lambda own: own.producer_id))
def test_the_text_is_that_of_the_serialiser(timelines):
    made, documents = histories(*timelines), [document(own) for own in timelines]
    whole = json.dumps({"timelines": documents}, indent=2, sort_keys=True).replace("##[", "#\\u0023[")
    assert f'{{\n  "timelines": [\n    {timelines_json(made, PRETTY)}\n  ]\n}}' == whole
    lines = [json.dumps({**each, "type": "timeline"}, sort_keys=True) for each in documents]
    assert timelines_json(made, LINES) == "".join(f"{line}\n" for line in lines).replace("##[", "#\\u0023[")
