// What is drawn in a window of the lanes, as shapes with pixel positions: the painter draws them, the pointer and the tests find them.

import { eachBar } from "./spans.js";
import { COARSE, OUTCOMES, TRANSACTIONAL, position } from "./picture.js";
import { layoutOf } from "./rows.js";

/**
 * `x`, `y`, `width`, `height` are CSS pixels in the plot; `first` to `stop` are the spans a mark stands for (of `replica`).
 * @typedef {{
 *   kind: "run" | "transaction" | "marker" | "missing" | "lost" | "epoch" | "line" | "finding",
 *   style: string, x: number, y: number, width: number, height: number, replica: number,
 *   row?: number, first?: number, stop?: number, label?: string, data?: any,
 * }} Mark
 * @typedef {{
 *   min: number, max: number, width: number, top: number, height: number, chosen: number | null,
 *   isShown: (finding: any) => boolean, logHeight?: number,
 * }} Window @typedef {(row: number, replica: number) => {y: number, height: number}} Strip
 * Window: the part of the axis and of the rows in view; `chosen`: index of the finding that is open
 */

const LEAST_WIDTH = 1.5;
const MARKER_WIDTH = 7;
const FINDING_SIZE = 15;
const TRANSACTION_HEIGHT = 3;
const LINES = [
  ["log_start_offset", "log start", "start"],
  ["last_stable_offset", "last stable offset", "stable"],
  ["high_watermark", "high watermark", "watermark"],
  ["log_end_offset", "log end", "end"],
];

/**
 * Marks in the order they are drawn.
 * @param {import("./picture.js").Picture} picture @param {import("./rows.js").Row[]} rows @param {Window} window @returns {Mark[]}
 */
export function marksOf(picture, rows, window) {
  const layout = layoutOf(rows, picture.replicas.length, window.logHeight);
  const from = layout.rowAt(window.top);
  const to = Math.min(rows.length, layout.rowAt(window.top + window.height - 1) + 1);
  const strip = (/** @type {number} */ row, /** @type {number} */ replica) => {
    const { y, height } = layout.strip(row, replica);
    return { y: y - window.top, height };
  };
  /** @type {Mark[]} */
  const marks = [];
  if (picture.axis === "offset") lostMarks(marks, picture, window);
  if (picture.axis === "offset") for (let at = from; at < to; at++) logMarks(marks, picture, rows, at, window, strip);
  for (let at = from; at < to; at++) laneMarks(marks, picture, rows, at, window, strip);
  if (picture.axis === "offset") lineMarks(marks, picture, rows, [from, to], window, strip);
  findingMarks(marks, picture, rows, [from, to], window, strip);
  return marks;
}

/** A place on the axis in pixels. @param {Window} window @param {number} value */
export function toX({ min, max, width }, value) {
  return ((value - min) / (max - min)) * width;
}

/** Where a mark from `start` to `end` is in view, cut off a little outside of it. @param {Window} window @param {number} start @param {number} end @param {number} least */
function across(window, start, end, least = LEAST_WIDTH) {
  const x = Math.max(-2, toX(window, start));
  const right = Math.min(window.width + 2, toX(window, end));
  return { x, width: Math.max(least, right - x) };
}

/** Offsets of which records are lost: a band across all rows, below everything else. @param {Mark[]} marks @param {import("./picture.js").Picture} picture @param {Window} window */
function lostMarks(marks, picture, window) {
  for (const { finding, at, end, replica } of picture.findings) {
    if (!finding.lost || at === null || end < window.min || at > window.max || !window.isShown(finding)) continue;
    marks.push({ kind: "lost", style: "lost", ...across(window, at, end, 2), y: 0, height: window.height, replica, data: finding });
  }
}

/** Leader epochs and missing offsets of the log of a replica. @param {Mark[]} marks @param {import("./picture.js").Picture} picture @param {import("./rows.js").Row[]} rows @param {number} at @param {Window} window @param {Strip} strip */
function logMarks(marks, picture, rows, at, window, strip) {
  const shownRow = rows[at];
  if (shownRow.kind !== "log") return;
  const replica = shownRow.replica;
  const { row: log } = picture.replicas[replica];
  const { y, height } = strip(at, replica);
  const end = position(log.log_end_offset, picture.origin) ?? picture.max;
  log.leader_epochs.forEach((/** @type {any} */ epoch, /** @type {number} */ n) => {
    const next = log.leader_epochs[n + 1];
    const start = position(epoch.start_offset, picture.origin) ?? 0;
    const stop = next ? position(next.start_offset, picture.origin) ?? end : end;
    if (stop < window.min || start > window.max) return;
    marks.push({ kind: "epoch", style: n % 2 ? "epoch-odd" : "epoch-even", ...across(window, start, stop, 1), y, height, replica, row: at, label: `leader epoch ${epoch.epoch}`, data: epoch });
  });
  for (const gap of log.missing) {
    const [start, stop] = [position(gap.first_offset, picture.origin) ?? 0, (position(gap.last_offset, picture.origin) ?? 0) + 1];
    if (stop < window.min || start > window.max) continue;
    marks.push({ kind: "missing", style: "missing", ...across(window, start, stop, 2), y, height, replica, row: at, data: gap });
  }
}

