import assert from "node:assert/strict";
import { test } from "node:test";
import { finding, load, partition } from "./pages.js";

const { formatLink, parseLink, START } = await load("link");
const { ranked, shown, step } = await load("filters");
const { MOST_HITS, search } = await load("search");
const { prepared, replicaSets } = await load("data");

test("a place survives its link", () => {
  const places = [
    START,
    { ...START, view: "findings", severities: ["error", "note"], code: "KA1" },
    { ...START, view: "partition", topic: "a&b=c#d %\"<script>ü", partition: 12, axis: "time", from: -5n, to: 2n ** 63n - 1n, finding: "0123456789abcdef.2" },
    { ...START, view: "partition", topic: "", partition: 0, onlyTopic: "x", producer: "txn 1" },
  ];
  for (const place of places) assert.deepEqual(parseLink(formatLink(place)), place);
});

test("a link that makes no sense is as the start", () => {
  for (const hash of ["", "#", "#view=nonsense&axis=sideways&severity=all", "#from=9&to=1", "#from=1e9&to=x", "#partition=0x10", "#%E0%A4%A"]) assert.deepEqual(parseLink(hash), START, hash);
  assert.equal(parseLink("#topic=t").view, "partition");
});

test("n and p go round", () => {
  assert.deepEqual([step([2, 5, 9], null, 1), step([2, 5, 9], 5, 1), step([2, 5, 9], 9, 1), step([2, 5, 9], 3, 1)], [2, 9, 2, 5]);
  assert.deepEqual([step([2, 5, 9], null, -1), step([2, 5, 9], 2, -1), step([2, 5, 9], 6, -1)], [9, 9, 5]);
  assert.equal(step([], 1, 1), null);
});

test("errors come first, in their order", () => {
  assert.deepEqual(ranked(["note", "error", "warning", "error", "note"].map((severity) => finding({ severity }))), [1, 3, 2, 0, 4]);
});

test("filters are all to hold", () => {
  const partitions = [partition(), partition({ topic: "other" })];
  const none = { severities: [], code: "", onlyTopic: "", producer: "" };
  const passes = (filters, name) => shown(finding(), partitions, { ...none, ...filters }, name);
  assert.ok(passes({}));
  assert.ok(passes({ severities: ["error"], code: "ka1", onlyTopic: "orders", producer: "7000" }));
  assert.ok(passes({ code: "old-duplicate" }));
  assert.ok(passes({ producer: "TXN" }, "txn-a"));
  for (const filters of [{ severities: ["note"] }, { code: "KA2" }, { onlyTopic: "other" }, { producer: "700" }]) assert.ok(!passes(filters), JSON.stringify(filters));
  assert.ok(!shown(finding({ partition: null }), partitions, { ...none, onlyTopic: "orders" }));
});

const page = {
  partitions: [partition(), partition({ partition: 1, log_start_offset: "0", log_end_offset: "5000" })],
  findings: [finding(), finding({ code: "KA104", name: "sequence-gap", fingerprint: "fedcba9876543210", message: "lost" })],
};
const producers = [{ partition: 0, producerId: "150", name: "txn-a" }, { partition: 1, producerId: "7", name: null }];
const found = (text, current = 0) => search(text, { page, producers, current }).hits;

test("a number is a producer id and an offset", () => {
  assert.deepEqual(found("150").map(({ kind, partition: index }) => [kind, index]), [["lane", 0], ["offset", 0], ["offset", 1]]);
  assert.deepEqual(found("150", 1).map(({ kind, partition: index }) => [kind, index]), [["lane", 0], ["offset", 1], ["offset", 0]]);
  assert.deepEqual(found("199").map(({ partition: index }) => index), [0, 1]);
  assert.deepEqual(found("200").map(({ partition: index }) => index), [1]);
  assert.deepEqual(found("offset:7").map(({ kind }) => kind), ["offset"]);
  assert.deepEqual(found("producer: 7").map(({ kind }) => kind), ["lane"]);
});

test("text is a transactional id, a check, a fingerprint or part of a message", () => {
  assert.deepEqual(found("TXN").map(({ kind }) => kind), ["lane"]);
  assert.deepEqual(found("ka104").map(({ index }) => index), [1]);
  assert.deepEqual(found("sequence").map(({ index }) => index), [1]);
  assert.deepEqual(found("fedc").map(({ index }) => index), [1]);
  assert.deepEqual(found("repeats").map(({ index }) => index), [0]);
  assert.deepEqual([found(""), found("  "), found("code:"), found("(")], [[], [], [], []]);
});

test("too many hits are counted", () => {
  const many = Array.from({ length: 100 }, () => finding());
  const { hits, more } = search("KA102", { page: { ...page, findings: many }, producers: [], current: null });
  assert.deepEqual([hits.length, more], [MOST_HITS, 100 - MOST_HITS]);
});

test("findings of replicas have ids of their own, and replicas belong together", () => {
  const replicas = { partitions: [partition({ replica: "b1" }), partition({ partition: 1 }), partition({ replica: "b2" })], findings: [finding(), finding({ partition: 2 })] };
  assert.deepEqual(prepared(replicas).findings.map(({ id }) => id), ["0123456789abcdef", "0123456789abcdef.2"]);
  assert.deepEqual(replicaSets(replicas.partitions), [[0, 2], [1]]);
});
