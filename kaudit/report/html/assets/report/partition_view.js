// One partition with its replicas: the strip of the whole, the lanes, legend, tooltip and a table of what is in view.

import { choice, copyButton, fill, h, severityText, table } from "./dom.js";
import { absolute, count, counted, time } from "./format.js";
import { LanesChart } from "./lanes_chart.js";
import { RangeChart } from "./range_chart.js";
import { describe, laneText } from "./describe.js";
import { legend } from "./legend.js";
import { ORDERS, rowsOf } from "./rows.js";
import { pictureOf } from "./picture.js";

const NEAR = 12; // pixels between pointer and tooltip

/**
 * @typedef {{
 *   page: any, place: import("./link.js").Place, chosen: number | null, colours: Record<string, string>,
 *   isShown: (finding: any) => boolean,
 * }} State
 * @typedef {{
 *   window: (from: bigint, to: bigint, whole: boolean) => void, finding: (index: number) => void,
 *   change: (changes: Partial<import("./link.js").Place>) => void,
 * }} Actions
 */

export class PartitionView {
  /** @param {Actions} actions */
  constructor(actions) {
    this.actions = actions;
    this.order = "findings";
    /** @type {import("./picture.js").Picture} of the partition in view, once show() was called */
    this.picture = /** @type {any} */ (null);
    /** @type {State} */
    this.state = /** @type {any} */ (null);
    /** @type {import("./rows.js").Row[]} */
    this.rows = [];
    /** @type {string | null} what `picture` is of */
    this.key = null;
    /** @type {unknown[]} what the legend was drawn for */
    this.legendOf = [];
    /** @type {PerformanceMark | undefined} when lanes were first on the screen, for whoever measures */
    this.firstDrawn = undefined;
    /** @type {number | null} the finding that was scrolled to last */
    this.revealed = null;
    this.onlyFindings = false;
    this.head = h("div", { class: "partition-head" });
    this.controls = h("div", { class: "controls no-print", role: "group", "aria-label": "View" });
    this.legend = h("div", { class: "legend-host" });
    this.tooltip = h("div", { class: "tooltip", role: "status", hidden: true });
    this.tableHost = h("div", {});
    this.details = h("details", { ontoggle: () => this.fillTable() }, h("summary", {}, "What is in view, as a table"), this.tableHost);
    this.lanes = new LanesChart({
      window: (min, max) => this.windowChanged(min, max),
      hover: (mark, event) => this.hover(mark, event),
      pick: (mark) => this.pick(mark),
      lane: (lane) => this.highlight(lane),
      drawn: () => {
        this.firstDrawn ??= performance.mark("lanes");
        this.tableLater();
      },
    });
    document.addEventListener("keydown", () => this.hover(null, null));
    this.range = new RangeChart((min, max) => this.lanes.setWindow(min, max));
    this.element = h("section", { class: "partition" }, this.head, this.controls, this.range.host, this.lanes.scroller, this.legend, this.details, this.tooltip);
  }

  /** @param {import("./picture.js").Loaded[]} loaded @param {State} state */
  show(loaded, state) {
    const { place, page, colours } = state;
    const key = `${loaded.map(({ index }) => index).join()} ${place.axis}`;
    if (this.key !== key) {
      this.picture = pictureOf(loaded, place.axis, page.findings);
      this.key = key;
      this.lanes.scroller.scrollTop = 0;
    }
    this.state = state;
    this.showHead(loaded);
    this.showControls();
    const legendOf = [colours, place.axis];
    if (legendOf.some((part, at) => part !== this.legendOf[at])) fill(this.legend, legend(place.axis, colours));
    this.legendOf = legendOf;
    this.showLanes();
    const placed = this.picture.findings.find(({ index }) => index === state.chosen);
    if (placed && this.revealed !== state.chosen) this.lanes.reveal(placed.lane, placed.replica);
    this.revealed = state.chosen;
  }

