// What the lanes of one partition show: its replicas side by side on one axis, and the lanes they have together.

import { SEVERITIES } from "./filters.js";
import { bisect, runningSum, spansOf } from "./spans.js";

/**
 * @typedef {import("./spans.js").Spans} Spans
 * @typedef {{row: any, index: number, tables: Record<string, Record<string, Float64Array>> | null}} Loaded a partition replica
 * @typedef {{
 *   name: string, index: number, row: any, columns: Record<string, Record<string, Float64Array>>,
 *   runs: Spans, markers: Spans, transactions: Spans,
 *   batches: () => Float64Array, records: () => Float64Array, aborts: Float64Array, outcomes: Float64Array[],
 * }} Replica `batches`, `records`: of the runs before a span; `aborts`: of the markers; `outcomes`: of the transactions, each
 * @typedef {{
 *   key: string, producerId: string, epoch: number, name: string | null, first: number, of: number[],
 *   findings: number, severity: string | null,
 * }} Lane `of`: its number in each replica, -1 where it has none; `first`: where it begins on the axis
 * @typedef {{
 *   axis: "offset" | "time", origin: bigint, min: number, max: number, replicas: Replica[], lanes: Lane[], findings: Placed[],
 * }} Picture positions are relative to `origin`
 * @typedef {{finding: any, index: number, at: number | null, end: number, replica: number, lane: Lane | null}} Placed
 */

export const OUTCOMES = ["open", "committed", "aborted", "unknown"];
export const TRANSACTIONAL = 1;
export const COARSE = 2;

/**
 * @param {Loaded[]} loaded replicas of one partition @param {"offset" | "time"} axis @param {any[]} findings all of the page
 * @returns {Picture}
 */
export function pictureOf(loaded, axis, findings) {
  const origin = axis === "time" ? 0n : leastOrigin(loaded);
  const replicas = loaded.map((replica) => replicaOf(replica, axis, origin));
  const lanes = lanesOf(replicas);
  const placed = place(findings, replicas, lanes, axis, origin);
  const [min, max] = extent(replicas, placed, axis, origin);
  return { axis, origin, min, max, replicas, lanes, findings: placed };
}

/** @param {Loaded[]} loaded */
function leastOrigin(loaded) {
  const origins = loaded.map(({ row }) => row.columns?.offset_origin ?? row.log_start_offset ?? "0").map(BigInt);
  return origins.reduce((least, origin) => (origin < least ? origin : least));
}

/** @param {Loaded} loaded @param {"offset" | "time"} axis @param {bigint} origin @returns {Replica} */
function replicaOf({ row, index, tables }, axis, origin) {
  const columns = tables ?? emptyTables();
  const shift = axis === "time" ? Number(row.columns?.timestamp_origin ?? 0) : Number(BigInt(row.columns?.offset_origin ?? origin) - origin);
  const count = columns.lanes.producer_id.length;
  const { runs: run, markers: marker, transactions: transaction } = columns;
  const times = axis === "time";
  const [began, ended] = times ? [moments(run.min_timestamp, shift), run.max_timestamp] : [run.first_offset, run.last_offset];
  const marked = times ? moments(marker.timestamp, shift) : marker.offset;
  const spanning = times ? transactionTimes(columns, count, shift) : { start: transaction.first_offset, end: endsOf(transaction) };
  const runs = spansOf(run.lane, count, began, ended, shift);
  const markers = spansOf(marker.lane, count, marked, marked, shift);
  const transactions = spansOf(transaction.lane, count, spanning.start, spanning.end, shift);
  return {
    name: row.replica,
    index,
    row,
    columns,
    runs,
    markers,
    transactions,
    aborts: runningSum(markers, marker.type.map((type) => Number(type === 0))),
    outcomes: OUTCOMES.map((_, wanted) => runningSum(transactions, transaction.outcome.map((outcome) => Number(outcome === wanted)))),
    batches: lazily(() => runningSum(runs, run.batches)),
    records: lazily(() => runningSum(runs, run.records)),
  };
}

/** Transactions end in the middle of their marker; open ones with their last batch. @param {Record<string, Float64Array>} transactions */
function endsOf({ last_offset: last, outcome }) {
  return last.map((offset, i) => (outcome[i] === OUTCOMES.indexOf("open") ? offset : offset - 0.5));
}

/** Timestamps, relative to an origin, with NaN for those that are -1 without it: none. @param {Float64Array} timestamps @param {number} origin */
function moments(timestamps, origin) {
  return timestamps.map((value) => (value + origin === -1 ? NaN : value));
}

/** @template T @param {() => T} make @returns {() => T} */
function lazily(make) {
  /** @type {T | undefined} */
  let made;
  return () => (made ??= make());
}

/**
 * Transactions have offsets only; their times are those of the run at the first and of the marker, or run, at the last.
 * @param {Record<string, Record<string, Float64Array>>} columns @param {number} lanes @param {number} origin of the timestamps
 */
