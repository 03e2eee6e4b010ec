// The horizontal axis of both charts of a partition, for uPlot: ticks as exact offsets or as UTC times.

import { absolute, timeTicks } from "./format.js";

const DIGIT = 7.5; // pixels, at least, of a digit of a label
const LEAST_SPAN = 4; // offsets or ms: closer than this shows nothing new

/** @param {import("./picture.js").Picture} picture */
export function xAxis(picture) {
  const widest = picture.axis === "time" ? 13 : Math.max(...[picture.min, picture.max].map((end) => absolute(picture.origin, end).length));
  return {
    align: 1,
    space: Math.max(60, widest * DIGIT + 24),
    incrs: picture.axis === "time" ? TIME_STEPS : OFFSET_STEPS,
    size: picture.axis === "time" ? 44 : 30,
    values: (/** @type {any} */ plot, /** @type {number[]} */ ticks, /** @type {number} */ _, /** @type {number} */ __, /** @type {number} */ step) => {
      const labels = picture.axis === "time" ? timeTicks(ticks, step) : ticks.map((tick) => (Number.isInteger(tick) ? absolute(picture.origin, tick) : ""));
      // labels stand to the right of their ticks: none where the edge would cut it off
      const room = plot.bbox.width / uPlot.pxRatio + 12;
      return labels.map((label, at) => (plot.valToPos(ticks[at], "x") + longestLine(label) * DIGIT > room ? "" : label));
    },
  };
}

/** @param {string} label */
function longestLine(label) {
  return Math.max(...label.split("\n").map((line) => line.length));
}

const [SECOND, MINUTE, HOUR, DAY] = [1000, 60_000, 3_600_000, 86_400_000];
const TIME_STEPS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((n) => n * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((n) => n * MINUTE),
  ...[1, 2, 3, 6, 12].map((n) => n * HOUR),
  ...[1, 2, 7, 14, 30, 90, 180, 365, 3650, 36500, 365000, 3650000].map((n) => n * DAY),
];
const OFFSET_STEPS = Array.from({ length: 18 }, (_, power) => [1, 2, 5].map((n) => n * 10 ** power)).flat();

/**
 * A window that lies within the picture and is not narrower than its least span.
 * @param {{min: number, max: number}} picture @param {number} min @param {number} max @returns {[number, number]}
 */
export function within({ min: first, max: last }, min, max) {
  const span = Math.min(Math.max(max - min, LEAST_SPAN), last - first);
  const middle = (min + max) / 2;
  const start = Math.max(first, Math.min(middle - span / 2, last - span));
  return [start, start + span];
}
