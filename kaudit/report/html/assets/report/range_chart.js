// The whole partition in a narrow strip, replicas one above the other, and the window of the lanes in it.

import { h } from "./dom.js";
import { marksOf } from "./marks.js";
import { paint } from "./painter.js";
import { layoutOf } from "./rows.js";
import { xAxis } from "./axis.js";

const MOST_HEIGHT = 84; // pixels for the logs together

export class RangeChart {
  /** @param {(min: number, max: number) => void} chosen called with a new window */
  constructor(chosen) {
    this.chosen = chosen;
    this.host = h("div", { class: "range", "aria-hidden": "true" });
    /** @type {any} */
    this.plot = null;
    /** @type {any} */
    this.picture = null;
    /** @type {any} what show() was given last */
    this.view = null;
    /** @type {any} the picture with all findings on the logs */
    this.ofLogs = null;
    /** @type {import("./rows.js").Row[]} */
    this.rows = [];
    this.window = { min: 0, max: 1 };
    this.dragged = false;
    this.logHeight = 0;
    this.height = 0;
    new ResizeObserver(() => this.resize()).observe(this.host);
  }

  /** @param {import("./picture.js").Picture} picture @param {import("./lanes_chart.js").LanesChart["view"]} view */
  show(picture, view) {
    const replaced = this.picture !== picture || this.view?.colours !== view.colours;
    Object.assign(this, { picture, view });
    this.rows = picture.replicas.map((_, replica) => ({ kind: /** @type {const} */ ("log"), replica }));
    this.ofLogs = { ...picture, findings: picture.findings.map((placed) => ({ ...placed, lane: null })) };
    if (replaced) this.create();
    else this.plot.redraw(false, false);
  }

  create() {
    this.plot?.destroy();
    const { picture, view } = this;
    const axis = { ...xAxis(picture), stroke: view.colours.faint, grid: { show: false }, ticks: { stroke: view.colours.line, width: 1 } };
    this.logHeight = Math.max(9, Math.min(26, MOST_HEIGHT / picture.replicas.length));
    this.height = layoutOf(this.rows, picture.replicas.length, this.logHeight).total + axis.size;
    this.plot = new uPlot(
      {
        width: Math.max(200, this.host.clientWidth),
        height: this.height,
        padding: [0, 12, 0, 12],
        legend: { show: false },
        cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false } },
        scales: { x: { time: false }, y: { range: [0, 1] } },
        axes: [axis, { show: false }],
        series: [{}, { paths: () => null, points: { show: false } }],
        hooks: { setSelect: [() => this.selected()], draw: [() => this.draw()] },
      },
      [[picture.min, picture.max], [0, 1]],
      this.host,
    );
    this.plot.over.addEventListener("click", (/** @type {MouseEvent} */ event) => {
      if (this.dragged) return;
      const middle = this.plot.posToVal(event.clientX - this.plot.over.getBoundingClientRect().left, "x");
      const half = (this.window.max - this.window.min) / 2;
      this.chosen(middle - half, middle + half);
    });
    this.plot.over.addEventListener("mousedown", () => (this.dragged = false));
  }

  resize() {
    if (!this.plot || !this.host.clientWidth) return;
    this.plot.setSize({ width: this.host.clientWidth, height: this.height });
    // uPlot scales its selection with the plot, when it commits the new size: later than this call
    queueMicrotask(() => this.setWindow(this.window.min, this.window.max));
  }

  /** @param {number} min @param {number} max */
  setWindow(min, max) {
    this.window = { min, max };
    const [left, right] = [min, max].map((value) => this.plot.valToPos(value, "x"));
    this.plot.setSelect({ left, width: Math.max(3, right - left), top: 0, height: this.plot.over.clientHeight }, false);
  }

  selected() {
    const { left, width } = this.plot.select;
    if (width < 3) return;
    this.dragged = true;
    this.chosen(this.plot.posToVal(left, "x"), this.plot.posToVal(left + width, "x"));
  }

  draw() {
    const { ctx, bbox } = this.plot;
    const ratio = uPlot.pxRatio;
    const { min, max } = this.plot.scales.x;
    const size = { width: bbox.width / ratio, height: bbox.height / ratio };
    const marks = marksOf(this.ofLogs, this.rows, { min, max, ...size, top: 0, logHeight: this.logHeight, chosen: this.view.chosen, isShown: this.view.isShown });
    ctx.save();
    ctx.translate(bbox.left, bbox.top);
    ctx.scale(ratio, ratio);
    ctx.fillStyle = this.view.colours.panel;
    ctx.fillRect(0, 0, size.width, size.height);
    paint(ctx, marks, this.view.colours);
    ctx.restore();
  }
}
