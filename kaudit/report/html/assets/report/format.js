// Numbers, times and sizes as text. Counts have thousands separators; offsets and ids have none, as in kaudit's messages.

/** @param {number | bigint | string} value */
export function count(value) {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** @param {number} number @param {string} one @param {string} [many] */
export function counted(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** An offset that is `relative` to an origin, exact. @param {bigint} origin @param {number} relative */
export function absolute(origin, relative) {
  return String(origin + BigInt(Math.round(relative)));
}

/** @param {number} first @param {number} last @param {bigint} [origin] */
export function range(first, last, origin = 0n) {
  return first === last ? absolute(origin, first) : `${absolute(origin, first)} to ${absolute(origin, last)}`;
}

const LIMIT_MS = 8.64e15; // of a JavaScript Date

/** ms since the epoch as UTC. @param {number | string | null} ms */
export function time(ms) {
  if (ms === null || Number(ms) === -1) return "no timestamp";
  if (!(Math.abs(Number(ms)) <= LIMIT_MS)) return `${ms} ms`;
  return new Date(Number(ms)).toISOString().replace("T", " ").replace("Z", " UTC");
}

/**
 * Ticks of a time axis: the clock only, as fine as `step` asks; the date where it changes.
 * @param {number[]} ticks ms since the epoch, ascending @param {number} step ms
 */
export function timeTicks(ticks, step) {
  let day = "";
  return ticks.map((tick) => {
    if (!(Math.abs(tick) <= LIMIT_MS)) return "";
    const [date, clock] = new Date(tick).toISOString().slice(0, -1).split("T");
    const short = step >= 60_000 ? clock.slice(0, 5) : step >= 1000 ? clock.slice(0, 8) : clock;
    const label = step >= 86_400_000 ? date : date === day ? short : `${short}\n${date}`;
    day = date;
    return label;
  });
}

const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"];

/** @param {number} size */
export function bytes(size) {
  let unit = 0;
  while (size >= 1000 && unit < UNITS.length - 1) {
    size /= 1000;
    unit++;
  }
  return `${unit && size < 10 ? size.toFixed(1) : Math.round(size)} ${UNITS[unit]}`;
}