  showLanes() {
    const { place, chosen, colours, isShown } = this.state;
    const picture = this.picture;
    this.rows = rowsOf(picture, { order: this.order, producer: place.producer, onlyFindings: this.onlyFindings });
    const [min, max] = place.from === null ? [picture.min, picture.max] : [Number(place.from - picture.origin), Number(/** @type {bigint} */ (place.to) - picture.origin)];
    const view = { min, max, chosen, isShown, colours };
    this.range.show(picture, view);
    this.lanes.show(picture, this.rows, view);
  }

  /** @param {import("./picture.js").Loaded[]} loaded */
  showHead(loaded) {
    const { row } = loaded[0];
    const facts = distinct(loaded.map(({ row: log }) => [log.replica, factsOf(log)]));
    const lacking = distinct(loaded.map(({ row: log }) => [log.replica, leftOut(log)])).filter(([, text]) => text);
    const lines = facts.map(([replicas, text]) => h("p", { class: "faint" }, loaded.length > 1 ? h("strong", {}, `${replicas.join(", ")}: `) : null, text));
    fill(
      this.head,
      h("h2", { class: "visually-hidden" }, `${row.topic}-${row.partition}`),
      lines.length > 2 ? h("details", {}, h("summary", {}, `Offsets and counts of ${counted(loaded.length, "replica")}`), lines) : h("div", {}, lines),
      ...lacking.map(([replicas, text]) => h("p", { class: "faint" }, lacking.length > 1 || replicas.length < loaded.length ? `${replicas.join(", ")}: ` : null, text)),
    );
  }

  showControls() {
    const { place } = this.state;
    const axis = (/** @type {"offset" | "time"} */ name) =>
      h("button", { type: "button", "aria-pressed": String(place.axis === name), onclick: () => this.actions.change({ axis: name, from: null, to: null }) }, name);
    fill(
      this.controls,
      h("span", { class: "joined", role: "group", "aria-label": "Horizontal axis" }, axis("offset"), axis("time")),
      h("span", { class: "joined" },
        h("button", { type: "button", title: "Zoom in (+)", "aria-label": "Zoom in", onclick: () => this.lanes.zoom(0.5) }, "+"),
        h("button", { type: "button", title: "Zoom out (-)", "aria-label": "Zoom out", onclick: () => this.lanes.zoom(2) }, "−"),
        h("button", { type: "button", title: "Show all (0)", onclick: () => this.whole() }, "all"),
      ),
      choice("Order of the lanes", this.order, Object.entries(ORDERS), (order) => {
        this.order = order;
        this.showLanes();
      }),
      h("label", {}, h("input", { type: "checkbox", checked: this.onlyFindings, onchange: (/** @type {any} */ event) => {
        this.onlyFindings = event.target.checked;
        this.showLanes();
      } }), " only lanes with findings"),
      copyButton(() => this.command(), "Copy as command"),
      copyButton(() => location.href, "Copy link"),
    );
  }

  whole() {
    this.lanes.setWindow(this.picture.min, this.picture.max);
  }

  /** The command that lists what is in view. */
  command() {
    const { place, page } = this.state;
    const { topic, partition } = this.picture.replicas[0].row;
    const parts = ["kaudit timeline", ...page.inputs, `--topic ${quoted(topic)}`, `--partition ${partition}`];
    const lane = this.picture.lanes.find(({ key }) => key === this.lanes.highlighted);
    if (lane) parts.push(`--producer-id ${lane.producerId}`);
    const { min, max } = this.lanes.window();
    if (place.axis === "time" && (min > this.picture.min || max < this.picture.max)) {
      parts.push(`--since ${instant(min)}`, `--until ${instant(max)}`);
    }
    return parts.join(" ");
  }

  /** @param {number} min @param {number} max */
  windowChanged(min, max) {
    this.range.setWindow(min, max);
    const { origin, min: first, max: last } = this.picture;
    this.actions.window(origin + BigInt(Math.floor(min)), origin + BigInt(Math.ceil(max)), min <= first && max >= last);
  }

