// Which findings are shown, and the order in which n and p go through them.

/** From the least to the most severe. */
export const SEVERITIES = ["note", "warning", "error"];

/** @typedef {{severities: string[], code: string, onlyTopic: string, producer: string}} Filters */

/**
 * @param {any} finding @param {any[]} partitions @param {Filters} filters
 * @param {string | null} [name] the producer's transactional id
 */
export function shown(finding, partitions, { severities, code, onlyTopic, producer }, name = null) {
  const wanted = producer.trim().toLowerCase();
  return (
    (severities.length === 0 || severities.includes(finding.severity)) &&
    (!code || finding.code.startsWith(code.toUpperCase()) || finding.name === code.toLowerCase()) &&
    (!onlyTopic || (finding.partition !== null && partitions[finding.partition].topic === onlyTopic)) &&
    (!wanted || finding.producer_id === wanted || (name ?? "").toLowerCase().includes(wanted))
  );
}

/** Indexes of findings in the order they are shown and gone through: errors first. @param {{severity: string}[]} findings */
export function ranked(findings) {
  const rank = (/** @type {number} */ index) => SEVERITIES.indexOf(findings[index].severity);
  return [...findings.keys()].sort((one, other) => rank(other) - rank(one));
}

/**
 * The next of `indexes` after `current` in direction 1 or -1, around the end; the first or last if none is current.
 * @param {number[]} indexes ascending @param {number | null} current @param {1 | -1} direction @returns {number | null}
 */
export function step(indexes, current, direction) {
  if (!indexes.length) return null;
  if (direction > 0) return indexes.find((index) => current === null || index > current) ?? indexes[0];
  return indexes.findLast((index) => current !== null && index < current) ?? indexes[indexes.length - 1];
}
