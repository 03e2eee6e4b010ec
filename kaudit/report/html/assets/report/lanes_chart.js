// The lanes of one partition: uPlot has the axis, scales, drag-to-zoom and cursor; rows scroll natively.

import { h, fill } from "./dom.js";
import { markAt, marksOf } from "./marks.js";
import { paint } from "./painter.js";
import { layoutOf, replicaTag } from "./rows.js";
import { within, xAxis } from "./axis.js";

const NARROW = 600; // pixels: below, names take less room
const LEAST_HEIGHT = 320;
const BELOW = 62; // pixels for two lines of the legend
const CLICK = 4; // pixels between press and release

/**
 * @typedef {{
 *   window: (min: number, max: number) => void, hover: (mark: any, event: MouseEvent | null) => void,
 *   pick: (mark: any) => void, lane: (lane: import("./picture.js").Lane) => void, drawn: () => void,
 * }} Events
 */

export class LanesChart {
  /** @param {Events} events */
  constructor(events) {
    this.events = events;
    this.names = h("div", { class: "lane-names" });
    this.plotHost = h("div", { class: "lanes-plot" });
    this.frame = h("div", { class: "lanes-frame" }, this.names, this.plotHost);
    this.spacer = h("div", { class: "lanes-spacer" });
    this.scroller = h(
      "div",
      { class: "lanes", tabIndex: 0, role: "group", "aria-label": "Lanes of the producers. Arrow keys move, plus and minus zoom, question mark lists all keys.", onscroll: () => this.redraw() },
      this.frame,
      this.spacer,
    );
    /** @type {any} */
    this.plot = null;
    this.range = { min: 0, max: 1 };
    /** @type {any} */
    this.picture = null;
    /** @type {any} what show() was given last */
    this.view = null;
    /** @type {import("./rows.js").Row[]} */
    this.rows = [];
    this.layout = layoutOf([], 1);
    this.axisHeight = 0;
    this.pending = false;
    /** @type {{lane: import("./picture.js").Lane | null, replica: number} | null} what stays in view until the reader scrolls */
    this.revealed = null;
    for (const name of ["wheel", "pointerdown", "keydown"]) this.scroller.addEventListener(name, () => (this.revealed = null), { passive: true });
    /** @type {unknown[] | null} what the names were drawn for */
    this.namesDrawn = null;
    /** @type {import("./marks.js").Mark[]} */
    this.marks = [];
    /** @type {string | null} */
    this.highlighted = null;
    new ResizeObserver(() => this.resize()).observe(this.scroller);
  }

  /**
   * @param {import("./picture.js").Picture} picture @param {import("./rows.js").Row[]} rows
   * @param {{min: number, max: number, chosen: number | null, isShown: (finding: any) => boolean, colours: Record<string, string>}} view
   */
  show(picture, rows, view) {
    const replaced = this.picture !== picture || this.view?.colours !== view.colours;
    Object.assign(this, { picture, rows, view });
    this.layout = layoutOf(rows, picture.replicas.length);
    this.range = { min: view.min, max: view.max };
    if (replaced) this.create();
    this.resize();
    this.setWindow(view.min, view.max);
  }

  create() {
    this.plot?.destroy();
    const { picture, view } = this;
    const axis = { ...xAxis(picture), side: 0, stroke: view.colours.ink, grid: { stroke: view.colours.line, width: 1 }, ticks: { stroke: view.colours.line, width: 1 } };
    this.axisHeight = axis.size;
    this.plot = new uPlot(
      {
        width: 300,
        height: 300,
        padding: [0, 12, 0, 0],
        legend: { show: false },
        cursor: { y: false, points: { show: false }, drag: { x: true, y: false, dist: CLICK }, bind: { mousedown: unlessPanning } },
        scales: { x: { time: false }, y: { range: [0, 1] } },
        axes: [axis, { show: false }],
        series: [{}, { paths: () => null, points: { show: false } }],
        hooks: { setScale: [(/** @type {unknown} */ _, /** @type {string} */ key) => key === "x" && this.plot && this.windowChanged()], drawClear: [() => this.drawRows()], draw: [() => this.drawMarks()] },
      },
      [[picture.min, picture.max], [0, 1]],
      this.plotHost,
    );
    this.listen(this.plot.over);
  }