  /** @param {import("./marks.js").Mark} mark */
  pick(mark) {
    if (mark.kind === "finding") this.actions.finding(mark.data[0]);
    else if (mark.stop !== undefined && mark.first !== undefined && mark.stop > mark.first + 1) this.lanes.zoom(0.25, (mark.x + mark.width / 2) / this.lanes.plot.over.clientWidth);
    else if (mark.row !== undefined) {
      const row = this.rows[mark.row];
      if (row.kind === "lane") this.highlight(row.lane);
    }
  }

  /** @param {import("./picture.js").Lane} lane */
  highlight(lane) {
    this.lanes.highlighted = this.lanes.highlighted === lane.key ? null : lane.key;
    this.lanes.redraw();
  }

  /** Show the first lane of a producer. @param {{producerId: string, name: string | null}} producer */
  find({ producerId, name }) {
    const lane = this.picture.lanes.find((candidate) => candidate.producerId === producerId && candidate.name === name);
    if (!lane) return;
    this.lanes.highlighted = lane.key;
    this.lanes.reveal(lane, 0);
    this.lanes.redraw();
  }

  /** Show an offset in the middle, closely. @param {bigint} offset */
  around(offset) {
    const at = Number(offset - this.picture.origin);
    const { min, max } = this.lanes.window();
    const half = Math.min(max - min, 200) / 2;
    this.lanes.setWindow(at - half, at + half);
  }

  /** Move a finding into view, at the present width. @param {any} finding */
  centreOn(finding) {
    const placed = this.picture.findings.find((candidate) => candidate.finding === finding);
    if (!placed || placed.at === null) return;
    const { min, max } = this.lanes.window();
    if (placed.at >= min && placed.at <= max) return;
    this.lanes.setWindow(placed.at - (max - min) / 2, placed.at + (max - min) / 2);
  }

  /** @param {any} finding */
  zoomTo(finding) {
    const placed = this.picture.findings.find((candidate) => candidate.finding === finding);
    if (!placed || placed.at === null) return;
    const span = Math.max(40, (placed.end - placed.at) * 6);
    this.lanes.setWindow(placed.at - span / 2, placed.at + span / 2);
    this.lanes.reveal(placed.lane, placed.replica);
  }

  /** @param {import("./marks.js").Mark | null} mark @param {MouseEvent | null} event */
  hover(mark, event) {
    this.tooltip.hidden = mark === null || event === null;
    this.lanes.scroller.classList.toggle("pointing", mark !== null);
    if (mark === null || event === null) return;
    const { title, facts } = describe(mark, this.picture, this.rows, this.state.page);
    fill(this.tooltip, h("strong", {}, title), ...facts.map(([name, value]) => h("div", {}, name ? h("span", { class: "faint" }, `${name} `) : null, value)));
    const { offsetWidth: width, offsetHeight: height } = this.tooltip;
    const left = event.clientX + NEAR + width > innerWidth ? event.clientX - NEAR - width : event.clientX + NEAR;
    const top = event.clientY + NEAR + height > innerHeight ? event.clientY - NEAR - height : event.clientY + NEAR;
    this.tooltip.style.left = `${Math.max(4, left)}px`;
    this.tooltip.style.top = `${Math.max(4, top)}px`;
  }

  tableLater() {
    clearTimeout(this.timer);
    if (this.details.open) this.timer = setTimeout(() => this.fillTable(), 250);
  }

