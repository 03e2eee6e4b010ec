// Spans on an axis, lane by lane, and what of them is drawn at a given width: the level of detail.

/**
 * Spans sorted by lane and then start. `reach` is the greatest end so far in the lane, so it ascends and can be bisected even
 * where spans overlap. `row` is the span's row in its table. Spans of lane `n` are `lanes[n]` to `lanes[n + 1]`, exclusive.
 * @typedef {{start: Float64Array, end: Float64Array, reach: Float64Array, row: Int32Array, lanes: Int32Array}} Spans
 */

/**
 * @param {Float64Array} laneOf ascending
 * @param {number} lanes how many there are
 * @param {Float64Array} starts by row; NaN: the row has no place on this axis
 * @param {Float64Array} ends by row, inclusive
 * @param {number} [shift] added to both
 * @returns {Spans}
 */
export function spansOf(laneOf, lanes, starts, ends, shift = 0) {
  const rows = laneOf.length;
  const start = new Float64Array(rows);
  const end = new Float64Array(rows);
  const reach = new Float64Array(rows);
  const row = new Int32Array(rows);
  const offsets = new Int32Array(lanes + 1);
  let at = 0;
  for (let lane = 0, i = 0; lane < lanes; lane++) {
    const from = at;
    let ascending = true;
    for (; i < rows && laneOf[i] === lane; i++) {
      const value = starts[i] + shift;
      if (value !== value) continue;
      start[at] = value;
      end[at] = ends[i] + shift + 1;
      row[at] = i;
      if (at > from && value < start[at - 1]) ascending = false;
      at++;
    }
    if (!ascending) sortPart(start, end, row, from, at);
    for (let k = from; k < at; k++) reach[k] = k > from && reach[k - 1] > end[k] ? reach[k - 1] : end[k];
    offsets[lane + 1] = at;
  }
  return { start: start.subarray(0, at), end: end.subarray(0, at), reach: reach.subarray(0, at), row: row.subarray(0, at), lanes: offsets };
}

/** @param {Float64Array} start @param {Float64Array} end @param {Int32Array} row @param {number} from @param {number} to */
function sortPart(start, end, row, from, to) {
  const order = Array.from({ length: to - from }, (_, i) => from + i).sort((a, b) => start[a] - start[b] || a - b);
  const [starts, ends, rows] = [order.map((i) => start[i]), order.map((i) => end[i]), order.map((i) => row[i])];
  start.set(starts, from);
  end.set(ends, from);
  row.set(rows, from);
}

/**
 * Call `emit(start, end, first, stop)` for each bar of a lane between `min` and `max`; spans that begin within `step` of the
 * first are one bar of the spans `first` to `stop`, exclusive. Costs a bisection a bar, however many spans there are.
 * @param {Spans} spans @param {number} lane @param {number} min @param {number} max @param {number} step
 * @param {(start: number, end: number, first: number, stop: number) => void} emit
 */
export function eachBar(spans, lane, min, max, step, emit) {
  const stop = spans.lanes[lane + 1];
  let at = bisect(spans.reach, min, spans.lanes[lane], stop);
  while (at < stop && spans.start[at] <= max) {
    const next = bisect(spans.start, spans.start[at] + step, at + 1, stop);
    emit(spans.start[at], next === at + 1 ? spans.end[at] : spans.reach[next - 1], at, next);
    at = next;
  }
}

/**
 * The first index from `low` on whose value is at least `wanted`, `high` if there is none; values ascend.
 * @param {ArrayLike<number>} values @param {number} wanted @param {number} low @param {number} high
 */
export function bisect(values, wanted, low = 0, high = values.length) {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Sums of a column's values in span order: entry `i` is of the spans before `i`.
 * @param {Spans} spans @param {ArrayLike<number>} values by row
 */
export function runningSum({ row }, values) {
  const sums = new Float64Array(row.length + 1);
  for (let i = 0; i < row.length; i++) sums[i + 1] = sums[i] + values[row[i]];
  return sums;
}
