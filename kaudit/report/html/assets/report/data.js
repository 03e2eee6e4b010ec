// The page's model from its script elements, and the columns of partitions, unpacked when they are first shown.

import { inflate, unpack } from "./columns.js";

export const SCHEMA = "kaudit.page/1";

/** @param {Document} document */
export function readPage(document) {
  const page = JSON.parse(document.getElementById("page")?.textContent ?? "{}");
  if (page.schema !== SCHEMA) throw new Error(`this page holds ${page.schema}, its scripts read ${SCHEMA}`);
  return prepared(page);
}

/**
 * Give findings an `id` of their own, since replicas share fingerprints, and their partition's `row`; and partitions a `name`,
 * with the replica if there are several.
 * @param {any} page
 */
export function prepared(page) {
  const several = new Set(page.partitions.map((/** @type {any} */ { replica }) => replica)).size > 1;
  for (const row of page.partitions) row.name = `${row.topic}-${row.partition}${several && row.replica ? ` on ${row.replica}` : ""}`;
  const seen = new Map();
  for (const finding of page.findings) {
    const times = (seen.get(finding.fingerprint) ?? 0) + 1;
    seen.set(finding.fingerprint, times);
    finding.id = times === 1 ? finding.fingerprint : `${finding.fingerprint}.${times}`;
    finding.row = finding.partition === null ? null : page.partitions[finding.partition];
  }
  return page;
}

/** Replicas that are shown together: indexes by topic and partition, in the order of the page. @param {any[]} partitions @returns {number[][]} */
export function replicaSets(partitions) {
  const sets = new Map();
  partitions.forEach(({ topic, partition }, index) => {
    const key = JSON.stringify([topic, partition]);
    if (!sets.has(key)) sets.set(key, []);
    sets.get(key).push(index);
  });
  return [...sets.values()];
}

export class Columns {
  /** @param {any} page @param {(id: string) => string} textOf the text of a script element */
  constructor(page, textOf) {
    this.page = page;
    this.textOf = textOf;
    /** @type {Map<number, Promise<any>>} */
    this.unpacked = new Map();
  }

  /** @param {number} index of a partition replica @returns {Promise<import("./picture.js").Loaded>} */
  load(index) {
    const row = this.page.partitions[index];
    if (!this.unpacked.has(index)) this.unpacked.set(index, this.unpack(row.columns));
    return /** @type {Promise<any>} */ (this.unpacked.get(index)).then((tables) => ({ row, index, tables }));
  }

  /** @param {any} packed */
  async unpack(packed) {
    return packed === null ? null : unpack(await inflate(this.textOf(packed.id)), packed.tables);
  }

  /** All producers of the page, for the search. @returns {Promise<import("./search.js").Producer[]>} */
  async producers() {
    const found = new Map();
    for (let partition = 0; partition < this.page.partitions.length; partition++) {
      const { row, tables } = await this.load(partition);
      if (!tables) continue;
      const { producer_id: ids, name: names } = tables.lanes;
      const origin = BigInt(row.columns.producer_id_origin);
      for (let at = 0; at < ids.length; at++) {
        const producerId = String(origin + BigInt(ids[at]));
        const name = names[at] < 0 ? null : row.columns.names[names[at]];
        found.set(`${partition}:${producerId}:${name ?? ""}`, { partition, producerId, name });
      }
    }
    return [...found.values()];
  }
}
