import assert from "node:assert/strict";
import { test } from "node:test";
import { finding, load, partition, tables, twoProducers } from "./pages.js";

const { pictureOf } = await load("picture");
const { layoutOf, rowsOf } = await load("rows");
const { markAt, marksOf } = await load("marks");
const { describe } = await load("describe");
const { within } = await load("axis");

const ALL = { order: "first", producer: "", onlyFindings: false };
const WIDE = { min: 0, max: 100, width: 1000, top: 0, height: 500, chosen: null, isShown: () => true };
const one = (axis = "offset", findings = [], row = partition()) => pictureOf([{ row, index: 0, tables: twoProducers() }], axis, findings);
const kinds = (marks, kind) => marks.filter((mark) => mark.kind === kind);

test("runs, transactions and markers are where their offsets are", () => {
  const picture = one();
  assert.deepEqual([picture.origin, picture.min, picture.max], [100n, 0, 100]);
  const rows = rowsOf(picture, ALL);
  const marks = marksOf(picture, rows, WIDE);
  assert.deepEqual(kinds(marks, "run").map(({ x, width, style }) => [x, width, style]), [[0, 100, "run-transactional"], [200, 100, "run-transactional"], [110, 80, "run"]]);
  assert.deepEqual(kinds(marks, "transaction").map(({ x, width, style }) => [x, width, style]), [[0, 105, "transaction-committed"], [200, 105, "transaction-aborted"]]);
  assert.deepEqual(kinds(marks, "marker").map(({ x, width, style }) => [x + width / 2, style]), [[105, "marker-commit"], [305, "marker-abort"]]);
  const { top, height } = layoutOf(rows, 1);
  assert.ok(marks.every(({ row, y, height: own }) => row === undefined || (y >= top(row) && y + own <= top(row) + height(row))));
});

test("on the axis of times everything is where its timestamps are", () => {
  const picture = one("time", [finding()]);
  assert.deepEqual([picture.min, picture.max], [5000, 6000]);
  const marks = marksOf(picture, rowsOf(picture, ALL), { ...WIDE, min: 5000, max: 6000 });
  assert.deepEqual(kinds(marks, "run").map(({ x, width }) => [x, width]), [[0, 91], [200, 91], [110, 71]]);
  assert.deepEqual(kinds(marks, "transaction").map(({ x, width }) => [x, width]), [[0, 101], [200, 101]]);
  assert.deepEqual(kinds(marks, "finding").map(({ x, width }) => x + width / 2), [200]);
  assert.deepEqual([...kinds(marks, "epoch"), ...kinds(marks, "line"), ...kinds(marks, "missing")], []);
});

test("a run without a timestamp is not on the axis of times", () => {
  const held = tables({ lanes: [[0, 0, -1]], runs: [[0, 0, 9, -5001, -5001, 0, 9, 1, 10, 0], [0, 10, 19, 7, 8, 10, 19, 1, 10, 0]] });
  const picture = pictureOf([{ row: partition(), index: 0, tables: held }], "time", []);
  assert.equal(kinds(marksOf(picture, rowsOf(picture, ALL), { ...WIDE, min: 4000, max: 6000 }), "run").length, 1);
});

test("the log has its epochs, missing offsets and lines", () => {
  const row = partition({ leader_epochs: [{ epoch: 4, start_offset: "100" }, { epoch: 6, start_offset: "150" }], missing: [{ first_offset: "160", last_offset: "169", cause: "compaction" }], high_watermark: "190", last_stable_offset: "120" });
  const picture = one("offset", [], row);
  const marks = marksOf(picture, rowsOf(picture, ALL), WIDE);
  assert.deepEqual(kinds(marks, "epoch").map(({ x, width, label }) => [x, width, label]), [[0, 500, "leader epoch 4"], [500, 500, "leader epoch 6"]]);
  assert.deepEqual(kinds(marks, "missing").map(({ x, width }) => [x, width]), [[600, 100]]);
  assert.deepEqual(kinds(marks, "line").map(({ x, label }) => [x + 1, label]), [[0, "log start"], [200, "last stable offset"], [900, "high watermark"], [1000, "log end"]]);
});

test("what replicas do not agree on is on the log of each", () => {
  const logs = ["190", "150"].map((watermark, index) => ({ row: partition({ replica: `b${index}`, high_watermark: watermark }), index, tables: twoProducers() }));
  const picture = pictureOf(logs, "offset", []);
  const rows = rowsOf(picture, ALL);
  const lines = kinds(marksOf(picture, rows, WIDE), "line");
  const { strip } = layoutOf(rows, 2);
  assert.deepEqual(lines.filter(({ label }) => label === "high watermark").map(({ x, y, height }) => [x + 1, y, height]), [[900, strip(0, 0).y, strip(0, 0).height], [500, strip(1, 1).y, strip(1, 1).height]]);
  assert.deepEqual(lines.filter(({ label }) => label === "log end").map(({ y, height }) => [y, height]), [[0, WIDE.height]]);
});

