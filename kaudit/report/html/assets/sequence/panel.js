// The panel beside the diagram: what clients, brokers and the coordinator hold after the chosen step.

import { TONES, element, pause, shape } from "./draw.js";
import { focusOf, stateOf, windowBefore, windowChange } from "./state.js";

export function drawPanel(page, panel, steps, place) {
  const step = steps[place];
  const state = stateOf(page, step);
  const focus = focusOf(page, steps, place);
  const parts = [heading(page, step, state), ...step.decisions.map((one) => decision(page, step, one))];
  parts.push(...memories(page, steps, place, state, focus));
  const before = place > 0 ? stateOf(page, steps[place - 1]) : null;
  const client = state.clients.find((one) => one.name === focus.client);
  if (client !== undefined) parts.push(clientSection(client, before?.clients.find((one) => one.name === client.name)));
  const concerned = state.partitions.filter((one) => focus.partitions.includes(one.name));
  for (const one of (concerned.length > 0 ? concerned : state.partitions).slice(0, 3)) {
    parts.push(partitionSection(one, before?.partitions.find((other) => other.name === one.name)));
  }
  for (const one of state.transactions) parts.push(transactionSection(one, step));
  if (page.unit === "attempt") {
    parts.push(element("section", {}, element("h3", {}, "What other releases answer"), element("code", {}, `${page.command} --explain ${step.number}`)));
  }
  panel.replaceChildren(...parts);
}

function heading(page, step, state) {
  const from = page.lanes[step.source].name;
  const to = page.lanes[step.target].name;
  const who = from === to ? from : `${from} \u2192 ${to}`;
  const when = [];
  if (step.at !== null) when.push(pause(step.at));
  if (step.sent_at !== null && step.at !== null && step.sent_at < step.at) when.push(`sent ${pause(step.at - step.sent_at)} before`);
  return element(
    "section",
    { class: "step" },
    element("h2", {}, `${page.unit === "step" ? "Step" : "Attempt"} ${step.number.toLocaleString("en")}`, element("span", { class: "faint" }, `${page.unit === "step" ? ` of ${page.steps.length.toLocaleString("en")}` : ""}${when.length > 0 ? `, ${when.join(", ")}` : ""}`)),
    element("p", { class: "who" }, who, tag(step.tone)),
    element("p", { class: "said" }, step.text),
    waiting(page, step, state),
  );
}

/** Why a request that has arrived is not handled in the same step. */
function waiting(page, step, state) {
  if (step.tone !== "request" || step.decisions.length > 0 || page.lanes[step.target].role !== "broker") return null;
  const name = page.lanes[step.target].name;
  const replicas = state.partitions.flatMap((one) => one.replicas);
  const process = replicas.find((replica) => `broker ${replica.broker}` === name)?.process;
  const text = process === "paused" ? `Not handled yet: ${name} is paused.` : "Not handled yet: a broker handles the requests of a connection one after the other.";
  return element("p", { class: "faint" }, text);
}

function tag(tone) {
  const text = TONES[tone];
  return text === "" ? null : element("span", { class: `tag tone-${tone}` }, text);
}

function decision(page, step, one) {
  const where = one.partition === "" ? "The coordinator" : `The leader of ${one.partition}`;
  const before = one.before === null ? null : page.windows[one.before];
  const after = one.after === null ? null : page.windows[one.after];
  const section = element("section", { class: "decision" }, element("h3", {}, step.source === step.target ? "What follows" : `${where} decides`), verdict(one));
  if (one.expected !== "") {
    section.append(pairs([["expected", one.expected], ["got", one.got]], "compare"));
  }
  section.append(element("p", { class: "rule" }, sentence(one.rule)));
  if (one.history !== "") section.append(element("p", { class: "history" }, one.history));
  if (before !== null && after !== null) section.append(windowStory(before, after, one));
  return section;
}

