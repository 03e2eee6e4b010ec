// Marks to pixels. Kinds differ by shape and pattern as well as by colour.

/** @typedef {import("./marks.js").Mark} Mark */

/** Colours of the page's style, as the canvas takes them; read anew when light and dark change. */
export function readColours() {
  const probe = document.createElement("span");
  document.body.append(probe);
  const names = ["ground", "panel", "ink", "faint", "line", "blue", "sky", "green", "orange", "vermillion", "purple", "error", "warning", "note"];
  const colours = Object.fromEntries(
    names.map((name) => {
      probe.style.color = `var(--${name})`;
      return [name, getComputedStyle(probe).color];
    }),
  );
  probe.remove();
  return colours;
}

/**
 * @param {CanvasRenderingContext2D} context its origin is the plot's corner, its unit the CSS pixel
 * @param {Mark[]} marks @param {Record<string, string>} colours
 */
export function paint(context, marks, colours) {
  for (const mark of marks) PAINTERS[mark.kind](context, mark, colours);
}

/** @type {Record<string, (context: CanvasRenderingContext2D, mark: Mark, colours: Record<string, string>) => void>} */
const PAINTERS = {
  epoch: (context, { style, x, y, width, height, label }, colours) => {
    context.globalAlpha = style === "epoch-odd" ? 0.32 : 0.14;
    context.fillStyle = colours.sky;
    context.fillRect(x, y, width, height);
    context.globalAlpha = 1;
    context.fillStyle = colours.faint;
    context.fillRect(x, y, 1, height);
    if (height >= 12) text(context, label ?? "", x, width, y + height / 2, colours.ink);
  },
  lost: (context, { x, y, width, height }, colours) => {
    context.globalAlpha = 0.16;
    context.fillStyle = colours.error;
    context.fillRect(x, y, width, height);
    context.globalAlpha = 1;
  },
  missing: (context, { x, y, width, height }, colours) => {
    context.fillStyle = colours.ground;
    context.fillRect(x, y, width, height);
    hatch(context, { x, y, width, height }, colours.ink, 5);
    context.strokeStyle = colours.ink;
    context.lineWidth = 1;
    context.strokeRect(x + 0.5, y + 0.5, Math.max(1, width - 1), height - 1);
  },
  run: (context, { style, x, y, width, height }, colours) => {
    context.fillStyle = style.endsWith("-transactional") ? colours.purple : colours.blue;
    // runs end where something happened: a gap shows it as soon as there is room
    const drawn = width > 4 ? width - 1 : width;
    context.fillRect(x, y, drawn, height);
    if (style.startsWith("coarse") && width > 6) {
      context.fillStyle = colours.ground;
      context.fillRect(x, y + Math.floor(height / 2), drawn, 1);
    }
  },
  transaction: (context, { style, x, y, width, height }, colours) => {
    const outcome = style.slice("transaction-".length);
    context.fillStyle = { committed: colours.green, aborted: colours.vermillion, open: colours.orange }[outcome] ?? colours.faint;
    if (outcome === "committed" || width < 6) {
      context.fillRect(x, y, width, height);
      return;
    }
    const [dash, gap] = outcome === "aborted" ? [4, 3] : outcome === "open" ? [8, 3] : [2, 3];
    for (let at = x; at < x + width; at += dash + gap) context.fillRect(at, y, Math.min(dash, x + width - at), height);
  },
  marker: (context, { style, x, y, width, height }, colours) => {
    const middle = x + width / 2;
    const colour = style === "marker-abort" ? colours.vermillion : style === "marker-commit" ? colours.green : colours.faint;
    context.strokeStyle = colours.ground;
    context.lineWidth = 4;
    markerPath(context, style, x, y, width, height, middle);
    context.stroke();
    context.strokeStyle = colour;
    context.lineWidth = 2;
    context.stroke();
  },
  line: (context, { style, x, y, height }, colours) => {
    const [colour, dash] = /** @type {[string, number[]]} */ (
      { "line-start": [colours.faint, []], "line-end": [colours.faint, []], "line-watermark": [colours.green, [6, 4]], "line-stable": [colours.purple, [2, 3]] }[style] ?? [colours.ink, []]
    );
    context.strokeStyle = colour;
    context.lineWidth = 2;
    context.setLineDash(dash);
    context.beginPath();
    context.moveTo(x + 1, y);
    context.lineTo(x + 1, y + height);
    context.stroke();
    context.setLineDash([]);
  },
  finding: (context, { style, x, y, width, height }, colours) => {
    const severity = /** @type {"error" | "warning" | "note"} */ (style.split("-")[1]);
    const chosen = style.endsWith("-chosen");
    const fill = { error: colours.vermillion, warning: colours.orange, note: colours.sky }[severity];
    shape(context, severity, x, y, width, height);
    context.lineJoin = "round";
    context.strokeStyle = colours.ground;
    context.lineWidth = chosen ? 7 : 5;
    context.stroke();
    context.strokeStyle = colours.ink;
    context.lineWidth = chosen ? 3 : 1.5;
    context.stroke();
    context.fillStyle = fill;
    context.fill();
  },
};

/** A flag on a pole for COMMIT, a cross for ABORT. @param {CanvasRenderingContext2D} context @param {string} style @param {number} x @param {number} y @param {number} width @param {number} height @param {number} middle */
function markerPath(context, style, x, y, width, height, middle) {
  context.beginPath();
  if (style === "marker-abort") {
    const [top, bottom] = [y + height / 2 - width / 2, y + height / 2 + width / 2];
    context.moveTo(x, top);
    context.lineTo(x + width, bottom);
    context.moveTo(x + width, top);
    context.lineTo(x, bottom);
    return;
  }
  context.moveTo(middle, y);
  context.lineTo(middle, y + height);
}

/** Diamond, triangle or circle. @param {CanvasRenderingContext2D} context @param {string} severity @param {number} x @param {number} y @param {number} width @param {number} height */
export function shape(context, severity, x, y, width, height) {
  const [middle, centre] = [x + width / 2, y + height / 2];
  context.beginPath();
  if (severity === "error") {
    context.moveTo(middle, y);
    context.lineTo(x + width, centre);
    context.lineTo(middle, y + height);
    context.lineTo(x, centre);
  } else if (severity === "warning") {
    context.moveTo(middle, y + 1);
    context.lineTo(x + width, y + height - 1);
    context.lineTo(x, y + height - 1);
  } else {
    context.arc(middle, centre, width / 2 - 2, 0, 2 * Math.PI);
  }
  context.closePath();
}

/** @param {CanvasRenderingContext2D} context @param {{x: number, y: number, width: number, height: number}} box @param {string} colour @param {number} gap */
function hatch(context, { x, y, width, height }, colour, gap) {
  context.save();
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  context.strokeStyle = colour;
  context.lineWidth = 1;
  context.beginPath();
  for (let at = x - height; at < x + width; at += gap) {
    context.moveTo(at, y + height);
    context.lineTo(at + height, y);
  }
  context.stroke();
  context.restore();
}

/** Text that stays in view while its box scrolls out; none where it does not fit. @param {CanvasRenderingContext2D} context @param {string} label @param {number} x @param {number} width @param {number} middle @param {string} colour */
function text(context, label, x, width, middle, colour) {
  const [left, room] = [Math.max(x, 0) + 5, Math.min(width, x + width) - 10];
  if (room < 20) return;
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.textAlign = "left";
  const short = label.replace("leader epoch ", "");
  const shown = [label, short].find((candidate) => context.measureText(candidate).width <= room);
  if (shown === undefined) return;
  context.fillStyle = colour;
  context.fillText(shown, left, middle);
}