test("runs in one pixel are one bar that says how many", () => {
  const runs = Array.from({ length: 1000 }, (_, i) => [0, i * 2, i * 2, i, i, i, i, 1, 1, 0]);
  const held = tables({ lanes: [[0, 0, -1]], runs });
  const picture = pictureOf([{ row: partition({ log_end_offset: "2100" }), index: 0, tables: held }], "offset", []);
  const rows = rowsOf(picture, ALL);
  const drawn = kinds(marksOf(picture, rows, { ...WIDE, max: 2000, width: 100 }), "run");
  assert.ok(drawn.length <= 101);
  assert.equal(drawn.reduce((sum, { first, stop }) => sum + stop - first, 0), 1000);
  const said = describe(drawn[0], picture, rows, {});
  assert.equal(said.title, `${drawn[0].stop} runs`);
  assert.deepEqual(said.facts.find(([name]) => name === "records"), ["records", String(drawn[0].stop)]);
});

test("among transactions in a pixel an open one shows first, then an aborted one", () => {
  const held = (outcomes) => tables({ lanes: [[0, 0, 0]], transactions: outcomes.map((outcome, i) => [0, i, i, outcome]) });
  const style = (outcomes) => {
    const picture = pictureOf([{ row: partition(), index: 0, tables: held(outcomes) }], "offset", []);
    return kinds(marksOf(picture, rowsOf(picture, ALL), { ...WIDE, width: 5 }), "transaction")[0].style;
  };
  assert.deepEqual([[1, 1], [1, 2, 1], [2, 0], [3, 1]].map(style), ["transaction-committed", "transaction-aborted", "transaction-open", "transaction-unknown"]);
});

test("replicas share lanes and the axis, whatever their origins", () => {
  const later = partition({ replica: "b2", columns: { ...partition().columns, offset_origin: "110", producer_id_origin: "6999" } });
  const other = tables({ lanes: [[1, 0, 0], [9, 0, -1]], runs: [[0, 0, 9, 0, 0, 0, 9, 1, 10, 0]] });
  const picture = pictureOf([{ row: partition({ replica: "b1" }), index: 0, tables: twoProducers() }, { row: later, index: 1, tables: other }], "offset", []);
  assert.deepEqual(picture.lanes.map(({ key, of }) => [key, of]), [["7000:0", [0, 0]], ["7001:3", [1, -1]], ["7008:0", [-1, 1]]]);
  const runs = kinds(marksOf(picture, rowsOf(picture, ALL), WIDE), "run");
  assert.deepEqual(runs.filter(({ replica }) => replica === 1).map(({ x, width }) => [x, width]), [[100, 100]]);
  const [first, second] = [runs.find(({ replica }) => replica === 0), runs.find(({ replica }) => replica === 1)];
  assert.ok(second.y >= first.y + first.height);
});

test("findings are on their lane, or on the log; those in one place are one mark", () => {
  const found = [finding(), finding(), finding({ producer_id: null, producer_epoch: null, offset: "150" }), finding({ producer_epoch: 99, offset: "160" }), finding({ offset: null }), finding({ partition: 5 })];
  const picture = one("offset", found);
  const rows = rowsOf(picture, ALL);
  const marks = kinds(marksOf(picture, rows, { ...WIDE, chosen: 1 }), "finding");
  assert.deepEqual(marks.map(({ row, data, style }) => [rows[row].kind, data, style]), [["lane", [0, 1], "finding-error-chosen"], ["log", [2], "finding-error"], ["lane", [3], "finding-error"]]);
  assert.equal(marks[0].x + marks[0].width / 2, 205);
  assert.deepEqual(kinds(marksOf(picture, rows, { ...WIDE, isShown: () => false }), "finding"), []);
});

test("only rows in view are laid out", () => {
  const lanes = Array.from({ length: 10_000 }, (_, i) => [i, 0, -1]);
  const runs = lanes.map((_, i) => [i, i, i, i, i, 0, 0, 1, 1, 0]);
  const picture = pictureOf([{ row: partition({ log_end_offset: "10100" }), index: 0, tables: tables({ lanes, runs }) }], "offset", []);
  const rows = rowsOf(picture, ALL);
  const { top } = layoutOf(rows, 1);
  const marks = kinds(marksOf(picture, rows, { ...WIDE, max: 10_000, top: top(5000), height: top(5010) - top(5000) }), "run");
  assert.deepEqual(marks.map((mark) => mark.row), Array.from({ length: 10 }, (_, i) => 5000 + i));
});