function sentence(text) {
  return text === "" ? "" : `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
}

function verdict(one) {
  const tone = { rejected: "refused", "connection-closed": "refused", duplicate: "duplicate", appended: "ok", ok: "ok" }[one.outcome] ?? "note";
  const name = { rejected: "refused", duplicate: "a duplicate: nothing is written", "connection-closed": "connection closed", "no-response": "no response" }[one.outcome] ?? one.outcome;
  return element("p", { class: "verdict" }, element("span", { class: `tag tone-${one.error === "" ? tone : "refused"}` }, name), one.error === "" ? null : element("code", {}, ` ${one.error}`));
}

/** The window before, what came, and the window after where that is another. */
function windowStory(before, after, one) {
  const change = windowChange(before, after);
  const same = change.gone.length === 0 && change.added.length === 0 && before.epoch === after.epoch;
  const rows = [["before", boxes(before, { matched: one.matched, leaving: change.gone })]];
  if (one.incoming !== "") rows.push(["came", element("span", { class: "box came" }, one.incoming)]);
  rows.push(["after", same ? element("span", { class: "faint" }, "unchanged") : boxes(after, { added: change.added })]);
  const figure = element("div", { class: "window" }, memoryTitle(after), ...rows.map(([name, content]) => element("div", { class: "window-row" }, element("span", { class: "label" }, name), content)));
  figure.append(following(after));
  return figure;
}

function memoryTitle(one) {
  const epoch = one.epoch < 0 ? "" : `, epoch ${one.epoch}`;
  const room = one.capacity === 1 ? "Only the last batch" : `Only the last ${one.capacity} batches`;
  return element(
    "div",
    {},
    element("h4", {}, `Remembered of producer id ${one.producer_id}${epoch}`),
    element("p", { class: "room" }, `${room}: a retry of an older one is not recognised.`),
  );
}

function following(one) {
  const parts = [];
  if (one.epoch >= 0) parts.push(`next sequence: ${one.slots.length === 0 ? 0 : one.next_sequence}`);
  if (one.transaction_from !== null) parts.push(`transaction open since offset ${one.transaction_from}`);
  if (one.coordinator_epoch >= 0) parts.push(`coordinator epoch ${one.coordinator_epoch}`);
  return element("p", { class: "following" }, parts.join(" \u00b7 "));
}

/** A range as it fits into a box. */
function short(range) {
  return range.replace(" to ", "\u2013");
}

/** The slots of a window, oldest first, empty ones too. */
function boxes(one, { matched = null, leaving = [], added = [] } = {}) {
  const list = element("ol", { class: "slots" });
  for (let place = 0; place < one.capacity - one.slots.length && one.capacity <= 5; place += 1) {
    list.append(element("li", { class: "box empty" }, element("span", { class: "visually-hidden" }, "empty")));
  }
  one.slots.forEach((slot, place) => {
    const gone = leaving.some((other) => other.sequences === slot.sequences && other.offsets === slot.offsets);
    const kind = [place === matched ? " matched" : "", gone ? " leaving" : "", added.includes(place) ? " added" : ""].join("");
    const note = place === matched ? "same" : gone ? "forgotten" : added.includes(place) ? "new" : "";
    list.append(
      element(
        "li",
        { class: `box${kind}` },
        element("b", {}, `seq ${short(slot.sequences)}`),
        element("span", {}, `offset ${short(slot.offsets)}`),
        note === "" ? null : element("i", {}, note),
      ),
    );
  });
  return list;
}

/** What leaders remember of the producer id, where no decision shows it already. */
function memories(page, steps, place, state, focus) {
  const step = steps[place];
  const shown = new Set(step.decisions.filter((one) => one.after !== null).map((one) => one.partition));
  const client = state.clients.find((one) => one.name === focus.client);
  const ids = new Set([focus.producerId, client?.producer_id].filter((id) => id !== null && id !== undefined && id !== "-1"));
  const about = state.windows.filter((one) => !shown.has(one.partition) && (focus.partitions.length === 0 || focus.partitions.includes(one.partition)));
  const mine = about.filter((one) => ids.has(one.producer_id));
  return (mine.length > 0 ? mine : about).slice(0, 3).map((one) => {
    const before = windowBefore(page, steps, place, one.partition, one.producer_id);
    const change = windowChange(before, one);
    const same = before === null || (change.gone.length === 0 && change.added.length === 0 && before.epoch === one.epoch);
    return element(
      "section",
      { class: "memory" },
      element("h3", {}, `What the leader of ${one.partition} remembers`),
      same ? element("div", { class: "window" }, memoryTitle(one), boxes(one), following(one)) : windowStory(before, one, { matched: null, incoming: "" }),
    );
  });
}

function clientSection(client, before) {
  const section = element("section", { class: "client" }, element("h3", {}, `Producer ${client.name}`, element("span", { class: "faint" }, client.process === "running" ? "" : ` ${client.process}`)));
  const facts = [];
  if (client.transactional_id !== null) facts.push(["transactional.id", client.transactional_id, false]);
  if (client.transaction_state !== null) facts.push(["its state", client.transaction_state, before?.transaction_state !== client.transaction_state]);
  if (client.producer_id !== "-1") {
    facts.push(["producer id", `${client.producer_id}, epoch ${client.epoch}`, before !== undefined && (before.producer_id !== client.producer_id || before.epoch !== client.epoch)]);
  }
  section.append(pairs(facts, "facts"));
  for (const one of client.partitions.slice(0, 3)) {
    const old = before?.partitions.find((other) => other.partition === one.partition);
    const name = client.partitions.length > 1 ? `${one.partition}: ` : "";
    section.append(
      batches(`${name}waiting`, one, one.queue, one.queued, old?.queue),
      batches(`${name}in flight`, one, one.in_flight, one.sent, old?.in_flight, client.max_in_flight),
    );
    const details = [];
    if (one.next_sequence >= 0) details.push(["next sequence", String(one.next_sequence), old !== undefined && old.next_sequence !== one.next_sequence]);
    if (one.last_acknowledged >= 0) details.push(["last acknowledged", String(one.last_acknowledged), old !== undefined && old.last_acknowledged !== one.last_acknowledged]);
    if (one.muted) details.push(["muted", "yes: one request at a time", old?.muted !== true]);
    if (one.unresolved) details.push(["unresolved", "a batch was given up: nothing new until the rest is answered", old?.unresolved !== true]);
    section.append(pairs(details, "facts"));
  }
  if (client.partitions.length > 3) section.append(element("p", { class: "faint" }, `${client.partitions.length - 3} more partitions`));
  return section;
}

function batches(name, about, list, count, old, room = 0) {
  const known = new Set((old ?? []).map(batchKey));
  const row = element("ol", { class: "slots small" });
  for (const one of list) {
    const kind = old !== undefined && !known.has(batchKey(one)) ? "box added" : "box";
    row.append(
      element(
        "li",
        { class: kind },
        about.next_sequence < 0 ? null : element("b", {}, one.sequences === "" ? "no seq yet" : `seq ${short(one.sequences)}`),
        element("span", {}, `#${short(one.records)}`),
        one.attempts > 0 ? element("i", {}, one.attempts === 1 ? "failed once" : `failed ${one.attempts}\u00d7`) : null,
      ),
    );
  }
  for (let place = list.length; place < Math.min(room, 6); place += 1) row.append(element("li", { class: "box empty" }, element("span", { class: "visually-hidden" }, "free")));
  if (count > list.length) row.append(element("li", { class: "more" }, `and ${count - list.length} more`));
  const total = room > 0 ? `${name} (${count} of ${room})` : `${name} (${count})`;
  return element("div", { class: "window-row" }, element("span", { class: "label" }, total), list.length === 0 && room === 0 ? element("span", { class: "faint" }, "none") : row);
}

