// Charts over time. The server has drawn each as a line that needs no script; here it gets axes and numbers.
// The data is in #activity, which each refresh of the page replaces; a refresh does not replace the chart.
// Of a line that another one may hide the ground below it is coloured.
const KINDS = {
  tasks: [["submitted", "runs", "runs-soft"], ["ended", "done"], ["failed", "failed"]],
  waits: [["median", "runs"], ["p95", "retries"]],
};
const HEIGHT = 190;
const SECOND = 1000;
// Where lines of the grid may stand: at whole numbers of tasks, and at round times.
const STEPS = {
  tasks: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5],
  waits: [1, 2, 5, 10, 20, 50, 100, 200, 500, ...[1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 18e3, 36e3, 72e3].map((each) => each * SECOND)],
};
const drawn = new Map();

function round(value) {
  return value >= 10 || Number.isInteger(value) || value.toFixed(1).endsWith(".0") ? Math.round(value).toLocaleString("en") : value.toFixed(1);
}

function spanned(milliseconds) {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  return seconds < 120 ? `${round(seconds)} s` : seconds < 7200 ? `${round(seconds / 60)} min` : `${round(seconds / 3600)} h`;
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// A number between two without one has no line to either side: it gets a point.
function alone(values) {
  return values.flatMap((value, place) => (value != null && values[place - 1] == null && values[place + 1] == null ? [place] : []));
}

function options(kind, width) {
  const axis = { stroke: () => colour("--dim"), grid: { stroke: () => colour("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
  const text = kind === "tasks" ? round : spanned;
  const missing = kind === "tasks" ? "none" : "–";
  // Without a pointer on the chart, the legend shows the last moment.
  const labelled = (words) => (chart, value, series, place) => words(place == null ? chart.data?.[series]?.at(-1) : value);
  return {
    width,
    height: HEIGHT,
    cursor: { drag: { x: false, y: false } },
    legend: { markers: { show: false } },
    scales: { y: { range: (_, lowest, highest) => [0, Math.max(kind === "tasks" ? 1 : 10, (highest ?? 0) * 1.1)] } },
    axes: [
      { ...axis, size: 28, space: 70, values: (_, moments) => moments.map(clock) },
      { ...axis, size: kind === "tasks" ? 44 : 60, incrs: STEPS[kind], values: (_, values) => values.map(text) },
    ],
    series: [
      { value: labelled((moment) => (moment == null ? "–" : clock(moment))), label: "at" },
      ...KINDS[kind].map(([label, look, ground]) => ({
        label,
        stroke: () => colour(`--${look}`),
        fill: ground && (() => colour(`--${ground}`)),
        width: 1.6,
        points: { show: true, size: 6, fill: () => colour(`--${look}`), filter: (chart, series) => alone(chart.data[series]) },
        value: labelled((value) => (value == null ? missing : text(value))),
      })),
    ],
  };
}

function clock(moment) {
  return new Date(1000 * moment).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });
}

// Tasks that there were none of all the time would only be a line on top of the axis.
function shown(kind, values) {
  return kind !== "tasks" || values.some((value) => value) ? values : values.map(() => null);
}

function draw() {
  const found = JSON.parse(document.querySelector("#activity").textContent);
  for (const place of document.querySelectorAll("[data-chart]")) {
    const kind = place.dataset.chart;
    const rows = [found.moments, ...found[kind].map((values) => shown(kind, values))];
    if (!drawn.has(kind)) {
      place.textContent = "";
      place.dataset.drawn = "";
      drawn.set(kind, new window.uPlot(options(kind, place.clientWidth), rows, place));
      // The style sheet gives the legend its colours, so that they are those of either theme.
      place.querySelectorAll(".u-series").forEach((row, number) => row.classList.add(KINDS[kind][number - 1]?.[1] ?? "moment"));
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
