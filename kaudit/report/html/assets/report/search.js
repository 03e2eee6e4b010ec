// What a reader types to where it leads: a producer id, a transactional id, an offset, a check's code, a fingerprint.

/**
 * @typedef {{kind: "finding", index: number, label: string, detail: string}
 *   | {kind: "lane", partition: number, producerId: string, name: string | null, label: string, detail: string}
 *   | {kind: "offset", partition: number, offset: bigint, label: string, detail: string}} Hit
 * @typedef {{partition: number, producerId: string, name: string | null}} Producer
 */

export const MOST_HITS = 30;
const FIELD = /^(producer|transactional|offset|code|check|finding):\s*(.*)$/i;

/**
 * Hits in the order of `current` partition first; at most MOST_HITS of them, and how many more there are.
 * @param {string} text `field:value`, or a value that any field may have
 * @param {{page: any, producers: Producer[], current: number | null}} where
 * @returns {{hits: Hit[], more: number}}
 */
export function search(text, { page, producers, current }) {
  const [, field = "", value = text] = FIELD.exec(text.trim()) ?? [];
  const wanted = value.trim();
  if (!wanted) return { hits: [], more: 0 };
  const lower = wanted.toLowerCase();
  const number = /^\d{1,19}$/.test(wanted);
  const asked = (/** @type {string[]} */ ...names) => !field || names.includes(field.toLowerCase());
  /** @type {Hit[]} */
  const hits = [];
  if (asked("producer", "transactional")) {
    for (const producer of nearFirst(producers, current)) {
      const byId = asked("producer") && producer.producerId === wanted;
      const byName = asked("transactional") && producer.name !== null && producer.name.toLowerCase().includes(lower);
      if (byId || byName) hits.push(laneHit(producer, page));
    }
  }
  if (number && asked("offset")) {
    /** @type {{partition: number, row: any}[]} */
    const rows = page.partitions.map((/** @type {any} */ row, /** @type {number} */ partition) => ({ partition, row }));
    nearFirst(rows, current).forEach(({ partition, row }) => {
      const offset = BigInt(wanted);
      if (row.log_end_offset === null || offset < BigInt(row.log_start_offset ?? 0) || offset >= BigInt(row.log_end_offset)) return;
      hits.push({ kind: "offset", partition, offset, label: `offset ${wanted}`, detail: row.name });
    });
  }
  page.findings.forEach((/** @type {any} */ finding, /** @type {number} */ index) => {
    const byCode = asked("code", "check") && (finding.code.toLowerCase().startsWith(lower) || finding.name.includes(lower));
    const byPrint = asked("finding") && lower.length >= 4 && finding.fingerprint.startsWith(lower);
    const byText = !field && !number && finding.message.toLowerCase().includes(lower);
    if (byCode || byPrint || byText) hits.push({ kind: "finding", index, label: `${finding.code} ${finding.name}`, detail: finding.place });
  });
  return { hits: hits.slice(0, MOST_HITS), more: Math.max(0, hits.length - MOST_HITS) };
}

/** @param {Producer} producer @param {any} page @returns {Hit} */
function laneHit({ partition, producerId, name }, page) {
  const label = name === null ? `producer ${producerId}` : `producer ${producerId} (${name})`;
  return { kind: "lane", partition, producerId, name, label, detail: page.partitions[partition].name };
}

/** @template {{partition: number}} T @param {T[]} items @param {number | null} current @returns {T[]} */
function nearFirst(items, current) {
  return [...items.filter((item) => item.partition === current), ...items.filter((item) => item.partition !== current)];
}