function batchKey(one) {
  return `${one.records}/${one.epoch}/${one.sequences}/${one.attempts}`;
}

function partitionSection(one, before) {
  const leader = one.leader === null ? "no leader" : `led by broker ${one.leader}, leader epoch ${one.leader_epoch}`;
  const section = element("section", { class: "partition" }, element("h3", {}, `Log of ${one.name}`, element("span", { class: "faint" }, ` ${leader}`)));
  const most = Math.max(1, ...one.replicas.map((replica) => Number(replica.log_end)));
  const table = element("table", { class: "replicas" }, element("thead", {}, headRow(["replica", "", "log end", "high watermark"])));
  const body = element("tbody");
  for (const replica of one.replicas) {
    const old = before?.replicas.find((other) => other.broker === replica.broker);
    const roles = [replica.broker === one.leader ? "leader" : "", replica.in_sync ? "in ISR" : "not in ISR", replica.process === "running" ? "" : replica.process].filter((text) => text !== "");
    body.append(
      element(
        "tr",
        { class: replica.in_sync ? "" : "behind" },
        element("th", { scope: "row" }, `broker ${replica.broker}`, element("span", { class: `${replica.in_sync ? "faint" : "out"}${old !== undefined && old.in_sync !== replica.in_sync ? " changed" : ""}` }, ` ${roles.join(", ")}`)),
        element("td", { class: "bar-cell" }, logBar(replica, most)),
        changed("td", replica.log_end, old !== undefined && old.log_end !== replica.log_end),
        changed("td", replica.high_watermark, old !== undefined && old.high_watermark !== replica.high_watermark),
      ),
    );
  }
  table.append(body);
  section.append(table);
  const facts = [];
  if (one.min_insync_replicas > 1) facts.push(["min.insync.replicas", String(one.min_insync_replicas), false]);
  if (one.last_stable_offset !== null) facts.push(["last stable offset", one.last_stable_offset, before !== undefined && before !== null && before.last_stable_offset !== one.last_stable_offset]);
  section.append(pairs(facts, "facts"));
  return section;
}

