"use strict";
// Colours, numbers and axes that all pictures share.

// Okabe and Ito's palette, which colour-blind readers can tell apart; vermilion is for misses only.
const PALETTE = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#f0e442"];
const MISSED = "#d55e00";
const colorOf = (i) => PALETTE[i % PALETTE.length];

// What the style sheet says now: it depends on light, dark and print.
const styled = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const ink = () => styled("--ink");
const faint = () => styled("--faint");

const UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "us"], [1, "ns"]];
const trimmed = (number, digits) => String(Number(number.toFixed(digits)));

// A time, ns, with its own unit.
function showTime(ns) {
  const [size, name] = UNITS.find(([size]) => Math.abs(ns) >= size) || UNITS[3];
  return trimmed(ns / size, 3) + " " + name;
}

// Times on an axis: one unit, and digits enough to tell the ticks apart.
function timeTicks(u, splits, axis, space, step) {
  const longest = Math.max(...splits.map(Math.abs));
  const [size, name] = UNITS.find(([size]) => longest >= size) || UNITS[3];
  const whole = (digits) => {
    const value = (step / size) * 10 ** digits;
    return value > 0.5 && Math.abs(value - Math.round(value)) < 1e-6;
  };
  const digits = [0, 1, 2, 3, 4, 5, 6, 7, 8].find(whole) ?? 9;
  return splits.map((ns) => (ns / size).toFixed(digits) + " " + name);
}

// Logarithmic axes have lines at powers of ten; where those are few, at 2 and 5 times them, too.
function logTicks(u, splits) {
  const digit = (v) => Math.round(v / 10 ** Math.floor(Math.log10(v) + 1e-9));
  const powers = splits.filter((v) => digit(v) === 1).length;
  const shown = powers > 2 ? [1] : [1, 2, 5];
  return splits.map((v) => (shown.includes(digit(v)) ? v : null));
}
const logAxis = (show, more) => axis({
  filter: logTicks, values: (u, splits) => splits.map((v) => (v === null ? "" : show(v))), ...more,
});

function axis(more) {
  const lines = { stroke: faint, width: 1 };
  const font = "12px system-ui, sans-serif";
  return { stroke: ink, grid: lines, ticks: lines, font, labelFont: font, ...more };
}

// All pictures, so that they can be drawn again in other colours or another width.
const charts = [];

function newChart(figure, height, options, data) {
  const chart = new uPlot(
    { width: figure.clientWidth, height, legend: { show: false }, ...options }, data, figure);
  charts.push({ chart, figure, height });
  return chart;
}

function addKey(figure, entries) {
  const list = document.createElement("p");
  list.className = "key";
  for (const [symbol, color, text] of entries) {
    const mark = document.createElement("b");
    mark.textContent = symbol;
    mark.style.color = color;
    list.append(mark, " " + text + "  ");
  }
  figure.append(list);
}
