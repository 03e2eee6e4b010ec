// What a mark says when the pointer rests on it: names and values, all text.

import { OUTCOMES } from "./picture.js";
import { absolute, count, counted, range, time } from "./format.js";

/** @typedef {{title: string, facts: [string, string][]}} Description */

const MARKERS = { "-1": "end marker, emptied by the log cleaner", 0: "ABORT marker", 1: "COMMIT marker" };

/**
 * @param {import("./marks.js").Mark} mark @param {import("./picture.js").Picture} picture
 * @param {import("./rows.js").Row[]} rows @param {any} page @returns {Description}
 */
export function describe(mark, picture, rows, page) {
  const replica = picture.replicas[mark.replica];
  const described = DESCRIPTIONS[mark.kind](mark, replica, picture, page);
  const row = mark.row === undefined ? undefined : rows[mark.row];
  /** @type {[string, string][]} */
  const facts = row?.kind === "lane" && mark.kind !== "finding" ? [["producer", laneText(row.lane)]] : [];
  if (picture.replicas.length > 1 && (mark.kind !== "line" || mark.y > 0)) facts.push(["replica", replica.name]);
  return { title: described.title, facts: [...facts, ...described.facts] };
}

/** @param {import("./picture.js").Lane} lane */
export function laneText({ producerId, epoch, name }) {
  return `${producerId} epoch ${epoch}${name === null ? "" : ` (${name})`}`;
}

/** @type {Record<string, (mark: any, replica: import("./picture.js").Replica, picture: import("./picture.js").Picture, page: any) => Description>} */
const DESCRIPTIONS = {
  lost: ({ data: { code, name, impact } }) => ({ title: "records lost", facts: [["impact", impact], ["check", `${code} ${name}`]] }),
  run: ({ first, stop }, replica) => {
    const { runs, columns, row } = replica;
    const run = columns.runs;
    const held = Array.from(runs.row.subarray(first, stop));
    const [origin, clock] = [BigInt(row.columns.offset_origin), Number(row.columns.timestamp_origin)];
    const least = (/** @type {string} */ name) => held.reduce((value, i) => Math.min(value, run[name][i]), Infinity);
    const most = (/** @type {string} */ name) => held.reduce((value, i) => Math.max(value, run[name][i]), -Infinity);
    const coarse = held.some((i) => run.flags[i] & 2);
    const [from, to] = [least("min_timestamp") + clock, most("max_timestamp") + clock];
    /** @type {[string, string][]} */
    const facts = [["offsets", range(least("first_offset"), most("last_offset"), origin)]];
    if (held.length === 1 && !coarse && run.first_sequence[held[0]] >= 0) facts.push(["sequences", range(run.first_sequence[held[0]], run.last_sequence[held[0]])]);
    facts.push(["batches", count(replica.batches()[stop] - replica.batches()[first])], ["records", count(replica.records()[stop] - replica.records()[first])]);
    facts.push(["time", from === to ? time(from) : `${time(from)} to ${time(to)}`]);
    if (held.length > 1) facts.push(["", "zoom in to see each run"]);
    else if (coarse) facts.push(["", "several runs, merged to keep the file small"]);
    const kind = run.flags[held[0]] & 1 ? "transactional" : "idempotent";
    return { title: held.length > 1 ? counted(held.length, "run") : `${coarse ? "merged runs" : "run"}, ${kind}`, facts };
  },
  transaction: ({ first, stop }, replica) => {
    const { transactions, columns, row } = replica;
    const held = transactions.row.subarray(first, stop);
    const origin = BigInt(row.columns.offset_origin);
    const { first_offset: from, last_offset: to, outcome } = columns.transactions;
    const offsets = range(from[held[0]], to[held[held.length - 1]], origin);
    if (held.length === 1) return { title: `transaction, ${OUTCOMES[outcome[held[0]]] ?? "unknown"}`, facts: [["offsets", offsets]] };
    const each = OUTCOMES.map((name, n) => [name, replica.outcomes[n][stop] - replica.outcomes[n][first]]).filter(([, number]) => number);
    return { title: counted(held.length, "transaction"), facts: [["offsets", offsets], ...each.map(([name, number]) => /** @type {[string, string]} */ ([String(name), count(number)]))] };
  },
  marker: ({ first, stop }, replica) => {
    const { markers, columns, row } = replica;
    const at = markers.row[first];
    const { offset, timestamp, type, coordinator_epoch: epoch } = columns.markers;
    if (stop > first + 1) {
      const aborts = replica.aborts[stop] - replica.aborts[first];
      return { title: counted(stop - first, "end marker"), facts: [["aborts", count(aborts)], ["", "zoom in to see each"]] };
    }
    const origin = BigInt(row.columns.offset_origin);
    const facts = /** @type {[string, string][]} */ ([["offset", absolute(origin, offset[at])], ["time", time(timestamp[at] + Number(row.columns.timestamp_origin))]]);
    return { title: MARKERS[/** @type {0 | 1} */ (type[at])] ?? "end marker", facts: [...facts, ["coordinator epoch", String(epoch[at])]] };
  },
  missing: ({ data }) => ({ title: "missing offsets", facts: [["offsets", range(0, Number(BigInt(data.last_offset) - BigInt(data.first_offset)), BigInt(data.first_offset))], ["cause", data.cause]] }),
  epoch: ({ label, data }) => ({ title: label, facts: [["from offset", data.start_offset]] }),
  line: ({ label, data }) => ({ title: label, facts: [["offset", data.offset]] }),
  finding: ({ data }, _, __, page) => {
    const finding = page.findings[data[0]];
    const facts = /** @type {[string, string][]} */ ([["", finding.message]]);
    if (finding.impact) facts.push(["impact", finding.impact]);
    if (data.length > 1) facts.push(["", `and ${counted(data.length - 1, "more finding")} here: zoom in`]);
    return { title: `${finding.severity} ${finding.code} ${finding.name}`, facts };
  },
};
