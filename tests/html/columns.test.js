import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateSync } from "node:zlib";
import { load } from "./pages.js";

const { inflate, unpack } = await load("columns");

const RUNS = { first_offset: "follows", last_offset: "from", min_timestamp: "delta", max_timestamp: "from", first_sequence: "continues", last_sequence: "spans", records: "spans", flags: "plain" };

// The encoding as columns.py describes it, forwards: what is stored is the value less its prediction.
function predicted(name, encoding, i, of) {
  const before = (column) => (i ? of[column][i - 1] : 0n);
  const length = (at) => of.last_offset[at] - of.first_offset[at];
  if (encoding === "delta") return before(name);
  if (encoding === "follows") return before("last_offset");
  if (encoding === "from") return of[name === "last_offset" ? "first_offset" : "min_timestamp"][i];
  if (encoding === "continues") return i ? of[name][i - 1] + length(i - 1) + 1n : 0n;
  if (encoding === "spans") return length(i) + (name === "last_sequence" ? of.first_sequence[i] : 1n);
  return 0n;
}

function pack(columns, encodings) {
  const fields = [];
  const planes = [];
  for (const [name, encoding] of Object.entries(encodings)) {
    const stored = columns[name].map((value, i) => BigInt.asIntN(64, value - predicted(name, encoding, i, columns)));
    const zigzag = stored.map((value) => BigInt.asUintN(64, value >= 0n ? value * 2n : -value * 2n - 1n));
    const width = Math.max(0, ...zigzag.map((value) => Math.ceil(value.toString(2).length / 8) * Number(value > 0n)));
    fields.push({ name, encoding, width });
    for (let plane = 0; plane < width; plane++) planes.push(...zigzag.map((value) => Number((value >> BigInt(8 * plane)) & 255n)));
  }
  return { bytes: Uint8Array.from(planes), tables: { runs: { rows: columns.first_offset.length, fields } } };
}

function randomRuns(rows, spread) {
  const random = () => BigInt(Math.floor(Math.random() * spread)); // a round trip: any numbers will do
  const runs = { first_offset: [], last_offset: [], min_timestamp: [], max_timestamp: [], first_sequence: [], last_sequence: [], records: [], flags: [] };
  let offset = 0n;
  for (let i = 0; i < rows; i++) {
    offset += random() - BigInt(spread) / 3n;
    const [length, time] = [random(), random()];
    const values = [offset, offset + length, time, time + random(), random(), random(), random(), random() % 4n];
    Object.keys(runs).forEach((name, at) => runs[name].push(values[at]));
    offset += length;
  }
  return runs;
}

for (const [name, spread] of [["bytes", 100], ["words", 2 ** 30], ["more than 32 bits", 2 ** 40]]) {
  test(`columns come back as they were: ${name}`, () => {
    const runs = randomRuns(200, spread);
    const { bytes, tables } = pack(runs, RUNS);
    const unpacked = unpack(bytes, tables).runs;
    for (const [field, values] of Object.entries(runs)) assert.deepEqual([...unpacked[field]], values.map(Number), field);
  });
}

test("numbers beyond 2**53 are rounded once, however many came before", () => {
  const edge = 2n ** 62n;
  const runs = { first_offset: [-edge, edge, 5n], last_offset: [-edge + 9n, edge + 9n, 6n] };
  const { bytes, tables } = pack(runs, { first_offset: "follows", last_offset: "from" });
  const unpacked = unpack(bytes, tables).runs;
  assert.deepEqual([...unpacked.first_offset], [-(2 ** 62), 2 ** 62, 5]);
  assert.equal(unpacked.last_offset[2], 6);
});

test("the bytes that columns.py documents", () => {
  // two rows: offsets 3 to 5 and 6 to 6; stored 3, 2 and (6-5)=1, 0; zigzag doubles them
  const tables = { runs: { rows: 2, fields: [{ name: "first_offset", encoding: "follows", width: 1 }, { name: "last_offset", encoding: "from", width: 1 }] } };
  const unpacked = unpack(Uint8Array.of(6, 2, 4, 0), tables).runs;
  assert.deepEqual([[...unpacked.first_offset], [...unpacked.last_offset]], [[3, 6], [5, 6]]);
});

test("data that end too early are an error, not zeros", () => {
  const tables = { runs: { rows: 2, fields: [{ name: "flags", encoding: "plain", width: 2 }] } };
  assert.throws(() => unpack(Uint8Array.of(1, 2, 3), tables), /end within runs/);
});

test("base64 of zlib, white space around it", async () => {
  const text = `\n${deflateSync(Uint8Array.of(1, 2, 250)).toString("base64")}\n`;
  assert.deepEqual([...(await inflate(text))], [1, 2, 250]);
  await assert.rejects(inflate(Buffer.from("no zlib").toString("base64")));
});
