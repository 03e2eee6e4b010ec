// The diagram itself: heads, lanes, arrows, and a list of rows to choose from.

import { ROW, columnWidths, rowLayout, startOf } from "./layout.js";
import { usedLanes } from "./state.js";

const SVG = "http://www.w3.org/2000/svg";
const HEAD = 7;

/** An element with attributes and children; text is text, never markup. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.filter((child) => child !== null));
  return made;
}

export function shape(name, attributes, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export function pause(ms) {
  return ms >= 10_000 ? `${(ms / 1000).toLocaleString("en", { maximumFractionDigits: 1 })} s` : `${ms.toLocaleString("en")} ms`;
}

/** Fill `view.canvas` and `view.heads` with the steps; returns the places of everything. */
export function drawDiagram(page, view, steps, toScale, width) {
  const { lanes, places } = usedLanes(page, steps);
  const columns = columnWidths(width, lanes.length);
  const layout = rowLayout(steps, toScale);
  const middles = places.map((place) => columns.time + columns.lane * (place + 0.5));
  drawHeads(page, view, lanes, columns);
  view.canvas.style.height = `${layout.height}px`;
  view.canvas.style.width = view.heads.style.width = `${columns.width}px`;
  view.canvas.style.setProperty("--text-from", `${columns.textFrom + 10}px`);
  view.canvas.style.setProperty("--time-to", `${columns.time - 8}px`);
  const picture = shape("svg", { width: columns.textFrom, height: layout.height, "aria-hidden": "true" });
  for (const middle of new Set(middles.filter((_, lane) => places[lane] >= 0))) {
    picture.append(shape("line", { class: "lane", x1: middle, x2: middle, y1: 0, y2: layout.height }));
  }
  for (const gap of layout.breaks) drawBreak(picture, gap, columns);
  steps.forEach((step, place) => picture.append(...drawStep(step, place, steps, layout, middles)));
  view.rows.replaceChildren(...steps.map((step, place) => row(page, step, steps[place - 1], layout.ys[place], place, view)));
  const gaps = layout.gaps.map((gap) => {
    const note = element("p", { class: "gap" }, `${gap.count.toLocaleString("en")} left out`);
    note.style.top = `${gap.y - 10}px`;
    return note;
  });
  view.canvas.replaceChildren(picture, ...gaps, view.rows);
  return { layout, columns };
}

function drawHeads(page, view, lanes, columns) {
  const cells = lanes.map((lane, place) => {
    const { name, role } = lane;
    const long = name.length * 8 > columns.lane ? " long" : "";
    const cell = element("div", { class: `head role-${role}${long}`, title: name }, element("span", {}, name));
    cell.style.left = `${columns.time + columns.lane * place}px`;
    cell.style.width = `${columns.lane}px`;
    return cell;
  });
  const time = element("div", { class: "head time" }, view.hasTime ? "ms" : page.unit);
  time.style.left = "0px";
  time.style.width = `${columns.time - 8}px`;
  const text = element("div", { class: "head text" }, "message");
  text.style.left = `${columns.textFrom + 10}px`;
  view.heads.replaceChildren(time, ...cells, text);
}

function drawBreak(picture, gap, columns) {
  const middle = (gap.from + gap.to) / 2;
  const left = columns.time - 6;
  let path = `M${left},${middle + 3}`;
  for (let x = left, up = true; x < columns.textFrom; x += 6, up = !up) path += ` L${x + 6},${middle + (up ? -3 : 3)}`;
  picture.append(
    shape("rect", { class: "break-ground", x: left, y: middle - 4, width: columns.textFrom - left, height: 8 }),
    shape("path", { class: "break", d: path }),
    shape("text", { class: "break-text", x: columns.time - 10, y: middle + 4 }, pause(gap.ms)),
  );
}

