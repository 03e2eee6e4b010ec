// The first view: what it cost, incidents, counts, where and when, what is not covered.

import { atFirst, commandLine, h, severityText, SHAPES, table } from "./dom.js";
import { bytes, count, counted, timeTicks } from "./format.js";
import { formatLink, START } from "./link.js";

const FIRST_INCIDENTS = 12;

/** @param {any} page @param {Record<string, string>} colours */
export function overview(page, colours) {
  const { overview: model } = page;
  return [
    h("div", { class: "cards" }, model.counts.severities.map(severityCard)),
    incidents(page),
    notices(model),
    differences(page),
    heatMap(page),
    series(model.series, colours),
    checks(model.counts.checks),
    h("section", {}, h("h2", {}, "About this report"), table(["", ""], [...model.facts, ["made by", page.made_by], ["command", page.command], ...page.run])),
  ].filter((part) => part !== null);
}

/** @param {[string, number]} counted */
function severityCard([severity, number]) {
  const link = formatLink({ ...START, view: "findings", severities: [severity] });
  return h("a", { class: `card ${severity}`, href: link }, h("strong", {}, count(number)), severityText(severity, number === 1 ? severity : `${severity}s`));
}

/** What the page lacks, and what the audit lacks: neither may be overlooked. @param {any} model */
function notices({ not_audited: skipped, left_out: leftOut }) {
  if (!skipped.length && !leftOut.length) return null;
  const missing = skipped.map((/** @type {any} */ { path, reason, unreadable }) => [path, unreadable ? h("strong", {}, `unreadable: ${reason}`) : reason]);
  return h(
    "section",
    { class: "notices" },
    skipped.length ? h("h2", {}, "Not checked") : null,
    skipped.length ? table(["path", "why"], missing) : null,
    leftOut.length ? h("h2", {}, "Left out") : null,
    leftOut.map((/** @type {any} */ { what, count: number, how_to_see: how }) => h("div", {}, h("p", {}, `${number === null ? "Some" : count(number)} ${what} are left out to keep the file small.`), how ? commandLine(how) : null)),
  );
}

/** @param {any} page */
function incidents({ overview: { incidents: rows }, findings }) {
  if (!rows.length) {
    const notes = findings.length ? h("a", { href: formatLink({ ...START, view: "findings" }) }, `${counted(findings.length, "note")} for information`) : "";
    return h("section", {}, h("h2", {}, "Incidents"), h("p", { class: "good" }, "✓ No errors, no warnings. ", notes));
  }
  return h(
    "section",
    {},
    h("h2", {}, "Incidents"),
    atFirst(rows, FIRST_INCIDENTS, (/** @type {any[]} */ part) => h("ol", { class: "incidents" }, part.map((incident) => incidentItem(incident, findings)))),
  );
}

/** @param {any} incident @param {any[]} findings */
function incidentItem(incident, findings) {
  const first = incident.findings.length ? findings[incident.findings[0]] : null;
  const more = incident.findings.slice(1, 4).map((/** @type {number} */ index) => findingLink(findings[index]));
  return h(
    "li",
    { class: `incident ${incident.severity}` },
    h("h3", {}, severityText(incident.severity), " ", first ? h("a", { href: linkTo(first) }, incident.title) : incident.title),
    incident.cost ? h("p", { class: "cost" }, incident.cost) : null,
    h("p", { class: "faint" }, [incident.extent, incident.codes.join(", "), counted(incident.count, "finding")].filter(Boolean).join(" · ")),
    more.length ? h("p", {}, "also: ", more.flatMap((/** @type {Node} */ link, /** @type {number} */ at) => (at ? [", ", link] : [link]))) : null,
    incident.next.length ? h("div", { class: "next" }, h("h4", {}, "What to do next"), incident.next.map(commandLine)) : null,
  );
}

/** @param {any} finding */
function findingLink(finding) {
  return h("a", { href: linkTo(finding) }, `${finding.code} ${shortPlace(finding)}`);
}

/** Partition and offset; the full place is in the finding. @param {any} finding */
export function shortPlace({ row, offset, place }) {
  return row ? `${row.name}${offset === null ? "" : ` @ offset ${offset}`}` : place;
}

/** Where a finding is seen: on its partition if the page has it. @param {any} finding */
export function linkTo(finding) {
  const { row } = finding;
  const place = row ? { view: /** @type {const} */ ("partition"), topic: row.topic, partition: row.partition } : { view: /** @type {const} */ ("findings") };
  return formatLink({ ...START, ...place, finding: finding.id });
}

/** @param {any} page */
function differences({ differences: model }) {
  if (!model) return null;
  return h("section", {}, h("h2", {}, "Replicas compared"), table(model.headings, model.rows));
}

/** Topics by partitions: a box is a partition replica, its shade and shape the worst severity, its number the findings. @param {any} page */
function heatMap({ overview: { heat }, partitions }) {
  if (!heat.length) return null;
  const rows = heat.map((/** @type {any} */ { topic, cells }) => [topic, h("div", { class: "heat" }, byPartition(cells).map(([partition, replicas]) => heatPartition(topic, partition, replicas, partitions)))]);
  return h("section", {}, h("h2", {}, "Topics and partitions"), table(["topic", "partitions: findings"], rows), h("p", { class: "faint" }, "Boxes beside a partition's number are its replicas: ◆ errors, ▲ warnings, ● notes, and how many findings."));
}

