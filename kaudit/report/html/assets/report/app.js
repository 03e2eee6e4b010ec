// The report page: reads its model, shows the view that the address names, and reacts to keys.

import { Columns, readPage, replicaSets } from "./data.js";
import { fill, h } from "./dom.js";
import { filterBar, findingsTable, showFinding } from "./findings.js";
import { ranked, shown, step } from "./filters.js";
import { counted } from "./format.js";
import { helpDialog, listen } from "./keys.js";
import { formatLink, parseLink, START } from "./link.js";
import { linkTo, overview } from "./overview.js";
import { PartitionView } from "./partition_view.js";
import { readColours } from "./painter.js";
import { producersTable } from "./producers.js";
import { SearchBox } from "./search_box.js";

const SAVE = 200; // ms after the last move, before the address is written

class App {
  /** @param {any} page */
  constructor(page) {
    this.page = page;
    this.columns = new Columns(page, (id) => document.getElementById(id)?.textContent ?? "");
    /** @type {Promise<import("./search.js").Producer[]> | null} */
    this.allProducers = null;
    /** @type {number[] | null} the partition that is on the screen */
    this.shownSet = null;
    this.sets = replicaSets(page.partitions);
    this.place = parseLink(location.hash);
    this.colours = readColours();
    this.ranked = ranked(page.findings);
    this.names = new Map(page.producers.map((/** @type {any} */ row) => [row.producer_id, row.transactional_id]));
    this.search = new SearchBox({ where: () => this.searchable(), go: (hit) => this.go(hit) });
    this.help = helpDialog();
    this.partition = new PartitionView({
      window: (from, to, whole) => this.moved(from, to, whole),
      finding: (index) => this.open(index),
      change: (changes) => this.navigate(changes),
    });
    this.main = h("div", { class: "view" });
    this.detail = h("aside", { class: "detail", "aria-label": "Finding", hidden: true });
    this.nav = h("nav", { "aria-label": "Views" });
  }