  /** @param {HTMLElement} over */
  listen(over) {
    let pressed = { x: 0, y: 0 };
    over.addEventListener("pointerdown", (event) => {
      pressed = { x: event.clientX, y: event.clientY };
      if (isPanning(event)) this.pan(over, event);
    });
    over.addEventListener("click", (event) => {
      if (Math.hypot(event.clientX - pressed.x, event.clientY - pressed.y) > CLICK) return;
      const mark = this.find(event);
      if (mark) this.events.pick(mark);
    });
    over.addEventListener("mousemove", (event) => this.events.hover(event.buttons ? null : this.find(event), event));
    over.addEventListener("mouseleave", () => this.events.hover(null, null));
    over.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
  }

  /** @param {MouseEvent} event */
  find(event) {
    const box = this.plot.over.getBoundingClientRect();
    return markAt(this.marks, event.clientX - box.left, event.clientY - box.top);
  }

  /** Sideways wheels and trackpads pan; with Ctrl (and pinching) the wheel zooms; otherwise rows scroll. @param {WheelEvent} event */
  wheel(event) {
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (event.ctrlKey || event.metaKey) {
      const box = this.plot.over.getBoundingClientRect();
      this.zoom(Math.exp(Math.sign(event.deltaY) * Math.min(0.4, Math.abs(event.deltaY) / 200)), (event.clientX - box.left) / box.width);
    } else if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
      this.move(sideways / this.plot.over.clientWidth);
    } else {
      return;
    }
    event.preventDefault();
  }

  /** @param {HTMLElement} over @param {PointerEvent} event */
  pan(over, event) {
    event.preventDefault();
    over.setPointerCapture(event.pointerId);
    const { min, max } = this.window();
    const drag = (/** @type {PointerEvent} */ moved) => {
      const share = ((event.clientX - moved.clientX) / over.clientWidth) * (max - min);
      this.setWindow(min + share, max + share);
    };
    const stop = () => over.removeEventListener("pointermove", drag);
    over.addEventListener("pointermove", drag);
    for (const name of ["pointerup", "pointercancel"]) over.addEventListener(name, stop, { once: true });
  }

  /** The window that was asked for last: uPlot's scale follows a little later. */
  window() {
    return this.range;
  }

  /** @param {number} min @param {number} max */
  setWindow(min, max) {
    const [from, to] = within(this.picture, min, max);
    this.range = { min: from, max: to };
    const { x } = this.plot.scales;
    if (x.min === from && x.max === to) this.redraw();
    else this.plot.setScale("x", this.range);
  }

  /** @param {number} share of the window, to the right */
  move(share) {
    const { min, max } = this.window();
    const by = (max - min) * share;
    this.setWindow(min + by, max + by);
  }

  /** @param {number} factor of the span: below 1 is closer @param {number} [share] the place that stays, from the left */
  zoom(factor, share = 0.5) {
    const { min, max } = this.window();
    const middle = min + (max - min) * share;
    const span = (max - min) * factor;
    this.setWindow(middle - span * share, middle + span * (1 - share));
  }

  /** uPlot set the scale: by itself after a drag or a double click, or through setWindow. */
  windowChanged() {
    const { min, max } = this.plot.scales.x;
    const [from, to] = within(this.picture, min, max);
    if (from !== min || to !== max) this.setWindow(from, to);
    else {
      this.range = { min, max };
      this.events.window(min, max);
    }
  }

  resize() {
    if (!this.plot || !this.scroller.clientWidth) return;
    const content = this.layout.total + this.axisHeight;
    // lanes end where the window does, so that the page itself need not be scrolled
    const above = this.scroller.getBoundingClientRect().top + globalThis.scrollY;
    const most = Math.max(LEAST_HEIGHT, globalThis.innerHeight - above - BELOW);
    const height = Math.min(content + 2, most);
    this.scroller.style.height = `${height}px`;
    const named = this.scroller.clientWidth < NARROW ? 116 : 230;
    this.names.style.width = `${named}px`;
    this.spacer.style.height = `${Math.max(0, content - this.scroller.clientHeight)}px`;
    this.frame.style.height = `${this.scroller.clientHeight}px`;
    this.plot.setSize({ width: Math.max(120, this.scroller.clientWidth - named), height: this.scroller.clientHeight });
    if (this.revealed) this.reveal(this.revealed.lane, this.revealed.replica);
    this.redraw();
  }

  redraw() {
    if (!this.plot || this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.plot.redraw(false, false);
    });
  }

  /** The part of the axis and of the rows in view. @returns {import("./marks.js").Window} */
  inView() {
    const { bbox, scales } = this.plot;
    const [width, height] = [bbox.width, bbox.height].map((size) => size / uPlot.pxRatio);
    return { min: scales.x.min, max: scales.x.max, width, top: this.scroller.scrollTop, height, chosen: this.view.chosen, isShown: this.view.isShown };
  }

  /** @param {(context: CanvasRenderingContext2D, width: number, height: number) => void} draw in CSS pixels from the plot's corner */
  onCanvas(draw) {
    const { ctx, bbox } = this.plot;
    const ratio = uPlot.pxRatio;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.translate(bbox.left, bbox.top);
    ctx.scale(ratio, ratio);
    draw(ctx, bbox.width / ratio, bbox.height / ratio);
    ctx.restore();
  }

  drawRows() {
    const { layout } = this;
    const top = this.scroller.scrollTop;
    this.onCanvas((context, width, height) => {
      for (let at = layout.rowAt(top); at < this.rows.length && layout.top(at) < top + height; at++) {
        const shown = this.rows[at];
        const chosen = shown.kind === "lane" && shown.lane.key === this.highlighted;
        if (!chosen && at % 2) continue;
        context.fillStyle = chosen ? this.view.colours.chosen : this.view.colours.panel;
        context.fillRect(0, layout.top(at) - top, width, layout.height(at));
      }
    });
  }

  drawMarks() {
    this.marks = marksOf(this.picture, this.rows, this.inView());
    this.onCanvas((context) => paint(context, this.marks, this.view.colours));
    this.drawNames();
    this.events.drawn();
  }

  drawNames() {
    const { layout } = this;
    const top = this.scroller.scrollTop;
    const height = this.scroller.clientHeight - this.axisHeight;
    const drawn = [this.rows, top, height, this.highlighted];
    if (drawn.every((part, at) => part === this.namesDrawn?.[at])) return;
    this.namesDrawn = drawn;
    this.names.style.top = `${this.axisHeight}px`;
    this.names.style.height = `${height}px`;
    const names = [];
    for (let at = layout.rowAt(top); at < this.rows.length && layout.top(at) < top + height; at++) {
      const name = this.nameOf(this.rows[at]);
      name.style.top = `${layout.top(at) - top}px`;
      name.style.height = `${layout.height(at)}px`;
      names.push(name);
    }
    fill(this.names, ...names);
  }

  /** @param {import("./rows.js").Row} row */
  nameOf(row) {
    const { replicas } = this.picture;
    const tags = replicas.map((/** @type {{name: string}} */ { name }, /** @type {number} */ number) => replicaTag(name, number));
    if (row.kind === "log") {
      const { name } = replicas[row.replica];
      const label = replicas.length > 1 ? `log of ${name}` : "log";
      return h("div", { class: "lane-name log", title: label }, h("span", { class: "id" }, replicas.length === 1 || tags[row.replica] === name ? label : `${tags[row.replica]}: ${name}`));
    }
    const strips = replicas.length > 1 ? tags.map((/** @type {string} */ tag) => h("span", {}, tag)) : [];
    const { lane } = row;
    const id = `${lane.producerId} epoch ${lane.epoch}`;
    const label = h("button", {
      type: "button",
      tabIndex: -1,
      class: "id",
      title: lane.name === null ? `producer ${id}` : `${lane.name}: producer ${id}`,
      onclick: () => this.events.lane(lane),
    });
    if (row.named) label.append(h("span", { class: "transactional" }, lane.name), " ");
    label.append(h("span", { class: "producer" }, id));
    const tagged = strips.length ? h("span", { class: `strips${strips.length > 4 ? " many" : ""}` }, strips) : null;
    return h("div", { class: `lane-name${lane.key === this.highlighted ? " chosen" : ""}${lane.name !== null && !row.named ? " continued" : ""}` }, label, tagged);
  }

  /** Scroll so that a lane, or the log of a replica, is in view. @param {import("./picture.js").Lane | null} lane @param {number} replica */
  reveal(lane, replica) {
    this.revealed = { lane, replica };
    const at = this.rows.findIndex((row) => (row.kind === "lane" ? row.lane === lane : lane === null && row.replica === replica));
    if (at < 0) return;
    const { layout } = this;
    const height = this.scroller.clientHeight - this.axisHeight;
    const top = this.scroller.scrollTop;
    if (layout.top(at) < top || layout.top(at + 1) > top + height) this.scroller.scrollTop = Math.max(0, layout.top(at) - height / 3);
  }
}

/** @param {MouseEvent} event */
function isPanning(event) {
  return event.shiftKey || event.button === 1 || /** @type {PointerEvent} */ (event).pointerType === "touch";
}

/** Leaves uPlot's drag-to-zoom to the plain left button. @param {unknown} _ @param {unknown} __ @param {(event: MouseEvent) => void} handler */
function unlessPanning(_, __, handler) {
  return (/** @type {MouseEvent} */ event) => {
    if (event.button === 0 && !event.shiftKey) handler(event);
    return null;
  };
}