test("rows are found where they are", () => {
  const rows = [{ kind: "log" }, { kind: "log" }, { kind: "lane" }, { kind: "lane" }];
  const { height, rowAt, strip, top, total } = layoutOf(rows, 3);
  for (let at = 0; at < 4; at++) {
    assert.deepEqual([rowAt(top(at)), rowAt(top(at) + height(at) - 1)], [at, at]);
    for (let replica = 0; replica < 3; replica++) assert.ok(strip(at, replica).y >= top(at) && strip(at, replica).y + strip(at, replica).height <= top(at + 1));
  }
  assert.equal(top(4), total);
  assert.equal(layoutOf(rows.slice(0, 2), 3).total, top(2));
});

test("lanes of a transactional id stay together; those with the worst findings come first", () => {
  const lanes = [[5, 0, -1], [6, 0, 0], [6, 1, 0], [9, 0, -1]];
  const runs = [[0, 0, 1], [1, 10, 11], [2, 50, 51], [3, 20, 21]].map(([lane, first, last]) => [lane, first, last, 0, 0, 0, 0, 1, 1, 0]);
  const found = [finding({ producer_id: "7009", severity: "warning" }), finding({ producer_id: "7006", producer_epoch: 1, severity: "error" })];
  const picture = pictureOf([{ row: partition(), index: 0, tables: tables({ lanes, runs }) }], "offset", found);
  const order = (choice) => rowsOf(picture, { ...ALL, ...choice }).filter(({ kind }) => kind === "lane").map(({ lane, named }) => `${lane.key}${named ? " named" : ""}`);
  assert.deepEqual(order({ order: "first" }), ["7005:0", "7006:0 named", "7006:1", "7009:0"]);
  assert.deepEqual(order({ order: "findings" }), ["7006:0 named", "7006:1", "7009:0", "7005:0"]);
  assert.deepEqual(order({ onlyFindings: true }), ["7009:0", "7006:1 named"]);
  assert.deepEqual(order({ producer: "TXN-A" }), ["7006:0 named", "7006:1"]);
  assert.deepEqual(order({ producer: "7005" }), ["7005:0"]);
});

test("a partition without runs, and one without anything, still has a picture", () => {
  const bare = pictureOf([{ row: partition({ columns: null }), index: 0, tables: null }], "offset", [finding()]);
  assert.deepEqual([bare.min, bare.max, bare.lanes.length], [0, 100, 0]);
  const nothing = partition({ columns: null, log_start_offset: null, log_end_offset: null, min_timestamp: null, max_timestamp: null });
  for (const axis of ["offset", "time"]) {
    const empty = pictureOf([{ row: nothing, index: 0, tables: null }], axis, []);
    assert.ok(empty.min < empty.max);
    assert.deepEqual(kinds(marksOf(empty, rowsOf(empty, ALL), { ...WIDE, min: empty.min, max: empty.max }), "run"), []);
  }
});

test("the pointer finds what is uppermost", () => {
  const picture = one("offset", [finding()]);
  const marks = marksOf(picture, rowsOf(picture, ALL), WIDE);
  const [shown] = kinds(marks, "finding");
  assert.equal(markAt(marks, 205, shown.y + 5), shown);
  assert.equal(markAt(marks, 260, kinds(marks, "run")[0].y + 1).kind, "run");
  assert.equal(markAt(marks, 600, 3), null);
});

test("what a mark says", () => {
  const picture = one("offset", [finding()]);
  const rows = rowsOf(picture, ALL);
  const marks = marksOf(picture, rows, WIDE);
  const said = (kind, at = 0) => describe(kinds(marks, kind)[at], picture, rows, { findings: [finding()] });
  assert.deepEqual(said("run"), { title: "run, transactional", facts: [["producer", "7000 epoch 0 (txn-a)"], ["offsets", "100 to 109"], ["sequences", "0 to 9"], ["batches", "2"], ["records", "10"], ["time", "1970-01-01 00:00:05.000 UTC to 1970-01-01 00:00:05.090 UTC"]] });
  assert.deepEqual(said("transaction", 1), { title: "transaction, aborted", facts: [["producer", "7000 epoch 0 (txn-a)"], ["offsets", "120 to 130"]] });
  assert.deepEqual(said("marker", 1).facts, [["producer", "7000 epoch 0 (txn-a)"], ["offset", "130"], ["time", "1970-01-01 00:00:05.300 UTC"], ["coordinator epoch", "4"]]);
  assert.deepEqual(said("finding"), { title: "error KA102 old-duplicate", facts: [["", "the batch at offset 120 repeats what was written"]] });
});

test("a window stays within the picture and open", () => {
  const picture = { min: 0, max: 1000 };
  assert.deepEqual(within(picture, -50, 50), [0, 100]);
  assert.deepEqual(within(picture, 990, 1090), [900, 1000]);
  assert.deepEqual(within(picture, -9e9, 9e9), [0, 1000]);
  assert.deepEqual(within(picture, 500, 500), [498, 502]);
  assert.deepEqual(within({ min: 0, max: 3 }, 1, 2), [0, 3]);
});
