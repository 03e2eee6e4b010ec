// The search field: a combobox whose list says where each hit leads.

import { fill, h } from "./dom.js";
import { count } from "./format.js";
import { search } from "./search.js";

const WAIT = 120; // ms after the last key

export class SearchBox {
  /** @param {{where: () => Promise<any>, go: (hit: import("./search.js").Hit) => void}} actions */
  constructor({ where, go }) {
    this.where = where;
    this.go = go;
    /** @type {import("./search.js").Hit[]} */
    this.hits = [];
    this.active = -1;
    this.list = h("ul", { class: "hits", role: "listbox", id: "hits", "aria-label": "Search results", hidden: true });
    this.status = h("div", { class: "visually-hidden", role: "status" });
    this.input = h("input", {
      type: "search",
      role: "combobox",
      "aria-label": "Search: producer id, transactional id, offset or check",
      "aria-expanded": "false",
      "aria-controls": "hits",
      "aria-autocomplete": "list",
      placeholder: "producer, offset, KA102 … ( / )",
      oninput: () => this.later(),
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event),
      onblur: () => this.close(),
    });
    this.element = h("div", { class: "search", role: "search" }, this.input, this.list, this.status);
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.find(), WAIT);
  }

  async find() {
    const asked = this.input.value;
    if (!asked.trim()) return this.close();
    const where = await this.where();
    if (asked !== this.input.value) return;
    const { hits, more } = search(asked, where);
    this.hits = hits;
    this.active = hits.length ? 0 : -1;
    this.show(more);
  }

  /** @param {number} [more] */
  show(more = 0) {
    const items = this.hits.map((hit, at) =>
      h("li", { role: "option", id: `hit-${at}`, "aria-selected": String(at === this.active), onmousedown: (/** @type {Event} */ event) => event.preventDefault(), onclick: () => this.choose(at) }, h("strong", {}, hit.label), " ", h("span", { class: "faint" }, hit.detail)),
    );
    const says = this.hits.length ? `${count(this.hits.length + more)} found` : "nothing found";
    this.status.textContent = says;
    if (!this.hits.length || more) items.push(h("li", { class: "faint", role: "option", "aria-disabled": "true", "aria-selected": "false" }, this.hits.length ? `${count(more)} more` : says));
    fill(this.list, ...items);
    this.list.hidden = false;
    this.input.setAttribute("aria-expanded", "true");
    this.mark();
  }

  mark() {
    [...this.list.children].forEach((item, at) => item.setAttribute("aria-selected", String(at === this.active)));
    if (this.active >= 0) {
      this.input.setAttribute("aria-activedescendant", `hit-${this.active}`);
      this.list.children[this.active].scrollIntoView({ block: "nearest" });
    } else this.input.removeAttribute("aria-activedescendant");
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.key === "Escape") {
      if (this.list.hidden) this.input.blur();
      this.close();
    } else if (event.key === "Enter") {
      clearTimeout(this.timer);
      this.find().then(() => this.choose(this.active));
    } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && this.hits.length) {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      this.active = (this.active + step + this.hits.length) % this.hits.length;
      this.mark();
    }
  }

  /** @param {number} at */
  choose(at) {
    const hit = this.hits[at];
    if (!hit) return;
    this.close();
    this.go(hit);
  }

  close() {
    clearTimeout(this.timer);
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }
}
