// The page: toolbar, diagram and panel, and the keys.

import { badge, cross, drawDiagram, element, ownMark, shape } from "./draw.js";
import { ROW } from "./layout.js";
import { drawPanel } from "./panel.js";
import { firstPartition, nextProblem, visibleSteps } from "./state.js";

const page = JSON.parse(document.getElementById("page").textContent);
const app = document.getElementById("app");
const hasTime = page.steps.some((step) => step.at !== null);
const names = [...new Set(page.steps.flatMap((step) => step.partitions))];
const chosen = { partition: "", place: 0, toScale: hasTime };
let steps = page.steps;

const previous = button("\u2190 Previous", "Previous step (\u2190)", () => go(chosen.place - 1));
const next = button("Next \u2192", "Next step (\u2192)", () => go(chosen.place + 1));
const backward = button("\u2190 Problem", "Previous refusal, duplicate, loss or fault (p)", () => jump(-1));
const forward = button("Problem \u2192", "Next refusal, duplicate, loss or fault (n)", () => jump(1));
const scale = button("To scale", "Time to scale, or rows evenly spaced (t)", () => setScale(!chosen.toScale));
const theme = button("Light or dark", "Light or dark (d)", switchTheme);
const filter = partitionFilter();
const toolbar = element("div", { class: "toolbar", role: "toolbar", "aria-label": "Steps" }, previous, next, backward, forward, hasTime ? scale : null, filter, theme, legend());

const heads = element("div", { class: "heads", "aria-hidden": "true" });
const rows = element("ol", { class: "rows", role: "listbox", "aria-label": "Messages in order", tabindex: "0" });
const canvas = element("div", { class: "canvas" });
const diagram = element("div", { class: "diagram" }, heads, canvas);
const panel = element("section", { class: "panel", "aria-label": "State after the chosen step", tabindex: "0" });
const spoken = element("p", { class: "visually-hidden", "aria-live": "polite" });
app.append(toolbar, element("div", { class: "panes" }, diagram, panel), spoken);
app.hidden = false;
document.body.classList.add("with-scripts");

const view = { heads, canvas, rows, prefix, hasTime };
let drawn = null;

/** What stands before an attempt's text where partitions are mixed. */
function prefix(step) {
  return page.unit === "attempt" && chosen.partition === "" && names.length > 1 ? `${step.partitions.join(" ")} ` : "";
}

function button(text, title, action) {
  const made = element("button", { type: "button", title }, text);
  made.addEventListener("click", action);
  return made;
}

function partitionFilter() {
  if (names.length < 2) return null;
  const select = element("select", {}, element("option", { value: "" }, "all"), ...names.map((name) => element("option", { value: name }, name)));
  select.addEventListener("change", () => show(select.value, 0));
  return element("label", { class: "filter" }, "Partition ", select);
}

function legend() {
  const entry = (picture, text) => element("li", {}, picture, text);
  const arrow = (kind) => small(shape("line", { class: `arrow ${kind}`, x1: 2, y1: 9, x2: 34, y2: 9 }));
  const items = element(
    "ul",
    {},
    entry(arrow("tone-request arrow-request"), "a request arrives"),
    entry(arrow("tone-ok arrow-response"), "a response arrives"),
    entry(small(badge("refused", 18, 9)), "refused: the response is an error"),
    entry(small(badge("duplicate", 18, 9)), "a duplicate: answered with the offset it has, nothing is written"),
    entry(small(badge("repeated", 18, 9)), "written a second time: the log holds the same records already"),
    entry(small(cross(18, 9)), "lost on the way"),
    entry(arrow("tone-replication arrow-replication"), "a follower has fetched from the leader"),
    entry(small(ownMark("fault", 18, 9)), "a fault of the scenario, or an election"),
    entry(small(ownMark("note", 18, 9)), "what a participant did by itself"),
    entry(small(shape("path", { class: "break", d: "M2,12 L8,6 L14,12 L20,6 L26,12 L32,6" })), "a long pause, not to scale"),
    entry(small(shape("rect", { class: "bar-committed", x: 2, y: 5, width: 22, height: 8 }), shape("rect", { class: "bar-above", x: 24, y: 5, width: 10, height: 8 }), shape("line", { class: "bar-mark", x1: 24, x2: 24, y1: 2, y2: 16 })), "a replica's log up to the high watermark, and above it"),
    entry(element("span", { class: "box added sample" }, "new"), "changed in this step"),
    entry(element("span", { class: "box sample" }, "#7"), "the application's number of a record, from 0"),
  );
  const keys = element("p", {}, "Keys: \u2190 \u2192 one step, n p next and previous problem, Home End, t time to scale, d light or dark. To scale, a pause is as high as it is long; rows that would overlap are moved apart.");
  return element("details", { class: "legend" }, element("summary", {}, "Legend"), element("div", { class: "legend-body" }, items, keys));
}

