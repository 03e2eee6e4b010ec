import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { load, moduleNames } from "./pages.js";

const { absolute, bytes, count, range, time, timeTicks } = await load("format");

test("every module loads without a page", async () => {
  for (const name of await moduleNames()) await load(name);
});

test("nothing is ever parsed as markup", async () => {
  for (const name of [...(await moduleNames()), "app"]) {
    const text = await readFile(new URL(`../../kaudit/report/html/assets/report/${name}.js`, import.meta.url), "utf8");
    assert.doesNotMatch(text, /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|setAttribute\("style"/, name);
  }
});

test("numbers", () => {
  assert.deepEqual([0, 999, 1000, 1234567, 12345678n].map(count), ["0", "999", "1,000", "1,234,567", "12,345,678"]);
  assert.deepEqual([0, 999, 1000, 12_345, 3.2e9, 9e20].map(bytes), ["0 B", "999 B", "1.0 kB", "12 kB", "3.2 GB", "900000 PB"]);
  assert.equal(absolute(9_007_199_254_740_993n, 2), "9007199254740995");
  assert.deepEqual([range(1, 1, 5n), range(1, 3)], ["6", "1 to 3"]);
});

test("times are UTC, and times that no calendar has are numbers", () => {
  assert.equal(time("1763790000123"), "2025-11-22 05:40:00.123 UTC");
  assert.deepEqual([time(-1), time(null)], ["no timestamp", "no timestamp"]);
  assert.equal(time("9223372036854775807"), "9223372036854775807 ms");
});

test("ticks are as fine as their step, with the date where it changes", () => {
  const noon = Date.UTC(2025, 10, 22, 12);
  assert.deepEqual(timeTicks([noon, noon + 3_600_000, noon + 43_200_000], 3_600_000), ["12:00\n2025-11-22", "13:00", "00:00\n2025-11-23"]);
  assert.deepEqual(timeTicks([noon + 5], 5), ["12:00:00.005\n2025-11-22"]);
  assert.deepEqual(timeTicks([noon, 1e18], 86_400_000), ["2025-11-22", ""]);
});
