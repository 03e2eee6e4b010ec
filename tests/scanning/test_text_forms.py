"""Texts of kafka-dump-log as people paste them: the findings are those of the text itself, or the audit says what it lacks."""

import random

import pytest

from kaudit.engines import local
from kaudit.engines.progress import SilentProgress
from kaudit.scanning.options import ScanOptions
from tests.formats.text_forms import (
    ENCODINGS,
    JSON_SHAPES,
    PREFIXES,
    SURROUNDINGS,
    cut,
    in_json,
    mailed,
    prefixed,
    wrapped,
    wrapped_without_trailing_blanks,
)

HEADER = "Dumping /data/orders-0/00000000000000000000.log\nLog starting offset: 0\n"
BATCH = (
    "baseOffset: {0} lastOffset: {0} count: 1 baseSequence: {1} lastSequence: {1} producerId: 42 producerEpoch: 0 "
    "partitionLeaderEpoch: 0 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty position: {2} "
    "CreateTime: 1700000000000 size: 70 magic: 2 compresscodec: none crc: {0}123456 isvalid: true\n"
    "| offset: {0} CreateTime: 1700000000000 keySize: -1 valueSize: 2 sequence: {1} headerKeys: [] payload: v{0}\n"
)
"""A batch and its record."""


def dump(*sequences):
    return (HEADER + "".join(BATCH.format(n, sequence, 70 * n) for n, sequence in enumerate(sequences))).encode()


GAP, HEALTHY = dump(0, 1, 5, 6), dump(0, 1, 2, 3)
"""Sequences 2 to 4 are missing; nothing is."""


def audit(path, text):
    path.write_bytes(text)
    return local.scan(ScanOptions([str(path)], jobs=1, broker_version="3.9.1"), SilentProgress())


def found(result):
    return [
        (one.code, one.topic, one.partition, one.offset, one.producer_id, one.producer_epoch) for one in result.findings
    ]


def unread(result):
    return [entry.reason for entry in result.not_audited if entry.unreadable]


@pytest.mark.parametrize(
    "form", [wrapped(100), wrapped(80), wrapped_without_trailing_blanks(80), mailed(76), mailed(100)]
)
def test_wrapped_lines_are_whole_once_they_are_joined(tmp_path, form):
    whole = audit(tmp_path / "dump.txt", GAP)
    again = audit(tmp_path / "dump.txt", form(GAP))
    assert found(again) == found(whole) == [("KA104", "orders", 0, 2, 42, 0)]
    assert unread(again) == unread(whole) == []
    assert unread(audit(tmp_path / "dump.txt", form(HEALTHY))) == []


@pytest.mark.parametrize("columns", range(20, 320, 20))
@pytest.mark.parametrize("mark", ["", "..."])
def test_a_cut_text_gives_its_findings_or_says_how_many_lines_are_cut(tmp_path, columns, mark):
    """Of each batch are needed offsets, sequences, producer id and epoch: what comes after those is not what a gap shows."""
    needed = len(
        "baseOffset: 0 lastOffset: 0 count: 1 baseSequence: 0 lastSequence: 0 producerId: 42 producerEpoch: 0 "
    )
    for text, code in ((GAP, "KA104"), (HEALTHY, None)):
        result = audit(tmp_path / "dump.txt", cut(columns, mark)(text))
        assert [finding.code for finding in result.findings] == (
            [code] if code and columns - len(mark) >= needed else []
        )
        (own, *_) = [reason for reason in unread(result) if "cut off" in reason] or [""]
        # of a record's line, what it shows before the size of its key: it might be a marker's
        keys = len("| offset: 0 CreateTime: 1700000000000 keySize: -1 ")
        assert own.startswith(f"{4 if columns - len(mark) >= keys else 8} of 9 lines") or columns >= 300
        assert own.count("; line ") == 2 or columns >= 300
        assert ": line 3: base" in own or columns >= 300


