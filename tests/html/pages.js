// Pages for the tests of the scripts, and their module under a short name.

import { readdir } from "node:fs/promises";

const FOLDER = new URL("../../kaudit/report/html/assets/report/", import.meta.url);

/** A module of the report page by its file's name. */
export const load = (name) => import(new URL(`${name}.js`, FOLDER));

/** All of them but the one that starts the page. */
export async function moduleNames() {
  const files = await readdir(FOLDER);
  return files.filter((file) => file.endsWith(".js") && file !== "app.js").map((file) => file.slice(0, -3));
}

export const tables = (given = {}) => ({
  lanes: columns(given.lanes, ["producer_id", "producer_epoch", "name"]),
  runs: columns(given.runs, ["lane", "first_offset", "last_offset", "min_timestamp", "max_timestamp", "first_sequence", "last_sequence", "batches", "records", "flags"]),
  markers: columns(given.markers, ["lane", "offset", "timestamp", "type", "coordinator_epoch"]),
  transactions: columns(given.transactions, ["lane", "first_offset", "last_offset", "outcome"]),
});

function columns(rows = [], names) {
  return Object.fromEntries(names.map((name, at) => [name, Float64Array.from(rows, (row) => row[at])]));
}

export function partition(given = {}) {
  return {
    topic: "orders",
    partition: 0,
    replica: "",
    compacted: false,
    log_start_offset: "100",
    log_end_offset: "200",
    high_watermark: null,
    last_stable_offset: null,
    min_timestamp: "5000",
    max_timestamp: "6000",
    leader_epochs: [],
    missing: [],
    columns: { id: "columns-0", offset_origin: "100", timestamp_origin: "5000", producer_id_origin: "7000", names: ["txn-a"], runs: 0, lanes: 0, merged: 0, lanes_left_out: 0, tables: {} },
    ...given,
  };
}

export function finding(given = {}) {
  return {
    fingerprint: "0123456789abcdef",
    code: "KA102",
    name: "old-duplicate",
    severity: "error",
    partition: 0,
    place: "orders-0 @ offset 120",
    producer_id: "7000",
    producer_epoch: 0,
    offset: "120",
    last_offset: "129",
    timestamp: "5200",
    message: "the batch at offset 120 repeats what was written",
    impact: "",
    ...given,
  };
}

/** Two producers: 7000 writes two transactions of one run each, 7001 one plain run; offsets from 100, times from 5000. */
export const twoProducers = () =>
  tables({
    lanes: [[0, 0, 0], [1, 3, -1]],
    runs: [
      [0, 0, 9, 0, 90, 0, 9, 2, 10, 1],
      [0, 20, 29, 200, 290, 10, 19, 2, 10, 1],
      [1, 11, 18, 110, 180, 0, 7, 1, 8, 0],
    ],
    markers: [[0, 10, 100, 1, 4], [0, 30, 300, 0, 4]],
    transactions: [[0, 0, 10, 1], [0, 20, 30, 2]],
  });
