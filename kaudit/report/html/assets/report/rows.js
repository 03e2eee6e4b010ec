// Which lanes are listed, in which order, and where a row is on the screen.

/**
 * @typedef {import("./picture.js").Lane} Lane
 * @typedef {{kind: "log", replica: number} | {kind: "lane", lane: Lane, named: boolean}} Row `named`: the first of its transactional id
 */

export const ORDERS = { findings: "with findings first", first: "by first offset", producer: "by producer id" };

const WEIGHT = { error: 3, warning: 2, note: 1 };

/**
 * One row for the log of each replica (on an axis of times, only for findings that have no lane), then the lanes; those of one transactional id stay together.
 * @param {import("./picture.js").Picture} picture
 * @param {{order: string, producer: string, onlyFindings: boolean}} choice
 * @returns {Row[]}
 */
export function rowsOf(picture, { order, producer, onlyFindings }) {
  const wanted = producer.trim().toLowerCase();
  const lanes = picture.lanes.filter((lane) => (!onlyFindings || lane.findings) && matches(lane, wanted));
  /** @type {Map<string, Lane[]>} */
  const groups = new Map();
  for (const lane of lanes) {
    const key = lane.name === null ? `id ${lane.producerId}` : `name ${lane.name}`;
    const group = groups.get(key);
    if (group) group.push(lane);
    else groups.set(key, [lane]);
  }
  const sorted = [...groups.values()].map((group) => group.sort((a, b) => a.first - b.first || byProducer(a, b)));
  const weight = new Map(sorted.map((group) => [group, Math.max(...group.map(weightOf))]));
  sorted.sort((a, b) => {
    if (order === "producer") return byProducer(a[0], b[0]);
    const heavier = order === "findings" ? (weight.get(b) ?? 0) - (weight.get(a) ?? 0) : 0;
    return heavier || a[0].first - b[0].first || byProducer(a[0], b[0]);
  });
  /** @type {Row[]} */
  const rows = [];
  picture.replicas.forEach((_, replica) => {
    const homeless = picture.findings.some((placed) => placed.replica === replica && placed.lane === null && placed.at !== null);
    if (picture.axis === "offset" || homeless) rows.push({ kind: "log", replica });
  });
  for (const group of sorted) group.forEach((lane, at) => rows.push({ kind: "lane", lane, named: lane.name !== null && at === 0 }));
  return rows;
}

/** @param {Lane} lane @param {string} wanted part of a transactional id, or a producer id; empty: every lane */
export function matches(lane, wanted) {
  return !wanted || lane.producerId === wanted || (lane.name ?? "").toLowerCase().includes(wanted);
}

/** @param {Lane} lane */
function weightOf(lane) {
  return lane.severity === null ? 0 : WEIGHT[/** @type {"error" | "warning" | "note"} */ (lane.severity)];
}

/** @param {Lane} a @param {Lane} b */
function byProducer(a, b) {
  const [left, right] = [BigInt(a.producerId), BigInt(b.producerId)];
  return left < right ? -1 : left > right ? 1 : a.epoch - b.epoch;
}

const LOG_HEIGHT = 26;
const LANE_MARGIN = 5;
const FEW_ROWS = 14;

/**
 * Where rows are, in pixels from the top of the first. A lane has one strip for each replica.
 * @param {Row[]} rows logs before lanes @param {number} replicas @param {number} [logHeight]
 */
export function layoutOf(rows, replicas, logHeight = LOG_HEIGHT) {
  const strip = replicas > 4 ? 9 : replicas > 1 ? 12 : rows.length > FEW_ROWS ? 16 : 26;
  const logs = rows.findIndex(({ kind }) => kind === "lane");
  const heads = logs < 0 ? rows.length : logs;
  const lane = replicas * strip + 2 * LANE_MARGIN;
  const top = (/** @type {number} */ at) => Math.min(at, heads) * logHeight + Math.max(0, at - heads) * lane;
  return {
    top,
    height: (/** @type {number} */ at) => (at < heads ? logHeight : lane),
    total: top(rows.length),
    rowAt: (/** @type {number} */ y) => Math.max(0, Math.floor(y < heads * logHeight ? y / logHeight : heads + (y - heads * logHeight) / lane)),
    /** The strip of a replica: its top and height; a log is a strip of its own. @param {number} at @param {number} replica */
    strip: (at, replica) => (at < heads ? { y: top(at) + logHeight / 9, height: (logHeight * 7) / 9 } : { y: top(at) + LANE_MARGIN + replica * strip + 1, height: strip - 2 }),
  };
}

/** What stands for a replica where there is little room: its name if that is short, else its number. @param {string} name @param {number} number */
export function replicaTag(name, number) {
  return name.length <= 4 ? name : String(number + 1);
}