  start() {
    const root = /** @type {HTMLElement} */ (document.getElementById("app"));
    const [heading, verdict] = [root.querySelector("h1"), root.querySelector(".verdict")];
    const { severity } = this.page.overview;
    verdict?.classList.add(severity ?? "good");
    const buttons = h("div", { class: "buttons" },
      h("button", { type: "button", onclick: () => this.toggleTheme(), title: "Light or dark (d)" }, "Light / dark"),
      h("button", { type: "button", onclick: () => this.help.showModal(), title: "Keys (?)" }, "Keys ?"));
    const bar = h("div", { class: "bar no-print" }, this.nav, this.search.element, buttons);
    fill(root, h("header", {}, heading, verdict), bar, h("div", { class: "body" }, this.main, this.detail), this.help);
    addEventListener("hashchange", () => this.arrive());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.recolour());
    addEventListener("beforeprint", () => this.recolour("print"));
    addEventListener("afterprint", () => this.recolour());
    listen(this.keys());
    this.render();
    this.started = true;
  }

  keys() {
    const lanes = this.partition.lanes;
    const onLanes = (/** @type {(event: KeyboardEvent) => void} */ act) => (/** @type {KeyboardEvent} */ event) => this.place.view === "partition" && lanes.plot && act(event);
    return {
      next: () => this.step(1),
      previous: () => this.step(-1),
      search: () => this.search.input.focus(),
      overview: () => this.navigate({ ...START }),
      findings: () => this.navigate({ view: "findings" }),
      left: onLanes((event) => lanes.move(event.shiftKey ? -0.5 : -0.1)),
      right: onLanes((event) => lanes.move(event.shiftKey ? 0.5 : 0.1)),
      in: onLanes(() => lanes.zoom(0.5)),
      out: onLanes(() => lanes.zoom(2)),
      all: onLanes(() => this.partition.whole()),
      zoom: onLanes(() => this.chosen !== null && this.partition.zoomTo(this.page.findings[this.chosen])),
      theme: () => this.toggleTheme(),
      close: () => this.place.finding !== null && this.navigate({ finding: null }),
      help: () => this.help.showModal(),
    };
  }

  /** Index of the finding that is open. */
  get chosen() {
    const index = this.page.findings.findIndex((/** @type {any} */ { id }) => id === this.place.finding);
    return index < 0 ? null : index;
  }

  /** Indexes of the findings that the filters leave, errors first. */
  get shownFindings() {
    return this.ranked.filter((index) => this.isShown(this.page.findings[index]));
  }

  /** @param {any} finding */
  isShown(finding) {
    return shown(finding, this.page.partitions, this.place, this.names.get(finding.producer_id) ?? null);
  }

  /** @param {Partial<import("./link.js").Place>} changes @param {boolean} [replace] the address without a step in the history */
  navigate(changes, replace = false) {
    this.place = { ...this.place, ...changes };
    this.save(replace);
    this.render();
  }

  /** @param {boolean} replace */
  save(replace) {
    clearTimeout(this.saving);
    const link = formatLink(this.place) || "#";
    if (link === (location.hash || "#")) return;
    if (replace) history.replaceState(null, "", link);
    else history.pushState(null, "", link);
  }

  /** The address changed: a link was followed, or the reader went back. */
  arrive() {
    clearTimeout(this.saving);
    const before = this.place;
    this.place = parseLink(location.hash);
    // a link that names a partition but no window keeps the one in view
    if (this.place.from === null && before.topic === this.place.topic && before.partition === this.place.partition && before.axis === this.place.axis) {
      Object.assign(this.place, { from: before.from, to: before.to });
    }
    this.render();
  }

  /** @param {bigint} from @param {bigint} to @param {boolean} whole */
  moved(from, to, whole) {
    Object.assign(this.place, whole ? { from: null, to: null } : { from, to });
    clearTimeout(this.saving);
    this.saving = setTimeout(() => this.save(true), SAVE);
  }

  /** @param {1 | -1} direction */
  step(direction) {
    const { chosen, page, ranked: order } = this;
    const places = [...order.keys()].filter((place) => this.isShown(page.findings[order[place]]));
    const next = step(places, chosen === null ? null : order.indexOf(chosen), direction);
    if (next !== null) this.open(order[next]);
  }

  /** Show a finding on its partition, if the page has it, else beside the list. @param {number} index */
  open(index) {
    const { id, row } = this.page.findings[index];
    const same = row && row.topic === this.place.topic && row.partition === this.place.partition;
    const moved = same ? {} : { from: null, to: null };
    this.navigate({ ...(row ? { view: "partition", topic: row.topic, partition: row.partition } : { view: "findings" }), ...moved, finding: id });
  }

  /** @returns {Promise<{page: any, producers: any[], current: number | null}>} */
  async searchable() {
    this.allProducers ??= this.columns.producers();
    return { page: this.page, producers: await this.allProducers, current: this.currentSet()?.[0] ?? null };
  }

  /** @param {import("./search.js").Hit} hit */
  async go(hit) {
    if (hit.kind === "finding") return this.open(hit.index);
    const { topic, partition } = this.page.partitions[hit.partition];
    const same = this.place.view === "partition" && topic === this.place.topic && partition === this.place.partition;
    const axis = hit.kind === "offset" ? { axis: /** @type {const} */ ("offset") } : {};
    const filters = hit.kind === "lane" ? { producer: "" } : {};
    const reset = same && (hit.kind === "lane" || this.place.axis === "offset") ? {} : { from: null, to: null };
    this.navigate({ view: "partition", topic, partition, ...axis, ...filters, ...reset });
    await this.shownPartition;
    if (hit.kind === "lane") this.partition.find(hit);
    else this.partition.around(hit.offset);
    this.partition.lanes.scroller.focus();
  }

  /** The partition that the address names, or the first. @returns {number[] | null} */
  currentSet() {
    const { partitions } = this.page;
    const named = this.sets.find(([first]) => partitions[first].topic === this.place.topic && partitions[first].partition === (this.place.partition ?? 0));
    return named ?? (this.place.topic === null ? this.worstSet() : null);
  }

  /** The partition of the worst incident, or with any finding: what a reader wants to see first. */
  worstSet() {
    const indexes = this.page.overview.incidents.flatMap((/** @type {any} */ { findings }) => findings);
    const first = indexes.map((/** @type {number} */ index) => this.page.findings[index].partition).find((/** @type {number | null} */ partition) => partition !== null);
    const any = this.page.findings.find((/** @type {any} */ { partition }) => partition !== null)?.partition;
    return this.sets.find((set) => set.includes(first ?? any)) ?? this.sets[0] ?? null;
  }

  render() {
    const { page, place } = this;
    this.showNav();
    if (place.view === "partition") this.shownPartition = this.showPartition();
    else if (place.view === "findings") fill(this.main, h("h2", {}, "Findings"), this.filters(), ...findingsTable(page, this.shownFindings).filter(Boolean));
    else if (place.view === "producers") fill(this.main, ...producersTable(page));
    else fill(this.main, ...overview(page, this.colours));
    this.showDetail();
  }

  filters() {
    return filterBar(this.page, this.place, (changes) => this.navigate(changes, true));
  }

  /** The filters, folded away until they are used: the lanes are what this view is for. */
  filterDetails() {
    const { severities, code, onlyTopic, producer } = this.place;
    const active = severities.length > 0 || [code, onlyTopic, producer].some(Boolean);
    this.filtersOpen ||= active;
    const toggled = (/** @type {any} */ event) => (this.filtersOpen = event.target.open);
    return h("details", { open: this.filtersOpen, ontoggle: toggled }, h("summary", {}, active ? "Filters (active)" : "Filters"), this.filters());
  }

  showNav() {
    const { page, place } = this;
    const views = [["overview", "Overview", true], ["partition", "Partitions", this.sets.length], ["findings", `Findings (${page.findings.length})`, page.findings.length], ["producers", "Producers", page.producers.length]];
    const links = views.filter(([, , there]) => there).map(([view, label]) => {
      const target = { ...place, view: /** @type {any} */ (view), finding: null };
      return h("a", { href: formatLink(target) || "#", "aria-current": place.view === view ? "page" : null }, label);
    });
    fill(this.nav, ...links);
  }

  async showPartition() {
    const set = this.currentSet();
    if (set === null) {
      fill(this.main, h("p", {}, `This file has no ${this.place.topic}-${this.place.partition ?? 0}.`), this.picker(null));
      return;
    }
    const shown = this.shownSet === set && this.main.contains(this.partition.element);
    const top = h("div", { class: "controls no-print" }, this.picker(set), this.filterDetails());
    if (shown) this.main.firstElementChild?.replaceWith(top);
    else {
      fill(this.main, top, h("p", { role: "status" }, "Unpacking …"));
      this.shownSet = set;
    }
    const row = this.page.partitions[set[0]];
    Object.assign(this.place, { topic: row.topic, partition: row.partition });
    try {
      const loaded = await Promise.all(set.map((index) => this.columns.load(index)));
      if (this.place.view !== "partition" || this.currentSet() !== set) return;
      if (!shown) fill(this.main, top, this.partition.element);
      const { page, place, chosen, colours } = this;
      this.partition.show(loaded, { page, place, chosen, colours, isShown: (finding) => this.isShown(finding) });
      const finding = chosen === null ? null : page.findings[chosen];
      if (finding) this.partition.centreOn(finding);
    } catch (error) {
      fill(this.main, top, h("p", { class: "error", role: "alert" }, `The data of this partition could not be read: ${error instanceof Error ? error.message : error}`));
      this.shownSet = null;
    }
  }

  /** Which partition is shown. @param {number[] | null} set */
  picker(set) {
    const options = this.sets.map((indexes, at) => {
      const row = this.page.partitions[indexes[0]];
      const findings = this.page.findings.filter((/** @type {any} */ finding) => indexes.includes(finding.partition)).length;
      const name = indexes.length > 1 ? `${row.topic}-${row.partition} (${counted(indexes.length, "replica")})` : row.name;
      return h("option", { value: String(at), selected: indexes === set }, findings ? `${name}: ${counted(findings, "finding")}` : name);
    });
    if (set === null) options.unshift(h("option", { value: "", selected: true }, "choose a partition"));
    return h("select", {
      "aria-label": "Partition",
      class: "picker",
      onchange: (/** @type {any} */ event) => {
        const { topic, partition } = this.page.partitions[this.sets[Number(event.target.value)][0]];
        this.navigate({ topic, partition, from: null, to: null, finding: null });
      },
    }, options);
  }

  showDetail() {
    const { chosen, page, place } = this;
    const was = this.detail.hidden;
    this.detail.hidden = chosen === null;
    document.body.classList.toggle("with-detail", chosen !== null);
    if (chosen === null || this.detailed === chosen) return void (this.detailed = chosen);
    this.detailed = chosen;
    const finding = page.findings[chosen];
    const all = this.shownFindings;
    showFinding(this.detail, page, finding, {
      position: `${all.indexOf(chosen) + 1 || "–"} of ${all.length}`,
      step: (direction) => this.step(direction),
      close: () => this.navigate({ finding: null }),
      link: () => new URL(linkTo(finding), location.href).href,
      zoom: place.view === "partition" && finding.offset !== null ? () => this.partition.zoomTo(finding) : null,
    });
    this.detail.scrollTop = 0;
    if (was && this.started) this.detail.querySelector("h2")?.focus({ preventScroll: true });
  }

  toggleTheme() {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    this.recolour();
  }

  /** @param {string} [medium] print: the colours of light, which the style then has */
  recolour(medium) {
    const root = document.documentElement;
    const { theme } = root.dataset;
    if (medium === "print") root.dataset.theme = "light";
    this.colours = readColours();
    if (medium === "print" && theme) root.dataset.theme = theme;
    else if (medium === "print") delete root.dataset.theme;
    this.render();
  }
}

const app = new App(readPage(document));
app.start();

/** What is on the screen, read-only, for whoever compares it with what was drawn. */
Object.defineProperty(globalThis, "kaudit", {
  value: Object.freeze({
    marks: () => structuredClone(app.partition.lanes.marks),
    window: () => (app.partition.lanes.plot ? app.partition.lanes.window() : null),
    place: () => ({ ...app.place }),
    rows: () => app.partition.rows?.length ?? 0,
    ready: () => Promise.resolve(app.shownPartition),
    move: (/** @type {number} */ share) => app.partition.lanes.move(share),
  }),
});
