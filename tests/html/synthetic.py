"""A report page of any size, made by the code that makes real ones: `python -m tests.html.synthetic --runs 1000000 -o FILE`."""

import argparse
import base64
from pathlib import Path

import numpy as np

from kaudit.model.finding import Explanation
from kaudit.report.html.columns import COARSE, Origins, fitted
from kaudit.report.html.document import REPORT_SCRIPTS, REPORT_STYLES, document
from kaudit.report.html.page_model import (
    DATA_ID,
    SCHEMA,
    CheckCount,
    Counts,
    FindingRow,
    HeatCell,
    HeatRow,
    IncidentRow,
    LeaderEpochRow,
    LeftOut,
    MissingRow,
    NotAuditedRow,
    Overview,
    PackedColumns,
    PageModel,
    PartitionRow,
    Series,
    SeverityName,
    Table,
    columns_id,
)
from kaudit.report.lanes import TRANSACTIONAL, Lanes

START_MS = 1_760_000_000_000
_BASE_OFFSET = 9_007_199_254_740_993  # 2**53 + 1: a browser's number does not hold it
_BASE_ID = 4000
_CHECKS: tuple[tuple[str, str, SeverityName], ...] = (
    ("KA102", "old-duplicate", "error"),
    ("KA104", "sequence-gap", "error"),
    ("KA106", "unknown-start", "warning"),
    ("KA203", "fencing", "note"),
)