  /** The lanes in view with what they hold within the window: for screen readers, and to copy from. */
  fillTable() {
    if (!this.details.open || !this.picture) return;
    const { origin, replicas, axis } = this.picture;
    const { min, max } = this.lanes.window();
    const [from, to] = [min, max].map((end) => (axis === "time" ? time(Math.round(end)) : absolute(origin, end)));
    const cells = new Map();
    for (const mark of this.lanes.marks) {
      if (mark.row === undefined || this.rows[mark.row]?.kind !== "lane") continue;
      const key = `${mark.row} ${mark.replica}`;
      if (!cells.has(key)) cells.set(key, { row: this.rows[mark.row], replica: mark.replica, runs: 0, records: 0, transactions: 0, aborts: 0, findings: [] });
      tally(cells.get(key), mark, replicas[mark.replica]);
    }
    const { page } = this.state;
    const rows = [...cells.values()].map(({ row, replica, runs, records, transactions, aborts, findings }) => [
      laneText(row.lane),
      ...(replicas.length > 1 ? [replicas[replica].name] : []),
      count(runs),
      count(records),
      count(transactions),
      count(aborts),
      h("span", {}, findings.flatMap((/** @type {number} */ index) => [h("button", { type: "button", class: "link", onclick: () => this.actions.finding(index) }, severityText(page.findings[index].severity, page.findings[index].code)), " "])),
    ]);
    const replicaHeading = replicas.length > 1 ? ["replica"] : [];
    fill(
      this.tableHost,
      h("p", {}, `${from} to ${to}: ${counted(rows.length, "lane")} of ${count(this.picture.lanes.length)} in view`),
      table(["producer", ...replicaHeading, "runs", "records", "transactions", "aborts", "findings"], rows),
    );
  }
}

/** @param {any} cell @param {import("./marks.js").Mark} mark @param {import("./picture.js").Replica} replica */
function tally(cell, mark, replica) {
  const [first, stop] = [mark.first ?? 0, mark.stop ?? 0];
  if (mark.kind === "run") {
    cell.runs += stop - first;
    cell.records += replica.records()[stop] - replica.records()[first];
  } else if (mark.kind === "transaction") cell.transactions += stop - first;
  else if (mark.kind === "marker") cell.aborts += replica.aborts[stop] - replica.aborts[first];
  else if (mark.kind === "finding") cell.findings.push(...mark.data);
}

/** Texts that several replicas share, once each with their names. @param {[string, string][]} texts @returns {[string[], string][]} */
function distinct(texts) {
  /** @type {Map<string, string[]>} */
  const same = new Map();
  for (const [replica, text] of texts) same.set(text, [...(same.get(text) ?? []), replica]);
  return [...same].map(([text, replicas]) => [replicas, text]);
}

/** @param {any} log */
function factsOf(log) {
  const parts = [
    log.log_start_offset === null ? null : `offsets ${log.log_start_offset} to ${log.log_end_offset}`,
    counted(log.records, "record"),
    counted(log.batches, "batch", "batches"),
    counted(log.producers, "producer id"),
    log.offsets,
    log.high_watermark === null ? null : `high watermark ${log.high_watermark}`,
    log.last_stable_offset === null ? null : `last stable offset ${log.last_stable_offset}`,
    log.compacted ? "compacted" : null,
  ];
  return parts.filter((part) => part !== null).join(" · ");
}

/** What the lanes do not show of a log, and why. @param {any} log */
function leftOut({ columns, producers }) {
  if (columns === null) return producers ? "The runs are not in this file." : "No producer ids: nothing was written by an idempotent producer, so there are no lanes.";
  const parts = [];
  if (columns.runs_merged) parts.push(`${count(columns.runs_merged)} of ${counted(columns.runs, "run")} are part of coarser bars`);
  for (const [number, what] of [[columns.lanes_left_out, "lane"], [columns.transactions_left_out, "committed transaction"], [columns.markers_left_out, "end marker"]]) {
    if (number) parts.push(`${counted(Number(number), String(what))} left out`);
  }
  return parts.length ? `To keep the file small: ${parts.join(", ")}.` : "";
}

/** A word for a shell. @param {string} text */
function quoted(text) {
  return /^[\w.,:/@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** @param {number} ms */
function instant(ms) {
  return new Date(Math.round(ms)).toISOString();
}
