"""The state machine beside a deliberately naive second implementation, driven by random attempts.

The naive one keeps a diary of everything that happened to the partition and, for every attempt, reads it again from the
beginning. It decides by version numbers, not by profiles.
"""

from hypothesis import given, settings
from hypothesis import strategies as st

from kaudit.broker.broker import Broker
from kaudit.broker.releases.profile import profile_for
from kaudit.broker.releases.request_versions import versions_in
from tests.attempts import attempt_of

VERSIONS = ("0.11.0.3", "1.0.1", "1.1.1", "2.0.0", "2.0.1", "2.3.1", "2.4.0", "2.4.1", "2.5.1", "2.8.2", "3.5.2")
WRAP = 2**31
WEEK = 7 * 24 * 3600 * 1000


class Diary:
    """What happened, in order; and what a broker of `version` makes of it."""

    def __init__(self, version):
        self.version = tuple(int(part) for part in version.split("."))
        self.events = []

    def at_least(self, *numbers):
        return self.version >= numbers

    def log_end(self):
        return max((event["last"] + 1 for event in self.events if self.is_written(event)), default=0)

    def log_start(self):
        return self.log_starts()[-1]

    def log_starts(self):
        """The log start after each event: nobody waits for a checkpoint here, so only a clean stop writes it down."""
        start = durable = 0
        starts = [0]
        for event in self.events:
            if event["kind"] == "delete":
                start = max(start, event["offset"])
            elif event["kind"] == "restart":
                start = durable = start if event["clean"] else durable
            starts.append(start)
        return starts

    @staticmethod
    def is_written(event):
        return event["kind"] in ("batch", "marker")

    def memory(self, producer, events=None):  # noqa: C901 - every kind of event, one after the other
        """(heard of, epoch, coordinator epoch, remembered batches, open transaction) of a producer, by the diary."""
        events = self.events if events is None else events
        epoch, coordinator, opened, heard = -1, -1, None, False
        batches: list[dict[str, int]] = []
        starts, end = self.log_starts()[1:], 0
        for number, event in enumerate(events):
            start = starts[number]
            if self.is_written(event):
                end = event["last"] + 1
            if event.get("producer", producer) != producer:
                continue
            if event["kind"] in ("batch", "refused"):
                heard = True
                if event["epoch"] != epoch:
                    batches = []
                epoch = event["epoch"]
                batches = [*batches, event][-5:] if self.at_least(1, 0, 0) else [event]
                if event["kind"] == "batch" and event["transactional"] and opened is None:
                    opened = event["base"]
            elif event["kind"] == "marker":
                heard = True
                if event["epoch"] != epoch:
                    batches = []
                epoch, coordinator, opened = event["epoch"], event["coordinator"], None
                if not self.at_least(1, 0, 0):
                    last = batches[-1]["to"] if batches else -1
                    batches = [{"from": last, "to": last, "base": event["last"], "last": event["last"]}]
            elif event["kind"] == "delete":
                if not self.at_least(2, 4, 0) and self._last_offset(batches) < start:
                    epoch, coordinator, batches, opened, heard = -1, -1, [], None, False
            elif event["kind"] == "restart":
                if not event["clean"]:  # the whole log is read again, also what lies below its start
                    log = [earlier for earlier in events[:number] if self.is_written(earlier)]
                    heard, epoch, coordinator, batches, opened = self.memory(producer, log)
                evicted = not self.at_least(2, 4, 0) and self._last_offset(batches) < start
                if end <= start or evicted:
                    epoch, coordinator, batches, opened, heard = -1, -1, [], None, False
                else:
                    batches = batches[-1:]
        return heard, epoch, coordinator, batches, opened

    @staticmethod
    def _last_offset(batches):
        return batches[-1]["last"] if batches else -1

    def produce(self, producer, epoch, first, count, transactional):
        end = self.log_end()
        last = (first + count - 1) % WRAP
        heard, known, _, batches, opened = self.memory(producer)
        if heard and epoch == known:
            for batch in batches:
                if (batch["from"], batch["to"]) == (first, last):
                    if batch["last"] >= end and self.is_1_0():
                        return "rejected", 7
                    return "duplicate", self._answered_offset(batch)
        if heard and epoch < known:
            return "rejected", 47
        error = self._sequence_error(heard, known, epoch, first, last, batches)
        if error is not None:
            return "rejected", error
        refused = opened is not None and not transactional
        if not refused or self.is_1_0():
            self.events.append(
                {
                    "kind": "refused" if refused else "batch", "producer": producer, "epoch": epoch, "from": first,
                    "to": last, "base": end, "last": end + count - 1, "transactional": transactional,
                }
            )  # fmt: skip
        return ("rejected", 48) if refused else ("appended", end)

    def is_1_0(self):
        return (1, 0, 0) <= self.version < (1, 0, 2)

    def _answered_offset(self, batch):
        wrapped = batch["from"] > batch["to"]
        return batch["base"] + WRAP if wrapped and self.version < (2, 1, 1) else batch["base"]

    def _sequence_error(self, heard, known, epoch, first, last, batches):
        if not heard:
            if first == 0 or self.at_least(2, 5, 0):
                return None
            return 59 if self.at_least(1, 0, 0) else 45
        if epoch > known:
            return None if first == 0 else 45
        remembered = batches[-1]["to"] if batches else -1
        if remembered == -1:
            if first == 0:
                return None
            return 59 if (2, 0, 1) <= self.version < (2, 5, 0) else 45
        if self.is_1_0() and last != 0 and batches[0]["from"] != WRAP - 1 and last < batches[0]["from"]:
            return 46
        return None if first == (remembered + 1) % WRAP else 45

    def mark(self, producer, epoch, coordinator, commit):
        heard, known, seen, _, _ = self.memory(producer)
        if heard and epoch < known:
            return "rejected", 47
        if seen > coordinator:
            return "rejected", 52
        self.events.append(
            {
                "kind": "marker", "producer": producer, "epoch": epoch, "coordinator": coordinator, "commit": commit,
                "last": self.log_end(),
            }
        )  # fmt: skip
        return "ok", 0

    def delete(self, offset):
        if offset > self.log_end():
            return "rejected", 1
        if offset > self.log_start():
            self.events.append({"kind": "delete", "offset": offset})
        return "ok", 0

    def restart(self, clean):
        self.events.append({"kind": "restart", "clean": clean})
        return "ok", 0


