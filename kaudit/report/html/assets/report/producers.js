// The listing of producer ids, for `kaudit producers`.

import { atFirst, h, table } from "./dom.js";
import { count, counted } from "./format.js";
import { formatLink, START } from "./link.js";
import { linkTo } from "./overview.js";

const FIRST_ROWS = 200;

/** @param {any} page */
export function producersTable(page) {
  const byFingerprint = new Map(page.findings.map((/** @type {any} */ finding) => [finding.fingerprint, finding]));
  const cells = (/** @type {any} */ row) => [
    row.partition === null ? row.producer_id : h("a", { href: linkToProducer(page.partitions[row.partition], row.producer_id) }, row.producer_id),
    row.transactional_id ?? "-",
    row.partition === null ? "-" : page.partitions[row.partition].name,
    row.epochs,
    `${row.first_offset ?? "-"} to ${row.last_offset ?? "-"}`,
    count(row.batches),
    count(row.records),
    row.state.filter((/** @type {string[]} */ [, value]) => value !== "none").map((/** @type {string[]} */ [name, value]) => `${name} ${value}`).join(", "),
    h("span", {}, row.findings.flatMap((/** @type {string} */ fingerprint) => [findingLink(byFingerprint.get(fingerprint), fingerprint), " "])),
  ];
  const headings = ["producer id", "transactional id", "partition", "epochs", "offsets", "batches", "records", "state", "findings"];
  const rendered = (/** @type {any[]} */ rows) => table(headings, rows.map(cells), { numbers: [5, 6] });
  return [h("h2", {}, counted(page.producers.length, "producer id")), ...atFirst(page.producers, FIRST_ROWS, rendered)];
}

/** @param {any} row a partition replica @param {string} producer */
function linkToProducer({ topic, partition }, producer) {
  return formatLink({ ...START, view: "partition", topic, partition, producer });
}

/** @param {any} finding @param {string} fingerprint */
function findingLink(finding, fingerprint) {
  return finding ? h("a", { href: linkTo(finding) }, finding.code) : fingerprint;
}