function transactionTimes({ runs, markers, transactions }, lanes, origin) {
  const rows = transactions.lane.length;
  const start = new Float64Array(rows).fill(NaN);
  const end = new Float64Array(rows).fill(NaN);
  const [ofRuns, ofMarkers] = [laneStarts(runs.lane, lanes), laneStarts(markers.lane, lanes)];
  for (let i = 0; i < rows; i++) {
    const lane = transactions.lane[i];
    const [from, to] = [ofRuns[lane], ofRuns[lane + 1]];
    const first = bisect(runs.last_offset, transactions.first_offset[i], from, to);
    if (first === to) continue;
    start[i] = runs.min_timestamp[first] + origin === -1 ? NaN : runs.min_timestamp[first];
    const marker = bisect(markers.offset, transactions.last_offset[i], ofMarkers[lane], ofMarkers[lane + 1]);
    const last = Math.max(first, bisect(runs.first_offset, transactions.last_offset[i] + 1, from, to) - 1);
    const marked = marker < ofMarkers[lane + 1] && markers.offset[marker] === transactions.last_offset[i];
    end[i] = Math.max(start[i], marked ? markers.timestamp[marker] : runs.max_timestamp[last]);
  }
  return { start, end };
}

/** @param {Float64Array} laneOf ascending @param {number} lanes */
function laneStarts(laneOf, lanes) {
  return Int32Array.from({ length: lanes + 1 }, (_, lane) => bisect(laneOf, lane));
}

function emptyTables() {
  const none = new Float64Array(0);
  const names = {
    lanes: ["producer_id", "producer_epoch", "name"],
    runs: ["lane", "first_offset", "last_offset", "min_timestamp", "max_timestamp", "first_sequence", "last_sequence", "batches", "records", "flags"],
    markers: ["lane", "offset", "timestamp", "type", "coordinator_epoch"],
    transactions: ["lane", "first_offset", "last_offset", "outcome"],
  };
  return Object.fromEntries(Object.entries(names).map(([table, fields]) => [table, Object.fromEntries(fields.map((field) => [field, none]))]));
}

/** The lanes that any replica has, each once. @param {Replica[]} replicas @returns {Lane[]} */
function lanesOf(replicas) {
  /** @type {Map<string, Lane>} */
  const lanes = new Map();
  replicas.forEach((replica, number) => {
    const packed = replica.row.columns;
    if (!packed) return;
    const { producer_id: ids, producer_epoch: epochs, name: names } = replica.columns.lanes;
    const origin = BigInt(packed.producer_id_origin);
    for (let at = 0; at < ids.length; at++) {
      const producerId = String(origin + BigInt(ids[at]));
      const key = `${producerId}:${epochs[at]}`;
      const name = names[at] < 0 ? null : packed.names[names[at]];
      const first = Math.min(...[replica.runs, replica.markers].map((spans) => (spans.lanes[at] < spans.lanes[at + 1] ? spans.start[spans.lanes[at]] : Infinity)));
      let lane = lanes.get(key);
      if (!lane) {
        lane = { key, producerId, epoch: epochs[at], name, first, of: replicas.map(() => -1), findings: 0, severity: null };
        lanes.set(key, lane);
      }
      lane.of[number] = at;
      lane.name ??= name;
      lane.first = Math.min(lane.first, first);
    }
  });
  return [...lanes.values()];
}

/**
 * Findings of these replicas with their lanes; counts them in the lanes.
 * @param {any[]} findings @param {Replica[]} replicas @param {Lane[]} lanes @param {string} axis @param {bigint} origin
 * @returns {Placed[]}
 */
function place(findings, replicas, lanes, axis, origin) {
  const byKey = new Map(lanes.map((lane) => [lane.key, lane]));
  const byProducer = new Map();
  for (const lane of lanes) if (!byProducer.has(lane.producerId)) byProducer.set(lane.producerId, lane);
  const number = new Map(replicas.map((replica, at) => [replica.index, at]));
  /** @type {Placed[]} */
  const placed = [];
  findings.forEach((finding, index) => {
    const replica = number.get(finding.partition);
    if (replica === undefined) return;
    const lane = byKey.get(`${finding.producer_id}:${finding.producer_epoch}`) ?? byProducer.get(finding.producer_id) ?? null;
    if (lane) {
      lane.findings++;
      if (lane.severity === null || SEVERITIES.indexOf(finding.severity) > SEVERITIES.indexOf(lane.severity)) lane.severity = finding.severity;
    }
    const at = position(axis === "time" ? finding.timestamp : finding.offset, origin);
    const last = axis === "time" ? null : position(finding.last_offset, origin);
    placed.push({ finding, index, at, end: (last ?? at ?? 0) + 1, replica, lane });
  });
  return placed;
}

/** Offset or time as text to a place on the axis. @param {string | null} text @param {bigint} origin */
export function position(text, origin) {
  return text === null ? null : Number(BigInt(text) - origin);
}

/** @param {Replica[]} replicas @param {Placed[]} placed @param {string} axis @param {bigint} origin @returns {[number, number]} */
function extent(replicas, placed, axis, origin) {
  let [min, max] = [Infinity, -Infinity];
  const take = (/** @type {number | null} */ value) => {
    if (value === null || !Number.isFinite(value)) return;
    min = Math.min(min, value);
    max = Math.max(max, value);
  };
  for (const { row, runs, markers } of replicas) {
    const ends = axis === "time" ? ["min_timestamp", "max_timestamp"] : ["log_start_offset", "log_end_offset"];
    for (const name of ends) if (axis !== "time" || Number(row[name]) >= 0) take(position(row[name], origin));
    for (const { start, reach, lanes } of [runs, markers]) {
      for (let lane = 0; lane + 1 < lanes.length; lane++) {
        if (lanes[lane] === lanes[lane + 1]) continue;
        take(start[lanes[lane]]);
        take(reach[lanes[lane + 1] - 1]);
      }
    }
  }
  for (const { at } of placed) take(at);
  if (!(min < max)) return Number.isFinite(min) ? [min, min + 1] : [0, 1];
  return [min, max];
}