def tables(producers: int, runs: int, seed: int = 7) -> dict[str, dict[str, np.ndarray]]:
    """Every third producer is transactional: its runs are transactions of one run each, every tenth aborted, the last open."""
    random = np.random.default_rng(seed)
    lane_of = np.sort(random.integers(0, producers, runs)) if runs else np.empty(0, dtype=np.int64)
    records = random.integers(1, 200, runs)
    # runs of all lanes take turns in the log, each with a marker's offset behind it
    turn = np.argsort(random.random(runs), kind="stable")
    firsts = np.empty(runs, dtype=np.int64)
    firsts[turn] = np.cumsum(records[turn] + 1) - records[turn] - 1
    order = np.lexsort((firsts, lane_of))
    first, count, lane = firsts[order], records[order], lane_of[order]
    last = first + count - 1
    timestamps = first // 3
    transactional = lane % 3 == 0
    ends_lane = np.append(lane[1:] != lane[:-1], True) if runs else np.empty(0, dtype=bool)
    ended = transactional & ~ends_lane
    before = np.cumsum(count) - count
    starts = np.flatnonzero(np.append(True, lane[1:] != lane[:-1])) if runs else np.empty(0, dtype=np.int64)
    sequences = before - np.repeat(before[starts], np.diff(np.append(starts, runs)))
    aborted = np.arange(runs) % 10 == 0
    outcome = np.where(~ended, 0, np.where(aborted, 2, 1))
    chosen = np.flatnonzero(ended)
    lanes = np.arange(producers)
    return {
        "lanes": {
            "producer_id": lanes // 2,
            "producer_epoch": lanes % 2,
            "name": np.where(lanes % 3 == 0, lanes // 3, -1),
        },
        "runs": {
            "lane": lane,
            "first_offset": first,
            "last_offset": last,
            "min_timestamp": timestamps,
            "max_timestamp": timestamps + count,
            "first_sequence": sequences,
            "last_sequence": sequences + count - 1,
            "batches": (count + 9) // 10,
            "records": count,
            "flags": np.where(transactional, TRANSACTIONAL, 0) | np.where(np.arange(runs) % 1000 == 999, COARSE, 0),
        },
        "markers": {
            "lane": lane[chosen],
            "offset": last[chosen] + 1,
            "timestamp": timestamps[chosen] + count[chosen],
            "type": np.where(aborted[chosen], 0, 1),
            "coordinator_epoch": np.full(len(chosen), 3),
        },
        "transactions": {
            "lane": lane[transactional],
            "first_offset": first[transactional],
            "last_offset": np.where(ended, last + 1, last)[transactional],
            "outcome": outcome[transactional],
        },
    }


def page(
    producers: int, runs: int, findings: int, partitions: int = 2, budget: int = 1 << 40
) -> tuple[PageModel, list[tuple[str, str]]]:
    """Return the model and the packed columns; the first two partitions are replicas of one.

    `budget` bytes are for the columns of all partitions together.
    """
    rows: list[PartitionRow] = []
    columns: list[tuple[str, str]] = []
    found: list[FindingRow] = []
    for index in range(partitions):
        held = tables(producers, runs // partitions, seed=max(index - 1, 0))
        own = _findings(index, findings // partitions, held)
        about = np.array([int(finding.offset or 0) - _BASE_OFFSET for finding in own], dtype=np.int64)
        chosen = np.array([int(finding.producer_id or 0) - _BASE_ID for finding in own], dtype=np.int64)
        ended = np.flatnonzero(held["transactions"]["outcome"])
        shown = fitted(Lanes(held, ended), Origins(), budget * 3 // 4 // partitions, np.sort(about), chosen)
        columns.append((columns_id(index), base64.b64encode(shown[1]).decode("ascii")))
        end = int(held["runs"]["last_offset"].max(initial=-1)) + 2
        names = [f"txn-{number}" for number in range(-(-producers // 3))]
        rows.append(_partition(index, producers, end, held, shown, names))
        found += own
    heat: dict[str, list[HeatCell]] = {}
    for index, row in enumerate(rows):
        own = [finding for finding in found if finding.partition == index]
        cell = HeatCell(row.partition, row.replica, own[0].severity if own else None, len(own), index)
        heat.setdefault(row.topic, []).append(cell)
    overview = Overview(
        verdict=[f"at most {len(found):,} records lost in {partitions} partitions"],
        severity="error" if found else None,
        facts=[("read", f"{runs:,} runs"), ("brokers", "2.8.0 to 3.9.0")],
        incidents=[
            IncidentRow(
                f"{index:016x}",
                finding.severity,
                [finding.code],
                finding.message,
                finding.impact,
                finding.place,
                1,
                [index],
                finding.next,
            )
            for index, finding in enumerate(found[:50])
        ],
        counts=Counts(
            [(name, sum(finding.severity == name for finding in found)) for name in ("error", "warning", "note")],
            [
                CheckCount(code, name, severity, sum(finding.code == code for finding in found), "")
                for code, name, severity in _CHECKS
            ],
        ),
        heat=[HeatRow(topic, cells) for topic, cells in heat.items()],
        series=Series(
            str(START_MS), 60_000, [abs(i % 17 - 8) * 100_000 for i in range(200)], [i % 40 for i in range(200)]
        ),
        not_audited=[NotAuditedRow("orders-9/00000000000000000000.log", "Permission denied", unreadable=True)],
        left_out=[LeftOut("findings", 12, "kaudit scan --output-format json logs")],
    )
    model = PageModel(
        SCHEMA,
        "scan",
        "kaudit scan: logs",
        "kaudit scan --output-format html logs",
        ["logs"],
        "kaudit 0",
        [("host", "example"), ("started_at", "2026-11-22T12:00:00.000Z")],
        overview,
        found,
        rows,
        [],
        None,
    )
    return model, columns


def _partition(index, producers, end, held, shown, names) -> PartitionRow:
    return PartitionRow(
        topic="orders" if index < 2 else f"topic-{index}",
        partition=0,
        replica="b1" if index != 1 else "b2",
        compacted=False,
        log_start_offset=str(_BASE_OFFSET),
        log_end_offset=str(_BASE_OFFSET + end),
        high_watermark=str(_BASE_OFFSET + end - 10),
        last_stable_offset=str(_BASE_OFFSET + end - 100),
        min_timestamp=str(START_MS),
        max_timestamp=str(START_MS + end),
        batches=int(held["runs"]["batches"].sum()),
        records=int(held["runs"]["records"].sum()),
        bytes=str(int(held["runs"]["records"].sum()) * 100),
        producers=producers,
        runs=len(held["runs"]["lane"]),
        leader_epochs=[LeaderEpochRow(epoch, str(_BASE_OFFSET + end * epoch // 4)) for epoch in range(4)],
        missing=[MissingRow(str(_BASE_OFFSET + end // 2), str(_BASE_OFFSET + end // 2 + end // 100), "unknown")],
        more_leader_epochs=0,
        more_missing=0,
        offsets=None,
        columns=PackedColumns(
            columns_id(index),
            len(shown[1]),
            str(_BASE_OFFSET),
            str(START_MS),
            str(_BASE_ID),
            names,
            shown[0],
            runs=len(held["runs"]["lane"]),
            lanes=producers,
            **shown[2],
        ),
    )


def _findings(index, count, held) -> list[FindingRow]:
    runs = held["runs"]
    chosen = np.linspace(0, len(runs["lane"]) - 1, count).astype(int) if len(runs["lane"]) else np.empty(0, dtype=int)
    return [
        _finding(index, number, {name: int(runs[name][row]) for name in runs}, held)
        for number, row in enumerate(chosen)
    ]


def _finding(index, number, run, held) -> FindingRow:
    code, name, severity = _CHECKS[number % len(_CHECKS)]
    producer_id = _BASE_ID + int(held["lanes"]["producer_id"][run["lane"]])
    epoch = int(held["lanes"]["producer_epoch"][run["lane"]])
    offset = str(_BASE_OFFSET + run["first_offset"])
    last = str(_BASE_OFFSET + run["last_offset"])
    return FindingRow(
        fingerprint=f"{index:08x}{number:08x}",
        code=code,
        name=name,
        severity=severity,
        confidence="certain",
        status="new",
        suppression=None,
        partition=index,
        place=f"orders-0 @ offset {offset}..{last}, producer {producer_id} epoch {epoch}",
        incident=number if number < 50 and not index else None,
        producer_id=str(producer_id),
        producer_epoch=epoch,
        offset=offset,
        last_offset=last,
        timestamp=str(START_MS + run["min_timestamp"]),
        message=f"the batch at offset {offset} repeats records that were written already <script>alert(1)</script>",
        impact=f"{run['records']} records were written twice",
        lost=False,
        rule="the first sequence of a batch is one more than the last of the batch before it",
        broker="a broker answers OUT_OF_ORDER_SEQUENCE_NUMBER",
        evidence=Table(
            ["", "offset", "epoch", "sequence"],
            [["previous", "7", str(epoch), "3"], ["offending", offset, str(epoch), str(run["first_sequence"])]],
            marked=1,
            faulty=3,
        ),
        facts=[("batches", str(run["batches"]))],
        state_before=[("producer_epoch", str(epoch)), ("last_sequence", "3"), ("last_offset", "7")],
        state_after=[
            ("producer_epoch", str(epoch)),
            ("last_sequence", str(run["last_sequence"])),
            ("last_offset", last),
        ],
        explanations=[
            Explanation(
                "the client sent the batch again after a timeout",
                ["the crc is equal"],
                ["no leader change"],
                innocent=False,
            ),
            Explanation("the log was copied while it was written", [], [], innocent=True),
        ],
        next=[f"kaudit timeline --topic orders --partition 0 --producer-id {producer_id} logs"],
        doc=f"{name}: kaudit explain {code}",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--producers", type=int, default=100, help="lanes of each partition")
    parser.add_argument("--runs", type=int, default=10_000, help="of all partitions together")
    parser.add_argument("--findings", type=int, default=20)
    parser.add_argument("--partitions", type=int, default=2)
    parser.add_argument("--budget", type=int, default=1 << 40, help="bytes of all columns; unlimited without")
    parser.add_argument("-o", "--output", type=Path, required=True)
    chosen = parser.parse_args()
    model, columns = page(chosen.producers, chosen.runs, chosen.findings, chosen.partitions, chosen.budget)
    text = document(
        "report.html",
        title=model.title,
        styles=REPORT_STYLES,
        scripts=REPORT_SCRIPTS,
        data={DATA_ID: model},
        columns=columns,
        context={"verdict": model.overview.verdict, "tables": []},
    )
    chosen.output.write_text(text, encoding="utf-8")
    print(f"{chosen.output}: {chosen.output.stat().st_size:,} bytes")  # noqa: T201


if __name__ == "__main__":
    main()
