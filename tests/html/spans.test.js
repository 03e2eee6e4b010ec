import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./pages.js";

const { bisect, eachBar, runningSum, spansOf } = await load("spans");

let seed = 1;
const random = (below) => (seed = (seed * 48271) % 2147483647) % below;

function randomSpans(lanes, rows) {
  const laneOf = Float64Array.from({ length: rows }, () => random(lanes)).sort();
  const starts = Float64Array.from({ length: rows }, () => random(10_000));
  const ends = starts.map((start) => start + random(300));
  return { laneOf, starts, ends, spans: spansOf(laneOf, lanes, starts, ends) };
}

const bars = (spans, lane, min, max, step) => {
  const found = [];
  eachBar(spans, lane, min, max, step, (...bar) => found.push(bar));
  return found;
};

test("spans of a lane are sorted by start, and every row is there once", () => {
  const { laneOf, starts, ends, spans } = randomSpans(7, 500);
  assert.deepEqual([...spans.row].sort((a, b) => a - b), [...laneOf.keys()]);
  for (let lane = 0; lane < 7; lane++) {
    for (let i = spans.lanes[lane]; i < spans.lanes[lane + 1]; i++) {
      assert.equal(laneOf[spans.row[i]], lane);
      assert.deepEqual([spans.start[i], spans.end[i]], [starts[spans.row[i]], ends[spans.row[i]] + 1]);
      if (i > spans.lanes[lane]) assert.ok(spans.start[i] >= spans.start[i - 1]);
    }
  }
});

test("every span that touches the window is in a bar that covers it, also where spans overlap", () => {
  for (let trial = 0; trial < 50; trial++) {
    const { spans } = randomSpans(3, 400);
    const [min, max, step] = [random(5000), 5000 + random(5000), 1 + random(60)];
    for (let lane = 0; lane < 3; lane++) {
      const drawn = bars(spans, lane, min, max, step);
      for (let i = spans.lanes[lane]; i < spans.lanes[lane + 1]; i++) {
        if (spans.end[i] <= min || spans.start[i] > max) continue;
        const own = drawn.filter(([, , first, stop]) => i >= first && i < stop);
        assert.equal(own.length, 1);
        assert.ok(own[0][0] <= spans.start[i] && own[0][1] >= spans.end[i]);
      }
      // as many bars as pixels at most, however many spans
      assert.ok(drawn.length <= (max - min) / step + 2 + (spans.end.length ? 1 : 0));
    }
  }
});

test("a bar of one span ends where the span does", () => {
  const spans = spansOf(Float64Array.of(0, 0), 1, Float64Array.of(0, 10), Float64Array.of(99, 19));
  assert.deepEqual(bars(spans, 0, 0, 100, 1), [[0, 100, 0, 1], [10, 20, 1, 2]]);
  assert.deepEqual(bars(spans, 0, 0, 100, 50), [[0, 100, 0, 2]]);
});

test("rows without a place are left out, and lanes without rows are empty", () => {
  const spans = spansOf(Float64Array.of(0, 2, 2), 3, Float64Array.of(1, NaN, 5), Float64Array.of(1, 1, 6), 100);
  assert.deepEqual([...spans.lanes], [0, 1, 1, 2]);
  assert.deepEqual([[...spans.start], [...spans.row]], [[101, 105], [0, 2]]);
});

test("sums are of the spans before", () => {
  const spans = spansOf(Float64Array.of(0, 0, 0), 1, Float64Array.of(9, 1, 5), Float64Array.of(9, 1, 5));
  assert.deepEqual([...runningSum(spans, [100, 1, 10])], [0, 1, 11, 111]);
});

test("bisection finds the first that is not less", () => {
  assert.deepEqual([0, 1, 2, 3, 9].map((wanted) => bisect([1, 2, 2, 4], wanted)), [0, 0, 1, 3, 4]);
});
