// Where the reader is, as the page's #fragment: it can be sent to a colleague who has the same file.

import { SEVERITIES } from "./filters.js";

/**
 * `from` and `to` are offsets or ms since the epoch, as `axis` says. Empty lists and texts filter nothing.
 * @typedef {{
 *   view: "overview" | "partition" | "findings" | "producers" | "differences",
 *   topic: string | null, partition: number | null, axis: "offset" | "time", from: bigint | null, to: bigint | null,
 *   finding: string | null, severities: string[], code: string, onlyTopic: string, producer: string,
 * }} Place
 */

const VIEWS = ["overview", "partition", "findings", "producers", "differences"];
const AXES = ["offset", "time"];
const NUMBER = /^-?\d{1,19}$/;

/** @type {Place} */
export const START = Object.freeze({
  view: "overview",
  topic: null,
  partition: null,
  axis: "offset",
  from: null,
  to: null,
  finding: null,
  severities: [],
  code: "",
  onlyTopic: "",
  producer: "",
});

/** Parts that make no sense are as at the start. @param {string} hash @returns {Place} */
export function parseLink(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const [from, to, partition] = ["from", "to", "partition"].map((name) => integer(given.get(name)));
  const sound = from !== null && to !== null && from < to;
  return {
    view: /** @type {Place["view"]} */ (known(given.get("view"), VIEWS) ?? (given.has("topic") ? "partition" : "overview")),
    topic: given.get("topic"),
    partition: partition === null ? null : Number(partition),
    axis: /** @type {Place["axis"]} */ (known(given.get("axis"), AXES) ?? "offset"),
    from: sound ? from : null,
    to: sound ? to : null,
    finding: given.get("finding"),
    severities: (given.get("severity") ?? "").split(",").filter((name) => SEVERITIES.includes(name)),
    code: given.get("code") ?? "",
    onlyTopic: given.get("only-topic") ?? "",
    producer: given.get("producer") ?? "",
  };
}

/** @param {Place} place @returns {string} with its #, empty at the start */
export function formatLink(place) {
  const link = new URLSearchParams();
  if (place.view !== "overview" && !(place.view === "partition" && place.topic !== null)) link.set("view", place.view);
  if (place.view === "partition" && place.topic !== null) {
    link.set("topic", place.topic);
    link.set("partition", String(place.partition ?? 0));
    if (place.axis !== "offset") link.set("axis", place.axis);
    if (place.from !== null && place.to !== null) {
      link.set("from", String(place.from));
      link.set("to", String(place.to));
    }
  }
  if (place.finding !== null) link.set("finding", place.finding);
  if (place.severities.length) link.set("severity", place.severities.join(","));
  if (place.code) link.set("code", place.code);
  if (place.onlyTopic) link.set("only-topic", place.onlyTopic);
  if (place.producer) link.set("producer", place.producer);
  const text = link.toString();
  return text ? `#${text}` : "";
}

/** @param {string | null} value @param {string[]} values */
function known(value, values) {
  return value !== null && values.includes(value) ? value : null;
}

/** @param {string | null} text */
function integer(text) {
  return text !== null && NUMBER.test(text) ? BigInt(text) : null;
}
