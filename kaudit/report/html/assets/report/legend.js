// What the shapes of the lanes mean, drawn by the painter that draws the lanes.

import { h } from "./dom.js";
import { paint } from "./painter.js";

/** @type {[string, any[]][]} name, and marks of one kind in a box of 34 by 16 */
const ENTRIES = [
  ["run of batches", [{ kind: "run", style: "run", x: 1, y: 3, width: 18, height: 10 }, { kind: "run", style: "run", x: 20, y: 3, width: 13, height: 10 }]],
  ["transactional", [{ kind: "run", style: "run-transactional", x: 1, y: 3, width: 32, height: 10 }]],
  ["several runs", [{ kind: "run", style: "coarse", x: 1, y: 3, width: 32, height: 10 }]],
  ["committed", [{ kind: "transaction", style: "transaction-committed", x: 1, y: 7, width: 27, height: 3 }, { kind: "marker", style: "marker-commit", x: 25, y: 1, width: 7, height: 14 }]],
  ["aborted", [{ kind: "transaction", style: "transaction-aborted", x: 1, y: 7, width: 25, height: 3 }, { kind: "marker", style: "marker-abort", x: 25, y: 1, width: 7, height: 14 }]],
  ["open transaction", [{ kind: "transaction", style: "transaction-open", x: 1, y: 7, width: 32, height: 3 }]],
  ["error", [{ kind: "finding", style: "finding-error", x: 10, y: 1, width: 14, height: 14 }]],
  ["warning", [{ kind: "finding", style: "finding-warning", x: 10, y: 1, width: 14, height: 14 }]],
  ["note", [{ kind: "finding", style: "finding-note", x: 10, y: 1, width: 14, height: 14 }]],
];
/** @type {[string, any[]][]} those that only an axis of offsets has */
const OFFSET_ENTRIES = [
  ["leader epoch", [{ kind: "epoch", style: "epoch-even", x: 1, y: 1, width: 16, height: 14 }, { kind: "epoch", style: "epoch-odd", x: 17, y: 1, width: 16, height: 14 }]],
  ["records lost", [{ kind: "lost", style: "lost", x: 1, y: 0, width: 32, height: 16 }]],
  ["missing offsets", [{ kind: "missing", style: "missing", x: 1, y: 1, width: 32, height: 14 }]],
  ["log start, log end", [{ kind: "line", style: "line-end", x: 16, y: 0, width: 2, height: 16 }]],
  ["high watermark", [{ kind: "line", style: "line-watermark", x: 16, y: 0, width: 2, height: 16 }]],
  ["last stable offset", [{ kind: "line", style: "line-stable", x: 16, y: 0, width: 2, height: 16 }]],
];

/** @param {"offset" | "time"} axis @param {Record<string, string>} colours */
export function legend(axis, colours) {
  const entries = axis === "offset" ? [...ENTRIES, ...OFFSET_ENTRIES] : ENTRIES;
  return h("ul", { class: "legend", "aria-label": "Legend" }, entries.map(([name, marks]) => h("li", {}, swatch(marks, colours), name)));
}

/** @param {any[]} marks @param {Record<string, string>} colours */
function swatch(marks, colours) {
  const ratio = globalThis.devicePixelRatio || 1;
  const canvas = h("canvas", { width: 34 * ratio, height: 16 * ratio, "aria-hidden": "true" });
  canvas.style.width = "34px";
  canvas.style.height = "16px";
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  paint(context, marks.map((mark) => ({ replica: 0, ...mark })), colours);
  return canvas;
}
