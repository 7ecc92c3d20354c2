// Charts over time. The server has drawn each as a line that needs no script; here it gets axes and numbers.
// What is drawn stands in #activity, which every look at the page brings anew; the drawing itself is left alone by it.
const KINDS = {
  tasks: [["submitted", "--runs"], ["ended", "--done"], ["failed", "--failed"]],
  waits: [["half of them within", "--runs"], ["95 of 100 within", "--retries"]],
};
const UNITS = { tasks: (value) => `${round(value)} a minute`, waits: spanned };
const HEIGHT = 190;
const drawn = new Map();

function round(value) {
  return value >= 10 || Number.isInteger(value) ? Math.round(value).toLocaleString("en") : value.toFixed(1);
}

function spanned(milliseconds) {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  return seconds < 120 ? `${round(seconds)} s` : seconds < 7200 ? `${round(seconds / 60)} min` : `${round(seconds / 3600)} h`;
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function options(kind, width) {
  const axis = { stroke: () => colour("--dim"), grid: { stroke: () => colour("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
  const text = (value) => (value == null ? "–" : UNITS[kind](value));
  return {
    width,
    height: HEIGHT,
    cursor: { drag: { x: false, y: false } },
    scales: { y: { range: (_, lowest, highest) => [0, Math.max(kind === "tasks" ? 1 : 10, (highest ?? 0) * 1.1)] } },
    axes: [{ ...axis, space: 70, values: (_, moments) => moments.map(clock) }, { ...axis, size: 64, values: (_, values) => values.map((each) => (kind === "tasks" ? round(each) : spanned(each))) }],
    series: [
      { value: (_, moment) => (moment == null ? "–" : clock(moment)), label: "at" },
      ...KINDS[kind].map(([label, name]) => ({ label, stroke: () => colour(name), width: 1.6, points: { size: 4 }, value: (_, value) => text(value) })),
    ],
  };
}

function clock(moment) {
  return new Date(1000 * moment).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });
}

function draw() {
  const found = JSON.parse(document.querySelector("#activity").textContent);
  for (const place of document.querySelectorAll("[data-chart]")) {
    const kind = place.dataset.chart;
    const rows = [found.moments, ...found[kind]];
    if (!drawn.has(kind)) {
      place.textContent = "";
      place.dataset.drawn = "";
      drawn.set(kind, new window.uPlot(options(kind, place.clientWidth), rows, place));
    } else drawn.get(kind).setData(rows);
  }
}

function resize() {
  for (const [kind, chart] of drawn) {
    const { clientWidth } = document.querySelector(`[data-chart="${kind}"]`);
    if (clientWidth !== chart.width) chart.setSize({ width: clientWidth, height: HEIGHT });
  }
}

function recolour() {
  for (const chart of drawn.values()) chart.redraw();
}

draw();
document.body.addEventListener("htmx:afterSettle", draw);
window.addEventListener("resize", resize);
new MutationObserver(recolour).observe(document.documentElement, { attributeFilter: ["data-theme"] });
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
