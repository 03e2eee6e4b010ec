// Where the rows of a sequence diagram stand: pure functions, no document.

export const ROW = 30;
const TOP = 26;
const LONGEST = 5 * ROW;
const BREAK = 58;
const GAP = 44;
const SLANT = 9;

/** How long after the last known time each step is, in ms; 0 where either is not known. */
export function pausesOf(steps) {
  let last = null;
  return steps.map(({ at }) => {
    const pause = at === null || last === null ? 0 : Math.max(at - last, 0);
    last = at ?? last;
    return pause;
  });
}

/** The middle of the pauses between rows, in ms; 0 where all of them stand at the same time. */
export function medianPause(steps) {
  const pauses = pausesOf(steps).filter((pause) => pause > 0);
  pauses.sort((left, right) => left - right);
  return pauses.length === 0 ? 0 : pauses[Math.floor(pauses.length / 2)];
}

/**
 * The height of each row and what stands between rows.
 *
 * To scale, a pause is as high as it is long, but never lower than a row; one that would take more than five rows is a
 * break. `breaks` are those, `gaps` places where steps are left out.
 */
export function rowLayout(steps, toScale) {
  const pauses = pausesOf(steps);
  const pause = medianPause(steps);
  const scale = toScale && pause > 0 ? (1.2 * ROW) / pause : 0;
  const result = { ys: [], breaks: [], gaps: [], height: 0, scale, times: steps.map((step) => step.at) };
  let y = TOP;
  steps.forEach((step, place) => {
    const previous = y;
    if (place > 0) {
      const between = pauses[place];
      const long = between * scale;
      y += ROW;
      if (scale > 0 && long > LONGEST) {
        y = previous + BREAK;
        result.breaks.push({ from: previous, to: y, ms: between });
      } else if (scale > 0) {
        y = previous + Math.max(ROW, long);
      }
    }
    if (step.left_out > 0) {
      result.gaps.push({ y: y + (place > 0 ? GAP / 2 - ROW / 2 : 0), count: step.left_out });
      y += GAP;
    }
    result.ys.push(y);
  });
  result.height = y + ROW;
  return result;
}

/** Where a moment stands: at the last row of that time, between rows in proportion. */
export function yOf(layout, time) {
  const { times, ys } = layout;
  let last = -1;
  let next = -1;
  for (let place = 0; place < times.length && next < 0; place += 1) {
    if (times[place] === null) continue;
    if (times[place] <= time) last = place;
    else next = place;
  }
  if (last < 0) return ys.length === 0 ? TOP : ys[0] - ROW / 2;
  if (times[last] === time || next < 0) return ys[last];
  const share = (time - times[last]) / (times[next] - times[last]);
  return ys[last] + share * (ys[next] - ys[last]);
}

/** Where a step's arrow begins: at the time it was sent, and always a little above its end if it took time. */
export function startOf(layout, steps, place) {
  const step = steps[place];
  const end = layout.ys[place];
  if (step.at === null || step.sent_at === null || step.sent_at >= step.at) return end;
  if (layout.scale === 0) return end - SLANT;
  return Math.min(yOf(layout, step.sent_at), end - SLANT);
}

/**
 * The widths of the columns: the lanes share what the times and the texts leave, within bounds.
 *
 * `width` of the result is above the one given where the lanes do not fit: then the diagram scrolls.
 */
export function columnWidths(width, lanes) {
  const narrow = width < 620;
  const time = narrow ? 50 : 64;
  const text = narrow ? 140 : Math.max(240, width * 0.33);
  const least = narrow ? 40 : 60;
  const lane = Math.max(least, Math.min(170, Math.floor((width - time - text) / Math.max(lanes, 1))));
  const textFrom = time + lane * lanes;
  return { time, lane, textFrom, width: Math.max(width, textFrom + text) };
}