function drawStep(step, place, steps, layout, middles) {
  const from = middles[step.source];
  const to = middles[step.target];
  const y = layout.ys[place];
  const kind = `tone-${step.tone} arrow-${step.arrow}`;
  if (step.source === step.target) return [ownMark(step.tone, from, y)];
  const top = startOf(layout, steps, place);
  if (step.tone === "lost") {
    const x = (from + to) / 2;
    const middle = (top + y) / 2;
    return [shape("line", { class: `arrow ${kind}`, x1: from, y1: top, x2: x, y2: middle }), cross(x, middle)];
  }
  const angle = Math.atan2(y - top, to - from);
  const tip = [to - HEAD * Math.cos(angle - 0.45), y - HEAD * Math.sin(angle - 0.45)];
  const other = [to - HEAD * Math.cos(angle + 0.45), y - HEAD * Math.sin(angle + 0.45)];
  const parts = [
    shape("line", { class: `arrow ${kind}`, x1: from, y1: top, x2: to, y2: y }),
    shape("path", { class: `tip ${kind}`, d: `M${to},${y} L${tip} L${other} z` }),
  ];
  if (step.tone === "refused") parts.push(badge("refused", (from + to) / 2, (top + y) / 2));
  if (step.tone === "duplicate" || step.tone === "repeated") parts.push(badge(step.tone, (from + to) / 2, (top + y) / 2));
  return parts;
}

/** What stands on a lane: a lightning for a fault, a dot for what a participant did by itself. */
export function ownMark(tone, x, y) {
  if (tone === "refused") return badge("refused", x, y);
  if (tone !== "fault") return shape("circle", { class: `mark tone-${tone}`, cx: x, cy: y, r: 5 });
  return shape("path", { class: "mark tone-fault", d: `M${x + 2},${y - 9} L${x - 6},${y + 2} L${x},${y + 2} L${x - 2},${y + 9} L${x + 6},${y - 2} L${x},${y - 2} z` });
}

export function cross(x, y) {
  return shape("path", { class: "cross tone-lost", d: `M${x - 5},${y - 5} L${x + 5},${y + 5} M${x + 5},${y - 5} L${x - 5},${y + 5}` });
}

/** Shapes that distinguish tones without colour: a bar in a disc, two bars, a plus. */
export function badge(tone, x, y) {
  const paths = {
    refused: `M${x - 4},${y} L${x + 4},${y}`,
    duplicate: `M${x - 4},${y - 2} L${x + 4},${y - 2} M${x - 4},${y + 2} L${x + 4},${y + 2}`,
    repeated: `M${x - 4},${y} L${x + 4},${y} M${x},${y - 4} L${x},${y + 4}`,
  };
  return shape("g", { class: `badge tone-${tone}` }, shape("circle", { cx: x, cy: y, r: 7 }), shape("path", { d: paths[tone] }));
}

function row(page, step, before, y, place, view) {
  const same = before !== undefined && before.at === step.at && step.at !== null;
  const time = view.hasTime ? (step.at?.toLocaleString("en") ?? "") : step.number.toLocaleString("en");
  const names = `${page.lanes[step.source].name} to ${page.lanes[step.target].name}`;
  const who = step.source === step.target ? page.lanes[step.source].name : names;
  const why = step.reason === "" ? "" : `: ${step.reason}`;
  const made = element(
    "li",
    { class: `row tone-${step.tone}`, id: `row-${place}`, role: "option", "aria-selected": "false", title: `${who}\n${step.text}${why}` },
    element("span", { class: same ? "time same" : "time" }, time),
    element("span", { class: "visually-hidden" }, ` ${who}: ${TONES[step.tone]}: `),
    element("span", { class: "text" }, `${view.prefix(step)}${PREFIXES[step.tone] ?? ""}${step.text}`, step.reason === "" ? null : element("span", { class: "reason" }, ` ${step.reason}`)),
  );
  made.dataset.place = String(place);
  made.style.top = `${y - ROW / 2}px`;
  return made;
}

export const TONES = {
  request: "arrives",
  ok: "answered",
  duplicate: "duplicate, nothing written",
  refused: "refused",
  lost: "never arrives",
  repeated: "written a second time",
  replication: "replicated",
  note: "",
  fault: "fault",
};
export const PREFIXES = { lost: "lost: " };
