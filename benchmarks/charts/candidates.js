/* The same 1,000,000 runs of 10,000 producers in 1,000 lanes' worth of view, drawn by each candidate; `window.candidate` says which. */
"use strict";
const PRODUCERS = 10_000;
const RUNS = 1_000_000;
const PER_LANE = RUNS / PRODUCERS;
const END = RUNS * 10;
const VISIBLE = 40; // lanes on the screen

// lane by lane, ascending offsets within a lane: the shape of the report's columns
const first = new Float64Array(RUNS);
const last = new Float64Array(RUNS);
let seed = 7;
const random = () => (seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648;
for (let lane = 0; lane < PRODUCERS; lane++) {
  let offset = random() * 1000;
  for (let k = 0; k < PER_LANE; k++) {
    const at = lane * PER_LANE + k;
    first[at] = offset;
    offset += random() * (END / PER_LANE) * 0.9;
    last[at] = offset;
    offset += random() * (END / PER_LANE) * 0.2;
  }
}

// Bars a pixel wide at least, found by bisection: what is drawn depends on the pixels, not on the runs.
function bars(lane, min, max, pixels) {
  const out = [];
  const end = (lane + 1) * PER_LANE;
  const step = (max - min) / pixels;
  let at = bisect(last, min, lane * PER_LANE, end);
  while (at < end && first[at] <= max) {
    const edge = first[at] + step;
    let next = bisect(first, edge, at + 1, end);
    out.push(first[at], last[next - 1]);
    at = next;
  }
  return out;
}

function bisect(values, wanted, low, high) {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

const host = document.getElementById("host");
const width = 1200;
const height = 800;

const candidates = {
  // everything is handed over, ECharts clips to the window
  "echarts, every run": () => {
    const chart = echarts.init(host, null, { renderer: "canvas", width, height });
    const data = new Float64Array(RUNS * 3);
    for (let i = 0; i < RUNS; i++) data.set([first[i], Math.floor(i / PER_LANE), last[i]], i * 3);
    chart.setOption(echartsOption(data));
    return (min, max, lane) =>
      chart.dispatchAction({
        type: "dataZoom",
        batch: [
          { dataZoomIndex: 0, startValue: min, endValue: max },
          { dataZoomIndex: 1, startValue: lane, endValue: lane + VISIBLE },
        ],
      });
  },
  // only the bars of the window are handed over, anew for each frame
  "echarts, bars of the window": () => {
    const chart = echarts.init(host, null, { renderer: "canvas", width, height });
    chart.setOption(echartsOption([]));
    return (min, max, lane) => {
      const data = [];
      for (let l = lane; l < lane + VISIBLE; l++) {
        const row = bars(l, min, max, width);
        for (let i = 0; i < row.length; i += 2) data.push([row[i], l, row[i + 1]]);
      }
      chart.setOption({ xAxis: { min, max }, yAxis: { min: lane, max: lane + VISIBLE }, dataZoom: [], series: [{ data }] });
    };
  },
  "uPlot, bars of the window": () => {
    let window_ = [0, END];
    let top = 0;
    const u = new uPlot(
      {
        width,
        height,
        legend: { show: false },
        scales: { x: { time: false, range: () => window_ }, y: { dir: -1, range: () => [top, top + VISIBLE] } },
        axes: [{}, { splits: () => Array.from({ length: VISIBLE }, (_, k) => top + k + 0.5), values: (_, s) => s.map(String) }],
        series: [{}, { paths: () => null, points: { show: false } }],
        hooks: { draw: [(u) => paint(u.ctx, u.bbox, window_, top)] },
      },
      [[0, END], [0, PRODUCERS]],
      host,
    );
    return (min, max, lane) => {
      window_ = [min, max];
      top = lane;
      u.redraw(false, true);
      u.setScale("x", { min, max });
    };
  },
  "own canvas, bars of the window": () => {
    const canvas = document.createElement("canvas");
    canvas.width = width;
    canvas.height = height;
    host.append(canvas);
    const context = canvas.getContext("2d");
    return (min, max, lane) => {
      context.clearRect(0, 0, width, height);
      paint(context, { left: 50, top: 0, width: width - 50, height: height - 50 }, [min, max], lane);
    };
  },
  "own canvas, every run": () => {
    const canvas = document.createElement("canvas");
    canvas.width = width;
    canvas.height = height;
    host.append(canvas);
    const context = canvas.getContext("2d");
    return (min, max) => {
      context.clearRect(0, 0, width, height);
      context.fillStyle = "#0072b2";
      const scale = width / (max - min);
      for (let i = 0; i < RUNS; i++) {
        if (last[i] < min || first[i] > max) continue;
        context.fillRect((first[i] - min) * scale, (Math.floor(i / PER_LANE) / PRODUCERS) * height, (last[i] - first[i]) * scale, 1);
      }
    };
  },
};

function paint(context, box, [min, max], top) {
  context.fillStyle = "#0072b2";
  const row = box.height / VISIBLE;
  const scale = box.width / (max - min);
  for (let k = 0; k < VISIBLE; k++) {
    const lane = bars(top + k, min, max, box.width);
    for (let i = 0; i < lane.length; i += 2)
      context.fillRect(box.left + (lane[i] - min) * scale, box.top + k * row + 2, Math.max(1, (lane[i + 1] - lane[i]) * scale), row - 4);
  }
}

function echartsOption(data) {
  return {
    animation: false,
    xAxis: { type: "value", min: 0, max: END },
    yAxis: { type: "value", inverse: true },
    dataZoom: [
      { type: "inside", xAxisIndex: 0, filterMode: "weakFilter" },
      { type: "inside", yAxisIndex: 0, filterMode: "weakFilter", startValue: 0, endValue: VISIBLE },
    ],
    series: [
      {
        type: "custom",
        encode: { x: [0, 2], y: 1 },
        dimensions: ["first", "lane", "last"],
        progressive: 0,
        data,
        renderItem: (_, api) => {
          const [x, y] = api.coord([api.value(0), api.value(1)]);
          const [x2, y2] = api.coord([api.value(2), api.value(1) + 0.8]);
          return { type: "rect", shape: { x, y, width: Math.max(1, x2 - x), height: y2 - y }, style: { fill: "#0072b2" } };
        },
      },
    ],
  };
}

// Called by measure.py: the time to the first picture, then a pan over `frames` frames, and a scroll through lanes.
window.measure = async (name, frames) => {
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  await frame();
  const begin = performance.now();
  const show = candidates[name]();
  show(0, END, 0);
  await frame();
  await frame();
  const open = performance.now() - begin;
  const rates = {};
  for (const [what, share, lanes] of [["pan, all offsets", 1, 0], ["pan, a tenth", 0.1, 0], ["scroll lanes", 1, 1]]) {
    const start = performance.now();
    let shown = 0;
    while (shown < frames && performance.now() - start < 10_000) {
      const min = END * (share === 1 ? 0.001 * (shown % 10) : 0.005 * shown);
      show(min, min + END * share, lanes * shown * 3);
      await frame();
      shown++;
    }
    rates[what] = (1000 * shown) / (performance.now() - start);
  }
  return { open, rates };
};
window.names = Object.keys(candidates);