/** @param {any[]} cells in the order of partitions @returns {[number, any[]][]} */
function byPartition(cells) {
  const partitions = new Map();
  for (const cell of cells) partitions.set(cell.partition, [...(partitions.get(cell.partition) ?? []), cell]);
  return [...partitions];
}

/** @param {string} topic @param {number} partition @param {any[]} replicas @param {any[]} partitions */
function heatPartition(topic, partition, replicas, partitions) {
  return h("span", { class: "heat-partition" }, h("span", { class: "heat-number" }, String(partition)), replicas.map((cell) => heatCell(topic, cell, partitions)));
}

/** @param {string} topic @param {any} cell @param {any[]} partitions */
function heatCell(topic, { partition, replica, severity, findings, index }, partitions) {
  const name = `${topic}-${partition}${replica ? ` on ${replica}` : ""}`;
  const text = severity ? h("span", { class: `severity ${severity}` }, `${SHAPES[severity]} ${count(findings)}`) : "·";
  const says = `${name}: ${findings ? `${counted(findings, "finding")}, worst: ${severity}` : "no findings"}`;
  if (index === null) return h("span", { class: "cell left-out", title: `${says}; left out of this file` }, text);
  const { topic: shownTopic, partition: shownPartition } = partitions[index];
  const link = formatLink({ ...START, view: "partition", topic: shownTopic, partition: shownPartition });
  return h("a", { class: `cell ${severity ?? "healthy"}`, href: link, title: says, "aria-label": says }, text);
}

/** @param {any[]} rows */
function checks(rows) {
  if (!rows.length) return null;
  const cells = rows.map(({ code, name, severity, count: number, cost }) => [
    h("a", { href: formatLink({ ...START, view: "findings", code }) }, code),
    name,
    severityText(severity),
    count(number),
    cost,
  ]);
  return h("section", {}, h("h2", {}, "Findings by check"), table(["check", "name", "severity", "findings", "cost"], cells, { numbers: [3] }));
}

/** @param {any} model @param {Record<string, string>} colours */
function series(model, colours) {
  if (!model || !model.bytes.length) return null;
  const starts = model.bytes.map((/** @type {unknown} */ _, /** @type {number} */ i) => Number(model.start_ms) + i * model.bucket_ms);
  const charts = h("div", { class: "series" });
  const section = h("section", {}, h("h2", {}, "Bytes and producers over time"), charts);
  const draw = () => {
    if (!charts.isConnected || !charts.clientWidth) return;
    charts.replaceChildren();
    seriesChart(charts, "bytes", starts, model.bytes, model.bucket_ms, colours.blue, colours, bytes);
    seriesChart(charts, "producer ids", starts, model.producers, model.bucket_ms, colours.purple, colours, (value) => (Number.isInteger(value) ? count(value) : ""));
  };
  new ResizeObserver(draw).observe(section);
  return section;
}

/**
 * @param {HTMLElement} host @param {string} name @param {number[]} starts @param {number[]} values @param {number} bucket ms
 * @param {string} colour @param {Record<string, string>} colours @param {(value: number) => string} format
 */
function seriesChart(host, name, starts, values, bucket, colour, colours, format) {
  const axis = { stroke: colours.ink, grid: { stroke: colours.line, width: 1 }, ticks: { stroke: colours.line, width: 1 } };
  const readout = h("span", { class: "faint" });
  const figure = h("figure", {}, h("figcaption", {}, h("strong", {}, name), " ", readout));
  host.append(figure);
  const peak = values.reduce((most, value) => Math.max(most, value), 0);
  const idle = `each bar ${bucket < 1000 ? `${bucket} ms` : counted(bucket / 1000, "second")}; at most ${format(peak)}`;
  readout.textContent = idle;
  const plot = new uPlot(
    {
      width: host.clientWidth,
      height: 130,
      legend: { show: false },
      cursor: { y: false, sync: { key: "series" }, drag: { x: true, y: false } },
      scales: { x: { time: false, range: (/** @type {any} */ _, /** @type {number} */ min, /** @type {number} */ max) => (min < max ? [min, max] : [min - bucket, max + bucket]) }, y: { range: [0, Math.max(1, peak * 1.05)] } },
      axes: [
        { ...axis, space: 90, size: 44, values: (/** @type {any} */ _, /** @type {number[]} */ ticks, /** @type {any} */ __, /** @type {any} */ ___, /** @type {number} */ step) => timeTicks(ticks, step) },
        { ...axis, size: 64, values: (/** @type {any} */ _, /** @type {number[]} */ ticks) => ticks.map(format) },
      ],
      series: [{}, { stroke: colour, fill: colour, width: 1, paths: uPlot.paths.bars({ size: [0.9, 40], align: 1 }), points: { show: false } }],
      hooks: {
        setCursor: [
          (/** @type {any} */ u) => {
            const at = u.cursor.idx;
            readout.textContent = at === null || at === undefined ? idle : `${timeTicks([starts[at]], 1000)[0].split("\n").reverse().join(" ")} UTC: ${format(values[at])}`;
          },
        ],
      },
    },
    [starts, values],
    figure,
  );
  plot.root.setAttribute("role", "img");
  plot.root.setAttribute("aria-label", `${name} over time, ${idle}`);
}