def asked(broker, index, op, **fields):
    attempt = {"index": index, "op": op, "topic": "t", "partition": 0, "at": 1000 + index, **fields}
    return broker.answer(attempt_of(attempt)).fields


SEQUENCES = st.one_of(
    st.integers(0, 12), st.integers(WRAP - 3, WRAP - 1), st.sampled_from(["next", "next", "next", "again", "skip"])
)
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("produce"), st.integers(1, 2), st.integers(0, 2), SEQUENCES, st.integers(1, 4),
            st.sampled_from([False, False, True]),
        ),
        st.tuples(st.just("mark"), st.integers(1, 2), st.integers(0, 2), st.integers(0, 2), st.booleans()),
        st.tuples(st.just("delete"), st.integers(0, 12)),
        st.tuples(st.just("restart"), st.booleans()),
    ),
    max_size=25,
)  # fmt: skip


def concrete(diary, producer, sequence, count):
    """Turn 'next', 'again' and 'skip' into numbers, so that random stories get somewhere."""
    if isinstance(sequence, int):
        return sequence, count
    _, _, _, batches, _ = diary.memory(producer)
    last = batches[-1] if batches else {"from": -1, "to": -1}
    if sequence == "again" and last["to"] >= 0 and "epoch" in last:
        return last["from"], (last["to"] - last["from"]) % WRAP + 1
    return (last["to"] + (1 if sequence == "next" else 2)) % WRAP, count


@settings(max_examples=100, deadline=None)
@given(version=st.sampled_from(VERSIONS), steps=STEPS)
def test_both_implementations_answer_the_same(version, steps):
    diary = Diary(version)
    broker = Broker(profile_for(version))
    for index, step in enumerate(steps):
        if step[0] == "produce":
            _, producer, epoch, sequence, count, transactional = step
            first, count = concrete(diary, producer, sequence, count)
            answer = asked(
                broker, index, "produce", producer_id=producer, producer_epoch=epoch, base_sequence=first,
                record_count=count, is_transactional=transactional, transactional_id="tx" if transactional else None,
                api_version=min(7, versions_in(broker.profile.version)["produce"][1]), timestamp=1000 + index,
            )  # fmt: skip
            expected = diary.produce(producer, epoch, first, count, transactional)
            detail = answer.get("base_offset", answer["error_code"])
        elif step[0] == "mark":
            _, producer, epoch, coordinator, commit = step
            answer = asked(
                broker, index, "write_marker", producer_id=producer, producer_epoch=epoch, commit=commit,
                coordinator_epoch=coordinator,
            )  # fmt: skip
            expected, detail = diary.mark(producer, epoch, coordinator, commit), answer["error_code"]
        elif step[0] == "delete":
            answer = asked(broker, index, "delete_records", before_offset=step[1])
            expected, detail = diary.delete(step[1]), answer["error_code"]
        else:
            answer = asked(broker, index, "restart", clean=step[1])
            expected, detail = diary.restart(step[1]), 0
        assert (answer["outcome"], detail) == expected, (version, index, step)
    described = asked(broker, len(steps), "describe")
    assert (described["high_watermark"], described["log_start_offset"]) == (diary.log_end(), diary.log_start())
