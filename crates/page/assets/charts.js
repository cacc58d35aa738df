"use strict";
// Histograms, budget per period, and runs side by side.

const LOG = 3; // uPlot's number of a logarithmic scale

// uPlot counts ticks from the lower end, so that a power of ten there makes round numbers.
const powerBelow = (value) => 10 ** Math.floor(Math.log10(value) + 1e-9);

function newHistogram(figure, task) {
  const shown = ["latency", "response"]
    .map((name, i) => ({ name, color: colorOf(i), ...task[name] }))
    .filter((times) => times.count);
  if (!shown.length) {
    figure.append("Starts and completions are not recorded.");
    return;
  }
  const edges = [...new Set(shown.flatMap((times) => times.edges))].sort((a, b) => a - b);
  const counts = shown.map(({ edges: own, counts }) => {
    const byEdge = new Map(own.map((edge, i) => [edge, counts[i] || null]));
    return edges.map((edge) => byEdge.get(edge) || null);
  });
  const most = Math.max(...counts.flat());
  const bars = uPlot.paths.bars({ size: [1, Infinity], align: 1, gap: 0 });
  newChart(figure, 240, {
    scales: {
      x: { time: false, distr: LOG, range: [powerBelow(edges[0]), edges[edges.length - 1] * 1.2] },
      y: { distr: LOG, range: [0.7, most * 2] },
    },
    series: [{}, ...shown.map(({ color }) => (
      { stroke: color, fill: color + "55", width: 1.5, paths: bars, points: { show: false } }))],
    axes: [
      logAxis(showTime, { space: 60 }),
      logAxis((n) => n.toLocaleString("en"), { size: 64, label: "periods" }),
    ],
    cursor: { drag: { x: true, y: false } },
    hooks: { draw: [(u) => shown.forEach((times) => drawPercentiles(u, times))] },
  }, [edges, ...counts]);
  addKey(figure, shown.map((t) => ["▮", t.color, t.name + ": median " + showTime(t.median)
    + ", p99 " + showTime(t.p99) + ", p99.9 " + showTime(t.p999)
    + ", worst " + showTime(t.worst)]));
}

// Dashed lines at the median, p99 and the worst.
function drawPercentiles(u, times) {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.strokeStyle = times.color;
  ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
  for (const ns of [times.median, times.p99, times.worst]) {
    const x = u.valToPos(Math.max(ns, 1), "x", true);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

// The budget rate of each period, as in Fig. 6 of the RTAI paper; percent.
function newBudgetChart(figure, track) {
  const numbers = Array.from(track.number);
  const ready = new Array(numbers.length).fill(null), others = ready.slice();
  let most = 105;
  for (let i = 0; i < numbers.length; i++) {
    if (!track.assigned[i]) continue;
    const rate = (track.received[i] * 100) / track.assigned[i];
    (track.flags[i] & READY ? ready : others)[i] = rate;
    most = Math.max(most, rate);
  }
  newChart(figure, 240, {
    scales: { x: { time: false }, y: { range: [0, most * 1.05] } },
    series: [
      {},
      { stroke: colorOf(0), width: 1.5 },
      { stroke: colorOf(1), width: 1, dash: [2, 3] },
    ],
    axes: [axis({ label: "period" }), axis({ size: 64, label: "received, %" })],
    cursor: { drag: { x: true, y: false } },
  }, [numbers, ready, others]);
  addKey(figure, [["▮", colorOf(0), "wanted all of its budget"], ["▮", colorOf(1), "did not"]]);
}

// A line and a mark for each name and run (crates/page/src/spreads.rs).
function newComparison(figure, { names, series }) {
  const all = series.flatMap((of) => of.spreads).filter(Boolean).flatMap((s) => [s.from, s.mark]);
  const least = Math.max(1, Math.min(...all));
  const shorten = (name) => (name.length > 14 ? name.slice(0, 13) + "…" : name);
  newChart(figure, 280, {
    scales: {
      x: { time: false, range: [-0.5, names.length - 0.5] },
      y: { distr: LOG, range: [powerBelow(least), Math.max(...all, 10) * 2] },
    },
    series: [{}, { paths: () => null, points: { show: false } }],
    axes: [
      axis({ splits: () => names.map((_, i) => i), values: () => names.map(shorten) }),
      logAxis(showTime, { size: 72 }),
    ],
    cursor: { show: false },
    hooks: { draw: [(u) => series.forEach((_, i) => drawSpreads(u, series, i))] },
  }, [names.map((_, i) => i), names.map(() => least)]);
  addKey(figure, series.map((of, i) => [SHAPES[i % SHAPES.length], colorOf(i), of.title]));
}

const SHAPES = ["●", "■", "▲", "◆", "✚", "★"];

function drawSpreads(u, series, run) {
  const { ctx } = u;
  const offset = (run - (series.length - 1) / 2) * Math.min(0.15, 0.8 / series.length);
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = colorOf(run);
  ctx.lineWidth = 3 * devicePixelRatio;
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  ctx.font = 13 * devicePixelRatio + "px sans-serif";
  series[run].spreads.forEach((spread, place) => {
    if (!spread) return;
    const x = u.valToPos(place + offset, "x", true);
    const y = (ns) => u.valToPos(Math.max(ns, 1), "y", true);
    ctx.beginPath();
    ctx.moveTo(x, y(spread.from));
    ctx.lineTo(x, y(spread.to));
    ctx.stroke();
    ctx.fillText(SHAPES[run % SHAPES.length], x, y(spread.mark));
  });
  ctx.restore();
}