def test_what_a_cut_line_does_not_show_is_not_invented(tmp_path):
    (finding,) = audit(tmp_path / "dump.txt", cut(180)(GAP)).findings
    assert (finding.position, finding.segment) == (None, "00000000000000000000.log")
    assert "position" in finding.absent
    evidence = finding.evidence.to_dict()
    assert evidence["offending"]["timestamp"] in (None, -1)
    assert "crc" not in evidence["offending"]


@pytest.mark.parametrize("shape", JSON_SHAPES)
@pytest.mark.parametrize("columns", [60, 80, 120, 200])
def test_lines_of_a_collector_that_were_wrapped_are_whole_once_they_are_joined(tmp_path, shape, columns):
    for form in (wrapped, wrapped_without_trailing_blanks, mailed):
        result = audit(tmp_path / "dump.txt", form(columns)(in_json(shape)(GAP)))
        assert (found(result), unread(result)) == ([("KA104", "orders", 0, 2, 42, 0)], []), form


FORMS = [
    {"wrapped": wrapped(100), "without blanks": wrapped_without_trailing_blanks(80), "mailed": mailed(76)},
    SURROUNDINGS,
    {name: prefixed(name) for name in PREFIXES},
    {name: in_json(name) for name in JSON_SHAPES},
    {name: prefixed(name) for name in PREFIXES},
    ENCODINGS,
]
"""What may happen to a text, in the order in which it happens."""
ONE = {name: form for forms in FORMS for name, form in forms.items()}
WHOLE = [("KA104", "orders", 0, 2, 42, 0)]


@pytest.mark.parametrize("name", ONE)
def test_a_text_in_any_form_has_the_findings_of_the_text(tmp_path, name):
    result = audit(tmp_path / "dump.txt", ONE[name](GAP))
    assert (found(result), unread(result)) == (WHOLE, [])
    assert unread(audit(tmp_path / "dump.txt", ONE[name](HEALTHY))) == []


@pytest.mark.parametrize("seed", range(40))
def test_a_text_in_two_forms_has_the_findings_of_the_text(tmp_path, seed):
    draw = random.Random(seed)
    first, then = (draw.choice(list(forms.values())) for forms in sorted_sample(draw))
    result = audit(tmp_path / "dump.txt", then(first(GAP)))
    assert (found(result), unread(result)) == (WHOLE, [])


def sorted_sample(draw):
    return [FORMS[number] for number in sorted(draw.sample(range(len(FORMS)), 2))]


@pytest.mark.parametrize("name", ["quoted", "cat -n", "stern", "utf-16 of powershell", "docker json-file"])
@pytest.mark.parametrize("columns", [60, 140, 200])
def test_a_cut_text_in_any_form_says_how_many_lines_are_cut(tmp_path, name, columns):
    plain, formed = (audit(tmp_path / "dump.txt", form(cut(columns)(GAP))) for form in (lambda text: text, ONE[name]))
    assert found(formed) == found(plain)
    assert unread(formed) == unread(plain)
    assert any("cut off" in reason for reason in unread(formed))


def test_what_people_write_around_a_text_is_not_kafkas(tmp_path):
    text = b"> We see this:\n>\n" + ONE["quoted"](GAP) + b">\n\n"
    assert (found(audit(tmp_path / "dump.txt", text)), unread(audit(tmp_path / "dump.txt", text))) == (WHOLE, [])


def test_a_line_about_producers_that_is_no_row_makes_the_audit_incomplete(tmp_path):
    text = HEALTHY + b"and then producer id 42 was fenced, see OutOfOrderSequenceException\n"
    (reason,) = [reason for reason in unread(audit(tmp_path / "dump.txt", text)) if "not understood" in reason]
    assert reason.startswith("1 of 10 lines")
    assert "line 11: and then producer id 42" in reason


def test_lines_without_a_header_name_no_topic(tmp_path):
    text = ONE["quoted"](GAP.split(b"\n", 2)[2])
    (finding,) = audit(tmp_path / "dump.txt", text).findings
    assert finding.code == "KA104"
    assert not any("--topic" in command for command in finding.next)
