import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { ROW, columnWidths, medianPause, rowLayout, startOf, yOf } from "../../kaudit/report/html/assets/sequence/layout.js";

/** Steps that arrive at these times, each sent one ms before. */
const at = (...times) => times.map((time) => ({ at: time, sent_at: time === null ? null : time - 1, left_out: 0 }));

describe("rowLayout", () => {
  it("gives every row its own height where time does not count", () => {
    const { ys, breaks } = rowLayout(at(0, 0, 5, 9_000), false);
    assert.deepEqual(ys.map((y) => y - ys[0]), [0, ROW, 2 * ROW, 3 * ROW]);
    assert.deepEqual(breaks, []);
  });

  it("is to scale where rows do not overlap", () => {
    const { ys, scale } = rowLayout(at(0, 10, 25, 35), true);
    assert.equal(ys[2] - ys[1], 15 * scale);
    assert.equal(ys[1] - ys[0], 10 * scale);
  });

  it("moves rows of one moment apart", () => {
    const { ys } = rowLayout(at(0, 0, 0, 10), true);
    assert.deepEqual([ys[1] - ys[0], ys[2] - ys[1]], [ROW, ROW]);
  });

  it("marks a long pause as a break that says how long it was", () => {
    const { ys, breaks } = rowLayout(at(0, 10, 20, 5_020, 5_030), true);
    assert.deepEqual(breaks.map((gap) => gap.ms), [5_000]);
    assert.equal(breaks[0].from, ys[2]);
    assert.equal(breaks[0].to, ys[3]);
    assert.ok(ys[3] - ys[2] < 5 * ROW);
  });

  it("leaves room where steps are left out", () => {
    const steps = at(null, null, null);
    steps[2].left_out = 40;
    const { ys, gaps } = rowLayout(steps, true);
    assert.ok(ys[2] - ys[1] > ROW);
    assert.deepEqual(gaps.map((gap) => gap.count), [40]);
    assert.ok(gaps[0].y > ys[1] && gaps[0].y < ys[2]);
  });

  it("counts a pause from the last known time", () => {
    const { ys, breaks } = rowLayout(at(0, 10, 20, null, 5_020, null, 5_030), true);
    assert.deepEqual(breaks.map((gap) => gap.ms), [5_000]);
    assert.equal(ys[3] - ys[2], ROW);
  });

  it("has nothing to lay out of no steps", () => {
    assert.deepEqual(rowLayout([], true).ys, []);
    assert.equal(medianPause([]), 0);
  });
});

describe("yOf and startOf", () => {
  const steps = at(0, 10, 10, 30);
  const layout = rowLayout(steps, true);

  it("puts a moment at the last row of its time, and between rows in proportion", () => {
    assert.equal(yOf(layout, 10), layout.ys[2]);
    assert.equal(yOf(layout, 20), (layout.ys[2] + layout.ys[3]) / 2);
    assert.ok(yOf(layout, -5) < layout.ys[0]);
    assert.equal(yOf(layout, 99), layout.ys[3]);
    const unknown = rowLayout(at(0, null, 10), true);
    assert.equal(yOf(unknown, 5), (unknown.ys[0] + unknown.ys[2]) / 2);
  });

  it("lets no arrow rise or lie flat that took time", () => {
    for (const toScale of [true, false]) {
      const laid = rowLayout(steps, toScale);
      steps.forEach((_, place) => assert.ok(startOf(laid, steps, place) < laid.ys[place]));
    }
  });

  it("draws flat what took no time, or is without one", () => {
    const flat = [{ at: 5, sent_at: 5, left_out: 0 }, { at: null, sent_at: null, left_out: 0 }];
    const laid = rowLayout(flat, true);
    assert.deepEqual(flat.map((_, place) => startOf(laid, flat, place)), laid.ys);
  });
});

describe("columnWidths", () => {
  it("fits few lanes into the width", () => {
    for (const width of [390, 820, 1280, 1920]) assert.equal(columnWidths(width, 3).width, width);
  });

  it("is wider than the screen where lanes would become too narrow, and leaves the texts their room", () => {
    const { width, lane, textFrom } = columnWidths(390, 30);
    assert.ok(width > 390);
    assert.ok(lane >= 40);
    assert.ok(width - textFrom >= 140);
  });
});
