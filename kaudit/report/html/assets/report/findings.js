// The list of findings with its filters, and one finding in full.

import { choice, commandLine, copyButton, fill, h, severityText, SHAPES, table } from "./dom.js";
import { count, counted, time } from "./format.js";
import { linkTo, shortPlace } from "./overview.js";

const MOST_ROWS = 500;

/** @param {any} page @param {number[]} indexes those that the filters leave */
export function findingsTable(page, indexes) {
  const rows = indexes.slice(0, MOST_ROWS).map((index) => {
    const finding = page.findings[index];
    return [severityText(finding.severity), h("a", { href: linkTo(finding) }, `${finding.code} ${finding.name}`), shortPlace(finding), finding.message, finding.impact];
  });
  const more = indexes.length - MOST_ROWS;
  return [
    h("p", { "aria-live": "polite" }, `${counted(indexes.length, "finding")} of ${count(page.findings.length)}`),
    table(["severity", "check", "where", "what", "impact"], rows),
    more > 0 ? h("p", {}, `${count(more)} more: filter, or step through them with n and p.`) : null,
  ];
}

/**
 * Severity, check, topic and producer. `change` is called with what changed.
 * @param {any} page @param {import("./link.js").Place} place @param {(changes: Partial<import("./link.js").Place>) => void} change
 */
export function filterBar(page, place, change) {
  const topics = [...new Set(page.partitions.map((/** @type {any} */ row) => row.topic))].sort();
  const codes = page.overview.counts.checks.map((/** @type {any} */ { code, name }) => [code, `${code} ${name}`]);
  const severities = ["error", "warning", "note"].map((severity) =>
    h(
      "button",
      {
        type: "button",
        "aria-pressed": String(place.severities.includes(severity)),
        onclick: () => change({ severities: place.severities.includes(severity) ? place.severities.filter((name) => name !== severity) : [...place.severities, severity] }),
      },
      h("span", { class: severity, "aria-hidden": "true" }, `${SHAPES[severity]} `),
      severity,
    ),
  );
  const active = place.severities.length || place.code || place.onlyTopic || place.producer;
  return h(
    "div",
    { class: "filters no-print", role: "group", "aria-label": "Filters" },
    severities,
    choice("Check", place.code, [["", "all checks"], ...codes], (code) => change({ code })),
    choice("Topic", place.onlyTopic, [["", "all topics"], ...topics.map((topic) => [topic, topic])], (onlyTopic) => change({ onlyTopic })),
    h("input", {
      "aria-label": "Producer id or transactional id",
      placeholder: "producer or transactional id",
      value: place.producer,
      size: 24,
      onchange: (/** @type {any} */ event) => change({ producer: event.target.value }),
    }),
    active ? h("button", { type: "button", onclick: () => change({ severities: [], code: "", onlyTopic: "", producer: "" }) }, "Clear filters") : null,
  );
}

/**
 * @param {HTMLElement} panel @param {any} page @param {any} finding
 * @param {{position: string, step: (direction: 1 | -1) => void, close: () => void, link: () => string, zoom: (() => void) | null}} actions
 */
export function showFinding(panel, page, finding, { position, step, close, link, zoom }) {
  const incident = finding.incident === null ? null : page.overview.incidents[finding.incident];
  const certainty = finding.confidence === "certain" ? null : h("p", { class: "faint" }, `${finding.confidence}, not certain`);
  fill(
    panel,
    h(
      "div",
      { class: "detail-head no-print" },
      h("button", { type: "button", "aria-label": "Previous finding (p)", title: "Previous finding (p)", onclick: () => step(-1) }, "←"),
      h("span", { class: "faint" }, position),
      h("button", { type: "button", "aria-label": "Next finding (n)", title: "Next finding (n)", onclick: () => step(1) }, "→"),
      zoom ? h("button", { type: "button", onclick: zoom }, "Zoom to it") : null,
      copyButton(link, "Copy link"),
      h("button", { type: "button", class: "close", "aria-label": "Close (Esc)", title: "Close (Esc)", onclick: close }, "✕"),
    ),
    h("h2", { tabIndex: -1 }, severityText(finding.severity), ` ${finding.code} ${finding.name}`),
    h("p", { class: "message" }, finding.message),
    finding.impact ? h("p", { class: "cost" }, finding.impact) : null,
    h("p", { class: "faint" }, finding.place),
    finding.timestamp === null ? null : h("p", { class: "faint" }, time(finding.timestamp)),
    certainty,
    finding.status === "new" ? null : h("p", {}, finding.suppression ? `${finding.status}: ${finding.suppression}` : finding.status),
    incident && incident.count > 1 ? h("p", {}, `Part of: ${incident.title} (${counted(incident.count, "finding")})`) : null,
    finding.next.length ? h("section", {}, h("h3", {}, "What to do next"), finding.next.map(commandLine)) : null,
    finding.rule ? h("section", {}, h("h3", {}, "Rule"), h("p", {}, finding.rule), finding.broker ? h("p", {}, h("strong", {}, "The broker "), finding.broker) : null) : null,
    evidence(finding),
    states(finding),
    finding.facts.length ? h("section", {}, h("h3", {}, "Observed"), table(["", ""], finding.facts)) : null,
    explanations(finding),
    h("section", {}, h("h3", {}, "About this check"), h("p", {}, finding.doc), commandLine(`kaudit explain ${finding.code}`)),
  );
}

/** Batches side by side, a line for each fact: the panel is narrow, and its lines are not scrolled sideways. @param {any} finding */
function evidence({ evidence: model }) {
  if (!model) return null;
  const [, ...facts] = model.headings;
  const shown = (/** @type {string} */ cell, /** @type {number} */ at, /** @type {number} */ column) =>
    at === model.marked && column === model.faulty ? h("mark", {}, cell) : at === model.marked ? h("strong", {}, cell) : cell;
  const rows = facts.map((/** @type {string} */ fact, /** @type {number} */ number) => [
    fact,
    ...model.rows.map((/** @type {string[]} */ row, /** @type {number} */ at) => shown(row[number + 1] ?? "", at, number + 1)),
  ]);
  return h("section", {}, h("h3", {}, "Evidence"), table(["", ...model.rows.map((/** @type {string[]} */ row) => row[0])], rows));
}

/** The producer's state on both sides, in one table; a value that changed is marked. @param {any} finding */
function states({ state_before: before, state_after: after }) {
  if (!before.length && !after.length) return null;
  const names = [...new Set([...before, ...after].map(([name]) => name))];
  const [was, is] = [new Map(before), new Map(after)];
  const rows = names.map((name) => {
    const [left, right] = [was.get(name) ?? "-", is.get(name) ?? "-"];
    return [name, left, left === right || !after.length ? right : h("strong", {}, right)];
  });
  return h("section", {}, h("h3", {}, "State of the producer"), table(["", "before", "after"], rows));
}

/** @param {any} finding */
function explanations({ explanations: rows }) {
  if (!rows.length) return null;
  return h(
    "section",
    {},
    h("h3", {}, "Possible causes"),
    h(
      "ol",
      {},
      rows.map((/** @type {any} */ { cause, speaks_for: pro, speaks_against: contra, innocent }) =>
        h(
          "li",
          {},
          innocent ? h("span", { class: "good" }, "harmless if: ") : null,
          cause,
          h("ul", {}, pro.map((/** @type {string} */ text) => h("li", {}, `+ ${text}`)), contra.map((/** @type {string} */ text) => h("li", {}, `− ${text}`))),
        ),
      ),
    ),
  );
}