function small(...content) {
  return shape("svg", { width: 36, height: 18, "aria-hidden": "true" }, ...content);
}

function draw() {
  drawn = drawDiagram(page, view, steps, chosen.toScale, diagram.clientWidth);
  scale.setAttribute("aria-pressed", String(chosen.toScale));
  mark();
}

function show(partition, place) {
  chosen.partition = partition;
  steps = visibleSteps(page, partition);
  chosen.place = Math.min(Math.max(place, 0), steps.length - 1);
  draw();
  choose(chosen.place);
}

function setScale(toScale) {
  if (!hasTime) return;
  chosen.toScale = toScale;
  draw();
  reveal();
}

function switchTheme() {
  const dark = globalThis.matchMedia("(prefers-color-scheme: dark)").matches;
  const now = document.documentElement.dataset.theme ?? (dark ? "dark" : "light");
  document.documentElement.dataset.theme = now === "dark" ? "light" : "dark";
}

function jump(direction) {
  go(nextProblem(steps, chosen.place, direction));
}

/** Choose a step, and bring diagram and panel into view where the page is longer than the screen. */
function go(place) {
  choose(place);
  const { top, bottom } = app.getBoundingClientRect();
  if (top < 0 || bottom > globalThis.innerHeight) app.scrollIntoView({ block: "start" });
}

function choose(place) {
  if (steps.length === 0) return;
  chosen.place = Math.min(Math.max(place, 0), steps.length - 1);
  const step = steps[chosen.place];
  mark();
  drawPanel(page, panel, steps, chosen.place);
  panel.scrollTop = 0;
  previous.disabled = chosen.place === 0;
  next.disabled = chosen.place === steps.length - 1;
  spoken.textContent = `${step.number}: ${step.text}. ${step.reason}`;
  const filtered = chosen.partition === "" ? "" : `&partition=${encodeURIComponent(chosen.partition)}`;
  globalThis.history.replaceState(null, "", `#step=${step.number}${filtered}`);
  reveal();
}

function mark() {
  for (const row of rows.querySelectorAll("[aria-selected=true]")) row.setAttribute("aria-selected", "false");
  const row = document.getElementById(`row-${chosen.place}`);
  row?.setAttribute("aria-selected", "true");
  rows.setAttribute("aria-activedescendant", `row-${chosen.place}`);
}

/** Scroll the chosen row into view, below the heads. */
function reveal() {
  const y = drawn.layout.ys[chosen.place] + heads.offsetHeight;
  const margin = 2 * ROW;
  if (y - margin < diagram.scrollTop + heads.offsetHeight) diagram.scrollTop = y - margin - heads.offsetHeight;
  else if (y + margin > diagram.scrollTop + diagram.clientHeight) diagram.scrollTop = y + margin - diagram.clientHeight;
}

rows.addEventListener("click", (event) => {
  const row = event.target.closest("[role=option]");
  if (row !== null) go(Number(row.dataset.place));
});

const KEYS = {
  ArrowRight: () => go(chosen.place + 1),
  ArrowDown: () => go(chosen.place + 1),
  ArrowLeft: () => go(chosen.place - 1),
  ArrowUp: () => go(chosen.place - 1),
  Home: () => go(0),
  End: () => go(steps.length - 1),
  PageDown: () => go(chosen.place + 10),
  PageUp: () => go(chosen.place - 10),
  n: () => jump(1),
  p: () => jump(-1),
  t: () => setScale(!chosen.toScale),
  d: switchTheme,
  Escape: () => toolbar.querySelector("details").removeAttribute("open"),
};
const SCROLLING = new Set(["ArrowDown", "ArrowUp", "PageDown", "PageUp", "Home", "End"]);

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("select, input") !== null) return;
  const action = KEYS[event.key];
  if (action === undefined || (panel.contains(event.target) && SCROLLING.has(event.key))) return;
  event.preventDefault();
  action();
});

globalThis.addEventListener("hashchange", fromAddress);
new ResizeObserver(() => draw()).observe(diagram);
globalThis.addEventListener("beforeprint", () => {
  drawn = drawDiagram(page, view, steps, chosen.toScale, 640);
});
globalThis.addEventListener("afterprint", draw);

/** Show the step, and the partition, that the address names. */
function fromAddress() {
  const wanted = new URLSearchParams(globalThis.location.hash.slice(1));
  const partition = wanted.get("partition") ?? "";
  const asked = wanted.has("step") || wanted.has("partition");
  const known = asked ? (names.includes(partition) ? partition : "") : firstPartition(page, names);
  const all = visibleSteps(page, known);
  const place = all.findIndex((step) => String(step.number) === wanted.get("step"));
  if (filter !== null) filter.querySelector("select").value = known;
  show(known, place < 0 ? 0 : place);
  if (asked) go(chosen.place);
}

fromAddress();