function headRow(names) {
  return element("tr", {}, ...names.map((name) => (name === "" ? element("td") : element("th", { scope: "col" }, name))));
}

function changed(name, text, isNew) {
  return element(name, { class: isNew ? "number changed" : "number" }, text);
}

/** A replica's log as a bar: full up to the high watermark, hatched above it. */
function logBar(replica, most) {
  const wide = 110;
  const x = (offset) => (wide * Number(offset)) / most;
  const visible = Math.max(Math.min(Number(replica.high_watermark), Number(replica.log_end)), Number(replica.log_start));
  const bar = shape("svg", { class: "bar", width: wide + 2, height: 14, "aria-hidden": "true" });
  bar.append(
    shape("rect", { class: "bar-room", x: 1, y: 3, width: wide, height: 8 }),
    shape("rect", { class: "bar-above", x: 1 + x(visible), y: 3, width: Math.max(x(replica.log_end) - x(visible), 0), height: 8 }),
    shape("rect", { class: "bar-committed", x: 1 + x(replica.log_start), y: 3, width: Math.max(x(visible) - x(replica.log_start), 0), height: 8 }),
    shape("line", { class: "bar-mark", x1: 1 + x(visible), x2: 1 + x(visible), y1: 0, y2: 14 }),
  );
  return bar;
}

function transactionSection(one, step) {
  const facts = [
    ["state", one.status, false],
    ["producer id", `${one.producer_id}, epoch ${one.epoch}`, false],
  ];
  if (one.partitions.length > 0) facts.push(["partitions", one.partitions.join(", "), false]);
  if (one.started_at !== null && step.at !== null && one.partitions.length > 0) {
    facts.push(["open for", `${pause(Math.max(step.at - one.started_at, 0))} of ${pause(one.timeout_ms)}`, false]);
  }
  return element("section", { class: "transaction" }, element("h3", {}, `Transaction of ${one.transactional_id}`, element("span", { class: "faint" }, " at the coordinator")), pairs(facts, "facts"));
}

function pairs(list, kind) {
  const made = element("dl", { class: kind });
  for (const [name, value, isNew] of list) {
    made.append(element("div", {}, element("dt", {}, name), element("dd", isNew ? { class: "changed" } : {}, value)));
  }
  return list.length === 0 ? document.createDocumentFragment() : made;
}
