"use strict";
// The schedule of a trace: uPlot has the axes, the zoom by dragging and the cursor; this draws the
// rows. Each pixel costs a few binary searches, however many events it stands for.

const ROW = 44;
// Fewer pixels than this for each period: its release and deadline are not drawn one by one.
const LEAST_PERIOD = 14;

function drawGantt(u, tracks) {
  const { ctx, bbox } = u;
  const ratio = devicePixelRatio;
  const view = {
    ctx, ratio, left: bbox.left, width: bbox.width, from: u.scales.x.min,
    step: (u.scales.x.max - u.scales.x.min) / bbox.width,
  };
  view.at = (time) => view.left + (time - view.from) / view.step;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  tracks.forEach((track, row) => {
    const top = bbox.top + (row * bbox.height) / tracks.length;
    const bottom = top + bbox.height / tracks.length;
    ctx.fillStyle = faint();
    ctx.fillRect(bbox.left, Math.round(bottom) - 1, bbox.width, 1);
    const bar = { top: top + 12 * ratio, bottom: bottom - 6 * ratio };
    drawExecution(view, track, bar, colorOf(row));
    drawPeriods(view, track, bar);
    drawMarks(view, track.overran, ink(), (x, w) => {
      ctx.fillRect(x, top + 2 * ratio, Math.max(w, 3 * ratio), 2 * ratio);
    });
    drawMarks(view, track.missed, MISSED, (x, w) => {
      ctx.fillRect(x, top + 6 * ratio, Math.max(w, 2 * ratio), bar.bottom - top - 6 * ratio);
      drawCross(ctx, x, top + 8 * ratio, 4 * ratio);
    });
  });
  ctx.restore();
}

// Bars; where they are closer than pixels, the height is the share of time in which it executed.
function drawExecution(view, track, bar, color) {
  const { ctx, from, step, width } = view;
  ctx.fillStyle = color;
  const height = bar.bottom - bar.top;
  const first = Math.max(0, countBelow(track.from, from) - 1);
  const end = countBelow(track.from, from + step * width);
  if (end - first < width / 2) {
    for (let i = first; i < end; i++) {
      const x = view.at(track.from[i]);
      ctx.globalAlpha = track.background[i] ? 0.35 : 1;
      ctx.fillRect(x, bar.top, Math.max(track.length[i] / step, view.ratio), height);
    }
    ctx.globalAlpha = 1;
    return;
  }
  let before = executedUntil(track, from);
  for (let x = 0; x < width; x++) {
    const until = executedUntil(track, from + (x + 1) * step);
    const share = Math.min(1, (until - before) / step);
    if (share > 0) {
      const high = Math.max(1, share * height);
      ctx.fillRect(view.left + x, bar.bottom - high, 1, high);
    }
    before = until;
  }
}

// An arrow up at each release, an arrow down at each deadline, where there is room.
function drawPeriods(view, track, bar) {
  const { ctx, from, step, width, ratio } = view;
  const first = Math.max(0, countBelow(track.release, from) - 2);
  const end = countBelow(track.release, from + step * width);
  if ((end - first) * LEAST_PERIOD * ratio > width) return;
  ctx.strokeStyle = ink();
  ctx.lineWidth = ratio;
  ctx.beginPath();
  const arrow = (x, tip, tail) => {
    const back = tip + Math.sign(tail - tip) * 4 * ratio;
    ctx.moveTo(x, tail);
    ctx.lineTo(x, tip);
    ctx.moveTo(x - 3 * ratio, back);
    ctx.lineTo(x, tip);
    ctx.lineTo(x + 3 * ratio, back);
  };
  for (let i = first; i < end; i++) {
    const release = track.release[i];
    arrow(view.at(release) + ratio, bar.top - 6 * ratio, bar.bottom);
    arrow(view.at(release + track.deadline[i]) - ratio, bar.bottom + 4 * ratio, bar.top);
  }
  ctx.stroke();
}

// One mark for all times that are in one pixel.
function drawMarks(view, times, color, draw) {
  const { ctx, from, step, width } = view;
  ctx.fillStyle = ctx.strokeStyle = color;
  let i = countBelow(times, from);
  while (i < times.length) {
    const x = Math.floor((times[i] - from) / step);
    if (x >= width) break;
    draw(view.left + x, 1);
    i = Math.max(i + 1, countBelow(times, from + (x + 1) * step));
  }
}

function drawCross(ctx, x, y, size) {
  ctx.lineWidth = size / 2;
  ctx.beginPath();
  ctx.moveTo(x - size, y - size);
  ctx.lineTo(x + size, y + size);
  ctx.moveTo(x + size, y - size);
  ctx.lineTo(x - size, y + size);
  ctx.stroke();
}

// What is under the cursor, in words.
function describeAt(u, tracks) {
  const { left, top } = u.cursor;
  if (left < 0 || left === null) return "";
  const time = u.posToVal(left, "x");
  const row = Math.min(tracks.length - 1, Math.floor((top / u.over.clientHeight) * tracks.length));
  const track = tracks[row];
  const words = [track.name + " at " + showTime(time)];
  const i = countBelow(track.release, time + 0.5) - 1;
  if (i >= 0 && time <= track.release[i] + Math.max(track.deadline[i], track.completed[i])) {
    words.push(describePeriod(track, i));
  }
  return words.join(": ");
}

function describePeriod(track, i) {
  const flags = track.flags[i];
  const words = [
    "period " + track.number[i] + ", released at " + showTime(track.release[i]),
    "deadline after " + showTime(track.deadline[i]),
    "received " + showTime(track.received[i]) + " of " + showTime(track.assigned[i]),
  ];
  if (track.completed[i]) words.push("response " + showTime(track.completed[i] - 1));
  if (flags & OVERRUN) words.push("overran");
  if (flags & MISS) words.push("MISSED");
  return words.join(", ");
}

function newGantt(figure, tracks, length) {
  const shorten = (name) => (name.length > 14 ? name.slice(0, 13) + "…" : name);
  const names = tracks.map((track) => shorten(track.name));
  const longest = Math.max(...names.map((name) => name.length));
  const centres = tracks.map((_, row) => tracks.length - row - 0.5);
  const status = document.createElement("output");
  const u = newChart(figure, tracks.length * ROW + 60, {
    scales: { x: { time: false }, y: { range: [0, tracks.length] } },
    series: [{}, { paths: () => null, points: { show: false } }],
    axes: [
      axis({ values: timeTicks, space: 90 }),
      axis({ splits: () => centres, values: () => names, size: longest * 8 + 20,
        grid: { show: false }, ticks: { show: false } }),
    ],
    cursor: { y: false, points: { show: false }, drag: { x: true, y: false } },
    hooks: {
      draw: [(u) => {
        const begun = performance.now();
        drawGantt(u, tracks);
        figure.dataset.drawMs = (performance.now() - begun).toFixed(2);
        figure.dataset.from = u.scales.x.min;
        figure.dataset.to = u.scales.x.max;
      }],
      setCursor: [(u) => { status.textContent = describeAt(u, tracks); }],
    },
  }, [[0, length], [0, 0]]);
  addControls(figure, u, tracks, length);
  figure.append(status);
  addKey(figure, [
    ["↑", "inherit", "release"], ["↓", "inherit", "deadline"], ["▬", "inherit", "overrun"],
    ["✕", MISSED, "missed deadline"],
    ["▮", "inherit", "execution; far away its height is the share of time"],
  ]);
  return u;
}
