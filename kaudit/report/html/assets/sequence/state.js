// What the panel beside the diagram shows at a step: pure functions on the page's data, no document.

const PROBLEMS = new Set(["refused", "duplicate", "repeated", "lost", "fault"]);

/** Whether a step is one that a reader looks for. */
export function isProblem(step) {
  return PROBLEMS.has(step.tone) || step.decisions.some((decision) => decision.error !== "" || decision.matched !== null);
}

/** The steps of a partition, or all; those that name no partition belong to every one. */
export function visibleSteps(page, partition) {
  if (partition === "") return page.steps;
  const mine = page.steps.filter((step) => step.partitions.length === 0 || step.partitions.includes(partition));
  return mine.map((step) => (step.left_out === step.left_out_here ? step : { ...step, left_out: step.left_out_here }));
}

const MOST_LANES = 10;

/**
 * The lanes that take part in the steps, in the page's order, and for each of the page's lanes its place among them, -1
 * where it takes no part. More than ten are too many to distinguish: then all clients share one.
 */
export function usedLanes(page, steps) {
  const used = new Set();
  for (const step of steps) used.add(step.source).add(step.target);
  const shared = used.size > MOST_LANES;
  const lanes = [];
  let clients = -1;
  const places = page.lanes.map((lane, place) => {
    if (!used.has(place)) return -1;
    if (!shared || lane.role !== "client") return lanes.push(lane) - 1;
    if (clients < 0) clients = lanes.push({ name: "producers", role: "client" }) - 1;
    return clients;
  });
  return { lanes, places };
}

/** The partition to begin with: where many share the page, that of the first problem; else all. */
export function firstPartition(page, names) {
  if (page.unit === "step" || names.length < 2) return "";
  return page.steps.find((step) => isProblem(step) && step.partitions.length > 0)?.partitions[0] ?? "";
}

/** The next step, in direction 1 or -1, that is a problem; the same place where there is none. */
export function nextProblem(steps, place, direction) {
  for (let next = place + direction; next >= 0 && next < steps.length; next += direction) {
    if (isProblem(steps[next])) return next;
  }
  return place;
}

/**
 * What the panel is about: the client, partitions and producer id of the step, or of the last one before that had any.
 */
export function focusOf(page, steps, place) {
  const found = { client: null, partitions: [], producerId: null };
  for (let at = place; at >= 0; at -= 1) {
    const step = steps[at];
    if (found.client === null) {
      const lane = [step.source, step.target].map((index) => page.lanes[index]).find((one) => one.role === "client");
      if (lane !== undefined) found.client = lane.name;
    }
    if (found.partitions.length === 0) found.partitions = step.partitions;
    if (found.producerId === null) found.producerId = step.producer_id;
    if (found.client !== null && found.partitions.length > 0 && found.producerId !== null) break;
  }
  return found;
}

/** The state after a step, its parts looked up. */
export function stateOf(page, step) {
  return {
    clients: step.state.clients.map((place) => page.clients[place]),
    partitions: step.state.partitions.map((place) => page.partitions[place]),
    windows: step.state.windows.map((place) => page.windows[place]),
    transactions: step.state.transactions.map((place) => page.transactions[place]),
  };
}

/** The batches of `before` that `after` does not hold, and the places of those in `after` that are new. */
export function windowChange(before, after) {
  const key = (slot) => `${slot.sequences}@${slot.offsets}`;
  if (before === null || before.epoch !== after.epoch) {
    return { gone: before === null ? [] : before.slots, added: after.slots.map((_, place) => place) };
  }
  const old = new Set(before.slots.map(key));
  const now = new Set(after.slots.map(key));
  return {
    gone: before.slots.filter((slot) => !now.has(key(slot))),
    added: after.slots.map((_, place) => place).filter((place) => !old.has(key(after.slots[place]))),
  };
}

/** The window a producer id had before a step: that of the last step before which had one. */
export function windowBefore(page, steps, place, partition, producerId) {
  for (let at = place - 1; at >= 0; at -= 1) {
    const state = stateOf(page, steps[at]);
    const found = state.windows.find((one) => one.partition === partition && one.producer_id === producerId);
    if (found !== undefined) return found;
  }
  return null;
}
