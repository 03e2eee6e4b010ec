import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { firstPartition, focusOf, isProblem, nextProblem, stateOf, usedLanes, visibleSteps, windowBefore, windowChange } from "../../kaudit/report/html/assets/sequence/state.js";

const window = (epoch, ...sequences) => ({ partition: "orders-0", producer_id: "7", epoch, slots: sequences.map((one) => ({ sequences: one, offsets: one })) });

const step = (changes) => ({
  source: 0,
  target: 1,
  tone: "request",
  partitions: [],
  producer_id: null,
  decisions: [],
  left_out: 0,
  left_out_here: 0,
  state: { clients: [], partitions: [], windows: [], transactions: [] },
  ...changes,
});

const page = {
  lanes: [{ name: "shop", role: "client" }, { name: "broker 1", role: "broker" }, { name: "broker 2", role: "broker" }, { name: "bank", role: "client" }],
  windows: [window(0, "0"), window(0, "0", "1")],
  clients: [],
  partitions: [],
  transactions: [],
  steps: [
    step({ partitions: ["orders-0"], producer_id: "7", state: { clients: [], partitions: [], windows: [0], transactions: [] } }),
    step({ source: 1, target: 2, tone: "replication", partitions: ["bills-0"] }),
    step({ source: 1, target: 0, tone: "refused", partitions: ["orders-0"], state: { clients: [], partitions: [], windows: [1], transactions: [] } }),
    step({ source: 2, target: 2, tone: "fault" }),
  ],
};

describe("steps", () => {
  it("of a partition are those that name it, and those that name none", () => {
    assert.deepEqual(visibleSteps(page, "bills-0"), [page.steps[1], page.steps[3]]);
    assert.equal(visibleSteps(page, ""), page.steps);
  });

  it("of a partition count what is left out of that partition", () => {
    const steps = [step({ partitions: ["orders-0"], left_out: 90, left_out_here: 3 })];
    assert.deepEqual(visibleSteps({ ...page, steps }, "orders-0").map((one) => one.left_out), [3]);
    assert.deepEqual(visibleSteps({ ...page, steps }, "").map((one) => one.left_out), [90]);
  });

  it("use the lanes that take part, in the page's order", () => {
    const names = (steps) => usedLanes(page, steps).lanes.map((lane) => lane.name);
    assert.deepEqual(names(page.steps), ["shop", "broker 1", "broker 2"]);
    assert.deepEqual(names([page.steps[3]]), ["broker 2"]);
    assert.deepEqual(usedLanes(page, page.steps).places, [0, 1, 2, -1]);
  });

  it("share one lane of clients where there are too many", () => {
    const lanes = [...Array(30).keys()].map((place) => ({ name: `p${place}`, role: "client" }));
    const many = { lanes: [...lanes, { name: "broker", role: "broker" }] };
    const { lanes: shown, places } = usedLanes(many, lanes.map((_, place) => step({ source: place, target: 30 })));
    assert.deepEqual(shown.map((lane) => lane.name), ["producers", "broker"]);
    assert.deepEqual([...new Set(places)], [0, 1]);
  });

  it("begin with the partition of the first problem where attempts of several are mixed", () => {
    assert.equal(firstPartition({ ...page, unit: "attempt" }, ["orders-0", "bills-0"]), "orders-0");
    assert.equal(firstPartition({ ...page, unit: "attempt" }, ["orders-0"]), "");
    assert.equal(firstPartition({ ...page, unit: "step" }, ["orders-0", "bills-0"]), "");
  });

  it("are problems when refused, lost, repeated or a fault, or when their request is refused", () => {
    assert.deepEqual(page.steps.map(isProblem), [false, false, true, true]);
    assert.ok(isProblem(step({ decisions: [{ error: "OUT_OF_ORDER_SEQUENCE_NUMBER", matched: null }] })));
    assert.ok(isProblem(step({ decisions: [{ error: "", matched: 0 }] })));
    assert.ok(!isProblem(step({ decisions: [{ error: "", matched: null }] })));
  });

  it("lead from problem to problem and stay at the last one", () => {
    assert.equal(nextProblem(page.steps, 0, 1), 2);
    assert.equal(nextProblem(page.steps, 3, 1), 3);
    assert.equal(nextProblem(page.steps, 3, -1), 2);
    assert.equal(nextProblem(page.steps, 2, -1), 2);
  });
});

describe("the panel", () => {
  it("stays with the last client and producer id where a step has none", () => {
    assert.deepEqual(focusOf(page, page.steps, 1), { client: "shop", partitions: ["bills-0"], producerId: "7" });
    assert.deepEqual(focusOf(page, page.steps, 3), { client: "shop", partitions: ["orders-0"], producerId: "7" });
  });

  it("is about nothing where nothing came before", () => {
    assert.deepEqual(focusOf(page, [page.steps[3]], 0), { client: null, partitions: [], producerId: null });
  });

  it("looks up the state of a step", () => {
    assert.deepEqual(stateOf(page, page.steps[2]).windows, [page.windows[1]]);
  });

  it("finds the window before a step past steps without one", () => {
    assert.equal(windowBefore(page, page.steps, 2, "orders-0", "7"), page.windows[0]);
    assert.equal(windowBefore(page, page.steps, 2, "orders-0", "8"), null);
    assert.equal(windowBefore(page, page.steps, 0, "orders-0", "7"), null);
  });
});

describe("windowChange", () => {
  it("names the batch that left and the one that came", () => {
    const change = windowChange(window(0, "0", "1", "2", "3", "4"), window(0, "1", "2", "3", "4", "5"));
    assert.deepEqual(change.gone.map((slot) => slot.sequences), ["0"]);
    assert.deepEqual(change.added, [4]);
  });

  it("replaces everything at a new epoch", () => {
    const change = windowChange(window(0, "0", "1"), window(1, "0"));
    assert.deepEqual(change.gone.map((slot) => slot.sequences), ["0", "1"]);
    assert.deepEqual(change.added, [0]);
  });

  it("is empty where nothing changed, and all is new where nothing was known", () => {
    assert.deepEqual(windowChange(window(0, "3"), window(0, "3")), { gone: [], added: [] });
    assert.deepEqual(windowChange(null, window(0, "3")).added, [0]);
  });
});