/** Runs, transactions and end markers of a lane. @param {Mark[]} marks @param {import("./picture.js").Picture} picture @param {import("./rows.js").Row[]} rows @param {number} at @param {Window} window @param {Strip} strip */
function laneMarks(marks, picture, rows, at, window, strip) {
  const row = rows[at];
  if (row.kind !== "lane") return;
  const pixel = (window.max - window.min) / window.width;
  row.lane.of.forEach((lane, number) => {
    if (lane < 0) return;
    const replica = picture.replicas[number];
    const { y, height } = strip(at, number);
    eachBar(replica.transactions, lane, window.min, window.max, pixel, (start, end, first, stop) => {
      const style = `transaction-${worstOutcome(replica, first, stop)}`;
      const box = { ...across(window, start, end), y: y + height - TRANSACTION_HEIGHT, height: TRANSACTION_HEIGHT };
      marks.push({ kind: "transaction", style, ...box, replica: number, row: at, first, stop });
    });
    const bar = height - TRANSACTION_HEIGHT - 1;
    eachBar(replica.runs, lane, window.min, window.max, pixel, (start, end, first, stop) => {
      const flags = replica.columns.runs.flags[replica.runs.row[first]];
      const style = stop > first + 1 || flags & COARSE ? "coarse" : "run";
      marks.push({ kind: "run", style: flags & TRANSACTIONAL ? `${style}-transactional` : style, ...across(window, start, end), y, height: bar, replica: number, row: at, first, stop });
    });
    eachBar(replica.markers, lane, window.min, window.max, MARKER_WIDTH * pixel, (start, _, first, stop) => {
      const x = toX(window, start + (picture.axis === "offset" ? 0.5 : 0)) - MARKER_WIDTH / 2;
      const aborted = replica.aborts[stop] > replica.aborts[first];
      const emptied = stop === first + 1 && replica.columns.markers.type[replica.markers.row[first]] < 0;
      const style = aborted ? "marker-abort" : emptied ? "marker-emptied" : "marker-commit";
      marks.push({ kind: "marker", style, x, width: MARKER_WIDTH, y: y - 1, height: height + 2, replica: number, row: at, first, stop });
    });
  });
}

/** The outcome that matters most among transactions that share a pixel. @param {import("./picture.js").Replica} replica @param {number} first @param {number} stop */
export function worstOutcome(replica, first, stop) {
  const any = (/** @type {string} */ name) => {
    const sums = replica.outcomes[OUTCOMES.indexOf(name)];
    return sums[stop] > sums[first];
  };
  return ["open", "aborted", "unknown"].find(any) ?? "committed";
}

/** Log start, high watermark, last stable offset and log end: across the lanes where all replicas agree, else on each log. @param {Mark[]} marks @param {import("./picture.js").Picture} picture @param {import("./rows.js").Row[]} rows @param {[number, number]} range @param {Window} window @param {Strip} strip */
function lineMarks(marks, picture, rows, [from, to], window, strip) {
  for (const [field, label, style] of LINES) {
    const places = picture.replicas.map(({ row }) => position(row[field], picture.origin));
    const shared = places.every((at) => at === places[0]);
    const line = (/** @type {number} */ replica, /** @type {{y: number, height: number}} */ box) => {
      const at = places[replica];
      if (at === null || at < window.min || at > window.max) return;
      marks.push({ kind: "line", style: `line-${style}`, x: toX(window, at) - 1, width: 2, ...box, replica, label, data: { offset: picture.replicas[replica].row[field] } });
    };
    if (shared) line(0, { y: 0, height: window.height });
    else for (let at = from; at < to; at++) {
      const row = rows[at];
      if (row.kind === "log") line(row.replica, strip(at, row.replica));
    }
  }
}

/** Findings: on their lane, or on the log of their replica. @param {Mark[]} marks @param {import("./picture.js").Picture} picture @param {import("./rows.js").Row[]} rows @param {[number, number]} range @param {Window} window @param {Strip} strip */
function findingMarks(marks, picture, rows, [from, to], window, strip) {
  const rowOf = new Map();
  for (let at = from; at < to; at++) {
    const row = rows[at];
    rowOf.set(row.kind === "lane" ? row.lane : row.replica, at);
  }
  /** @type {Map<string, Mark>} */
  const taken = new Map();
  for (const { finding, index, at, replica, lane } of picture.findings) {
    if (at === null || at < window.min || at > window.max || !window.isShown(finding)) continue;
    const row = rowOf.get(lane ?? replica);
    if (row === undefined) continue;
    const { y, height } = strip(row, replica);
    const size = Math.min(FINDING_SIZE, height + 4);
    const x = toX(window, at + (picture.axis === "offset" ? 0.5 : 0)) - size / 2;
    const cell = `${row} ${replica} ${Math.round(x / 4)}`;
    const before = taken.get(cell);
    if (before) {
      before.data.push(index);
      if (index === window.chosen) before.style = `finding-${finding.severity}-chosen`;
      continue;
    }
    const style = `finding-${finding.severity}${index === window.chosen ? "-chosen" : ""}`;
    const mark = { kind: /** @type {const} */ ("finding"), style, x, width: size, y: y + height / 2 - size / 2, height: size, replica, row, label: finding.code, data: [index] };
    taken.set(cell, mark);
    marks.push(mark);
  }
}

/** The mark that is uppermost at a point, within `slack` pixels sideways. @param {Mark[]} marks @param {number} x @param {number} y @param {number} slack */
export function markAt(marks, x, y, slack = 2) {
  const inside = (/** @type {Mark} */ mark) => x >= mark.x - slack && x <= mark.x + mark.width + slack && y >= mark.y && y <= mark.y + mark.height;
  const of = (/** @type {string[]} */ ...without) => marks.findLast((mark) => !without.includes(mark.kind) && inside(mark));
  return of("line", "lost") ?? of("lost") ?? of() ?? null;
}
