"use strict";
// Controls, keys, and when each picture is drawn: once it comes into view, or is printed.

function addControls(figure, u, tracks, length) {
  const visible = () => [u.scales.x.min, u.scales.x.max];
  const show = (from, to) => {
    const span = Math.max(1, Math.min(length, to - from));
    const begin = Math.max(0, Math.min(length - span, from));
    u.setScale("x", { min: begin, max: begin + span });
  };
  // `at`: the place that stays where it is, as a share of the width.
  const zoom = (factor, at = 0.5) => {
    const [from, to] = visible();
    const fixed = from + (to - from) * at;
    show(fixed - (fixed - from) * factor, fixed + (to - fixed) * factor);
  };
  const move = (share) => {
    const [from, to] = visible();
    show(from + (to - from) * share, to + (to - from) * share);
  };
  const all = () => show(0, length);
  const nextMiss = () => {
    const [from, to] = visible();
    const centre = (from + to) / 2;
    const next = tracks.map(({ missed }) => missed[countBelow(missed, centre + 1)])
      .filter((time) => time !== undefined);
    if (next.length) show(Math.min(...next) - (to - from) / 2, Math.min(...next) + (to - from) / 2);
  };
  const keys = {
    ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2), Home: all, m: nextMiss,
    "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2),
  };
  figure.tabIndex = 0;
  figure.addEventListener("keydown", (event) => {
    const act = keys[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
  u.over.addEventListener("dblclick", all);
  u.over.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.shiftKey) return;
    event.preventDefault();
    zoom(event.deltaY + event.deltaX > 0 ? 1.25 : 0.8, event.offsetX / u.over.clientWidth);
  }, { passive: false });
  const bar = document.createElement("div");
  bar.className = "controls";
  const button = (text, title, act) => {
    const element = document.createElement("button");
    element.textContent = text;
    element.title = title;
    element.addEventListener("click", act);
    bar.append(element);
  };
  button("−", "zoom out (-)", keys["-"]);
  button("+", "zoom in (+, shift and wheel, or drag over the times)", keys["+"]);
  button("←", "earlier (left arrow)", keys.ArrowLeft);
  button("→", "later (right arrow)", keys.ArrowRight);
  button("all", "the whole run (Home, or a double click)", all);
  if (tracks.some(({ missed }) => missed.length)) button("next miss", "(m)", nextMiss);
  figure.querySelector("figcaption").after(bar);
}

async function start() {
  const drawings = new Map();
  const plan = (id, draw) => {
    const figure = document.getElementById(id);
    if (figure) drawings.set(figure, draw);
  };
  for (const picture of JSON.parse(document.getElementById("spreads").textContent)) {
    plan(picture.id, (figure) => newComparison(figure, picture));
  }
  for (const [number, { recorded }] of runs.entries()) {
    if (!recorded || !recorded.tasks.length) continue;
    const tracks = await readTracks(number);
    plan("gantt-" + number, (figure) => newGantt(figure, tracks, recorded.length));
    tracks.forEach((track, place) => {
      plan("times-" + number + "-" + place, (figure) => newHistogram(figure, track));
      plan("budget-" + number + "-" + place, (figure) => newBudgetChart(figure, track));
    });
  }
  const draw = (figure) => {
    const drawing = drawings.get(figure);
    drawings.delete(figure);
    if (drawing) drawing(figure);
  };
  const seen = new IntersectionObserver((entries) => {
    entries.filter((entry) => entry.isIntersecting).forEach((entry) => draw(entry.target));
  }, { rootMargin: "400px" });
  [...drawings.keys()].forEach((figure) => seen.observe(figure));

  const redrawAll = () => charts.forEach(({ chart }) => chart.redraw(false, true));
  const fitAll = () => charts.forEach(({ chart, figure, height }) => {
    if (chart.width !== figure.clientWidth) chart.setSize({ width: figure.clientWidth, height });
  });
  addEventListener("resize", fitAll);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
  // On paper all pictures are there, and dark on white.
  addEventListener("beforeprint", () => {
    document.documentElement.classList.add("paper");
    [...drawings.keys()].forEach(draw);
    redrawAll();
  });
  addEventListener("afterprint", () => {
    document.documentElement.classList.remove("paper");
    redrawAll();
  });
}

start().then(
  () => {
    document.documentElement.dataset.ready = performance.now().toFixed(0);
  },
  (error) => {
    const banner = document.createElement("p");
    banner.className = "banner";
    banner.textContent = "The pictures cannot be drawn in this browser: " + error;
    document.querySelector("h1").after(banner);
    throw error;
  },
);
