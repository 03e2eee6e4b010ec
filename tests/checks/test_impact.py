"""What findings say was lost or written twice, against logs whose truth is known because each fault was made here."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaudit.engines.local import scan
from kaudit.engines.progress import SilentProgress
from kaudit.model.impact import Impact
from kaudit.model.total_impact import total_impact
from kaudit.scanning.options import ScanOptions
from tests.logs import WRAP, Batch, Log, data

KEPT, CUT, CORRUPT = range(3)
OTHER_STORIES = {"KA105", "KA107", "KA404"}
"""Reported in place of the gaps and repeats they are made of; what they cost is not known."""


@dataclass
class History:
    """A log with faults, and how many records each kind of fault cost."""

    log: Log = field(default_factory=Log)
    fates: list[int] = field(default_factory=list)
    next_sequence: dict[int, int] = field(default_factory=dict)
    written: dict[int, list[Batch]] = field(default_factory=dict)
    lost: int = 0
    repeated: int = 0

    def send(self, who, count, fate=KEPT, *, back=0):
        """Append the producer's next batch, or one that begins `back` sequences before that."""
        sequence = self.next_sequence.setdefault(who, WRAP - 20 if who == 1 else 0) - back
        batch = self.log.append(data(who, 0, sequence, count, payload=b"%d" % len(self.fates)))
        self.fates.append(fate)
        self.next_sequence[who] = sequence + count
        self.lost += 0 if fate == KEPT else count
        self.repeated += back
        if fate == KEPT and not back:
            self.written.setdefault(who, []).append(batch)

    def skip(self, who, count):
        """The producer's next records never come."""
        self.next_sequence[who] = self.next_sequence.get(who, 0) + count
        self.lost += count

    def resend(self, who, place):
        """Append one of the producer's batches again."""
        batch = self.written[who][place % len(self.written[who])]
        self.log.append(batch, keep_time=True)
        self.fates.append(KEPT)
        self.repeated += batch.count

    def findings(self, directory, **options):
        """Write the log as its faults leave it, and scan it."""
        content = b""
        for batch, fate in zip(self.log.batches, self.fates, strict=True):
            encoded = batch.encode()
            if fate == CORRUPT:
                encoded = encoded[:-3] + bytes([encoded[-3] ^ 1]) + encoded[-2:]
            content += b"" if fate == CUT else encoded
        partition = directory / "orders-0"
        partition.mkdir(parents=True, exist_ok=True)
        (partition / f"{0:020d}.log").write_bytes(content)
        return scan(ScanOptions([str(partition)], log_start_offset=0, **options), SilentProgress()).findings


WHO = st.sampled_from([1, 2, 3])
SIZE = st.integers(1, 6)
SENDS = st.tuples(st.just("send"), WHO, SIZE)
FAULTS = ("cut", "corrupt", "skip")


def steps(fault):
    resend = st.tuples(st.just("resend"), WHO, st.integers(0, 8))
    overlap = st.tuples(st.just("overlap"), WHO, SIZE)
    return st.lists(st.one_of(SENDS, resend, overlap, st.tuples(st.just(fault), WHO, SIZE)), max_size=30)


def play(actions):
    """Each producer begins and ends with a valid batch, so that all that is missing lies between two."""
    history = History()
    for who in (1, 2, 3):
        history.send(who, 2)
    for action, who, number in actions:
        if action == "skip":
            history.skip(who, number)
            history.send(who, 1)
        elif action == "resend":
            history.resend(who, number)
        elif action == "overlap":
            # only what the batch before holds for certain
            history.send(who, 1)
            history.send(who, number + 1, back=1)
        else:
            history.send(who, number, {"send": KEPT, "cut": CUT, "corrupt": CORRUPT}[action])
    for who in (1, 2, 3):
        history.send(who, 1)
    return history


@pytest.mark.parametrize("fault", FAULTS)
@settings(max_examples=100, deadline=None)
@given(drawn=st.data())
def test_what_is_said_to_be_lost_or_repeated_is_so(fault, tmp_path_factory, drawn):
    history = play(drawn.draw(steps(fault)))
    found = history.findings(tmp_path_factory.mktemp("log"))
    total = total_impact(found)
    at_least, at_most = total.records_lost_at_least or 0, total.records_lost_at_most or 0
    assert at_least <= history.lost
    assert (total.records_duplicated or 0) <= history.repeated
    if not OTHER_STORIES & {finding.code for finding in found}:
        assert history.lost <= at_most
        assert (total.records_duplicated or 0) == history.repeated
        if fault == "skip":
            assert at_least == at_most
    for finding in found:
        impact = finding.impact
        if impact.records_lost_at_least is not None and impact.records_lost_at_most is not None:
            assert 0 <= impact.records_lost_at_least <= impact.records_lost_at_most


