// Keys, and the dialog that lists them.

import { h } from "./dom.js";

/** @type {[string, string, string][]} key, what it does, name of the action */
export const KEYS = [
  ["n", "next finding", "next"],
  ["p", "previous finding", "previous"],
  ["/", "search", "search"],
  ["o", "overview", "overview"],
  ["f", "list of findings", "findings"],
  ["ArrowLeft", "move left (Shift: half a window)", "left"],
  ["ArrowRight", "move right (Shift: half a window)", "right"],
  ["+", "zoom in", "in"],
  ["-", "zoom out", "out"],
  ["0", "show all", "all"],
  ["z", "zoom to the finding", "zoom"],
  ["d", "light or dark", "theme"],
  ["Escape", "close", "close"],
  ["?", "this help", "help"],
];
const SHOWN = { ArrowLeft: "←", ArrowRight: "→", Escape: "Esc" };
const POINTER = [
  ["drag", "zoom to the part"],
  ["double click", "show all"],
  ["Shift + drag", "move"],
  ["wheel", "scroll lanes; sideways: move; Ctrl + wheel: zoom"],
  ["click", "open a finding, mark a lane"],
];
const TYPING = "input, select, textarea, [contenteditable]";

/** @param {Record<string, (event: KeyboardEvent) => void>} actions by name; true: handled */
export function listen(actions) {
  const byKey = new Map(KEYS.map(([key, , action]) => [key, action]));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const { target } = event;
    if (target instanceof Element && (target.closest("dialog[open]") || (target.matches(TYPING) && event.key !== "Escape"))) return;
    const action = actions[byKey.get(event.key === "=" ? "+" : event.key) ?? ""];
    if (!action) return;
    event.preventDefault();
    action(event);
  });
}

export function helpDialog() {
  const row = (/** @type {string[]} */ [name, text]) => h("tr", {}, h("td", {}, h("kbd", {}, name)), h("td", {}, text));
  const dialog = h(
    "dialog",
    { "aria-labelledby": "help-title" },
    h("h2", { id: "help-title" }, "Keys"),
    h("table", {}, h("tbody", {}, KEYS.map(([key, text]) => row([SHOWN[/** @type {"Escape"} */ (key)] ?? key, text])))),
    h("h2", {}, "Mouse, on the lanes"),
    h("table", {}, h("tbody", {}, POINTER.map(row))),
    h("p", {}, "The address in the browser's bar holds the view: send it with the file, or copy it with “Copy link”."),
    h("form", { method: "dialog" }, h("button", {}, "Close")),
  );
  return dialog;
}
