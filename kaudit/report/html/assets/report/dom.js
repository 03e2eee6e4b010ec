// Elements from text: nothing that comes from a log is ever parsed as markup.

/**
 * @param {string} tag
 * @param {Record<string, any>} [properties] `class`, `for`, `role`, `aria-*`, `data-*` as attributes, `on*` as listeners, others as properties
 * @param {...(Node | string | null | (Node | string | null)[])} children
 * @returns {any}
 */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && !name.includes("-") && name !== "role" && name !== "list") /** @type {any} */ (element)[name] = value;
    else element.setAttribute(name === "class" ? "class" : name, String(value));
  }
  element.append(...children.flat().filter((child) => child !== null));
  return element;
}

/** @param {Element} element @param {...(Node | string | null)} children */
export function fill(element, ...children) {
  element.replaceChildren(...children.filter((child) => child !== null));
}

/**
 * @param {string[]} headings @param {(Node | string)[][]} rows @param {{caption?: string, numbers?: number[]}} [options] `numbers`: columns set to the right
 */
export function table(headings, rows, { caption = "", numbers = [] } = {}) {
  const cell = (/** @type {string} */ tag) => (/** @type {Node | string} */ content, /** @type {number} */ column) =>
    h(tag, { class: numbers.includes(column) ? "number" : null, scope: tag === "th" ? "col" : null }, content);
  return h(
    "div",
    { class: "scroll-x", tabIndex: 0, role: "group", "aria-label": caption || headings.join(", ") },
    h(
      "table",
      {},
      caption ? h("caption", {}, caption) : null,
      h("thead", {}, h("tr", {}, headings.map(cell("th")))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map(cell("td"))))),
    ),
  );
}

/** A severity as shape and word: never colour alone. @param {string} severity @param {string} [text] */
export function severityText(severity, text = severity) {
  return h("span", { class: `severity ${severity}` }, h("span", { "aria-hidden": "true" }, `${SHAPES[severity] ?? ""} `), text);
}

/** @type {Record<string, string>} */
export const SHAPES = { error: "◆", warning: "▲", note: "●" };

/** A list to choose from; a `value` that is not in it is added. @param {string} label @param {string} value @param {any[]} options @param {(value: string) => void} change */
export function choice(label, value, options, change) {
  const items = options.map(([name, text]) => h("option", { value: name, selected: name === value }, text));
  if (!options.some(([name]) => name === value)) items.push(h("option", { value, selected: true }, value));
  return h("select", { "aria-label": label, onchange: (/** @type {any} */ event) => change(event.target.value) }, items);
}

/** A command with a button that copies it. @param {string} command */
export function commandLine(command) {
  if (command.startsWith("# ")) return h("p", {}, command.slice(2));
  return h("div", { class: "command" }, h("code", {}, command), copyButton(() => command));
}

/** @param {() => string} text @param {string} [label] */
export function copyButton(text, label = "Copy") {
  return h("button", {
    type: "button",
    class: "copy no-print",
    textContent: label,
    onclick: async (/** @type {Event} */ event) => {
      const button = /** @type {HTMLElement} */ (event.currentTarget);
      button.textContent = (await copied(text())) ? "Copied" : "Could not copy";
      setTimeout(() => (button.textContent = label), 1500);
    },
  });
}

/** @param {string} text @returns {Promise<boolean>} */
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // pages from a file: have no clipboard in some browsers
    const area = h("textarea", { value: text, class: "visually-hidden" });
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

/** The first of many rows, and a button for the others. @param {any[]} rows @param {number} number @param {(rows: any[]) => Node} render */
export function atFirst(rows, number, render) {
  if (rows.length <= number) return [render(rows)];
  const more = h("button", { type: "button", class: "no-print", onclick: () => more.replaceWith(render(rows.slice(number))) }, `Show ${rows.length - number} more`);
  return [render(rows.slice(0, number)), more];
}