def impacts(log, directory, **options):
    """The impact of what a scan finds, by code and offset."""
    result = scan(
        ScanOptions([str(log.write(directory / "orders-0"))], log_start_offset=0, **options), SilentProgress()
    )
    return {(found.code, found.offset): found.impact for found in result.findings}


def log_of(*batches):
    log = Log()
    for batch in batches:
        log.append(batch)
    return log


def test_a_gap_counts_its_records_across_the_wrap(tmp_path):
    log = log_of(data(1, 0, WRAP - 4, 2), data(1, 0, 3, 2))  # the next would have been 2^31 - 2
    assert impacts(log, tmp_path)["KA104", 2] == Impact(records_lost_at_least=5, records_lost_at_most=5)


def test_after_a_change_of_leader_perhaps_nothing_is_lost(tmp_path):
    log = log_of(data(1, 0, 0, 2), data(1, 0, 7, 2, leader_epoch=1))
    assert impacts(log, tmp_path)["KA104", 2] == Impact(records_lost_at_least=0, records_lost_at_most=5)


def test_compaction_may_have_taken_some_of_what_is_missing(tmp_path):
    log = log_of(data(1, 0, 0, 2))
    log.skip(3)
    log.append(data(1, 0, 10, 2))
    found = impacts(log, tmp_path, compacted_topics=("orders",))
    assert found == {("KA104", 2): Impact(records_lost_at_least=5, records_lost_at_most=8)}


def test_what_fills_a_gap_later_is_neither_lost_nor_repeated(tmp_path):
    log = log_of(data(1, 0, 0, 2), data(1, 0, 5, 2), data(1, 0, 7, 2), data(1, 0, 2, 2))  # 4 never comes
    assert impacts(log, tmp_path) == {
        ("KA104", 2): Impact(records_lost_at_least=1, records_lost_at_most=1),
        ("KA103", 6): Impact(records_duplicated=0, records_duplicated_at_most=0),
    }


def test_missing_offsets_cost_at_least_the_sequences_that_are_missing_there(tmp_path):
    log = log_of(data(1, 0, 0, 2), data(2, 0, 0, 2))
    log.skip(5)
    log.append(data(1, 0, 5, 1))
    log.append(data(2, 0, 3, 1))
    assert impacts(log, tmp_path) == {("KA007", 4): Impact(records_lost_at_least=4, records_lost_at_most=5)}


def test_missing_sequences_that_two_gaps_may_have_held_count_in_neither(tmp_path):
    log = log_of(data(1, 0, 0, 2))
    log.skip(3)
    log.append(data(2, 0, 0, 2))
    log.skip(4)
    log.append(data(1, 0, 6, 1))  # 4 sequences in 3 + 4 missing offsets: one at least in the second gap
    assert impacts(log, tmp_path) == {
        ("KA007", 2): Impact(records_lost_at_least=0, records_lost_at_most=3),
        ("KA007", 7): Impact(records_lost_at_least=1, records_lost_at_most=4),
    }


def test_an_epoch_that_does_not_begin_at_0_may_have_lost_its_first_records(tmp_path):
    log = log_of(data(1, 0, 0, 2), data(1, 1, 4, 2))
    assert impacts(log, tmp_path)["KA202", 2] == Impact(records_lost_at_least=0, records_lost_at_most=4)


def test_a_batch_cleaned_by_compaction_repeats_only_what_is_left_of_it(tmp_path):
    later = [data(1, 0, sequence) for sequence in range(5, 10)]
    log = log_of(data(1, 0, 0), data(1, 0, 1, 4), *later, data(1, 0, 1, 4, kept=1))
    assert impacts(log, tmp_path)["KA102", 10] == Impact(records_duplicated=1, records_duplicated_at_most=1)


def test_of_a_late_batch_that_compaction_cleaned_the_late_records_may_be_what_is_left(tmp_path):
    log = log_of(data(1, 0, 0, 2), data(1, 0, 5, 2), data(1, 0, 2, 5, kept=3))  # 2, 3 and 4 are late, 5 and 6 repeated
    assert impacts(log, tmp_path)["KA103", 4] == Impact(records_duplicated=0, records_duplicated_at_most=2)


def test_other_bytes_under_known_sequences_prove_no_repeated_record(tmp_path):
    log = log_of(data(1, 0, 0), data(1, 0, 1, 4), data(1, 0, 1, 4, payload=b"y"))
    assert impacts(log, tmp_path) == {("KA101", 5): Impact(records_duplicated=0, records_duplicated_at_most=4)}
